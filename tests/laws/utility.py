"""Laws of utility measures: nothing is lost where nothing changed, more where more did."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np

from discreet.microdata.pair import Pair
from discreet.microdata.utilities._base import Comparison, UtilityMeasure
from discreet.randomness import Randomness
from tests.laws import people
from tests.laws.parameters import examples
from tests.laws.risk import pair, pairs


def tried(member: type[UtilityMeasure]) -> tuple[Any, ...]:
    return examples(member, target="pay", on=("age", "job"), formula="pay ~ age + job")


def compared(measure: Any, files: Pair) -> Comparison:
    assert measure.applies(files), f"{measure} does not apply to the people of the laws"
    return measure.compare(files, rng=Randomness.seeded(1))


def nothing_is_lost_where_nothing_changed(member: type[UtilityMeasure]) -> None:
    for measure in tried(member):
        found = compared(measure, pairs(1)["open"])
        assert 0 <= found.value <= member.noise, f"{measure} loses {found.value} of nothing"
        assert found.meaning


def more_is_lost_where_more_changed(member: type[UtilityMeasure]) -> None:
    for measure in tried(member):
        files = pairs(2, 300)  # enough to learn from
        same, bare = (compared(measure, files[name]).value for name in ("open", "bare"))
        assert np.isfinite(bare), f"{measure} is not finite"
        assert bare > same, f"{measure} loses {bare} of everything and {same} of nothing"


def does_not_depend_on_the_order(member: type[UtilityMeasure]) -> None:
    rows = people.frame(3)
    masked = rows.assign(age=(rows["age"] // 10) * 10, pay=rows["pay"].round(0))
    order = np.random.default_rng(3).permutation(len(rows))
    mixed = pair(*(f.iloc[order].reset_index(drop=True) for f in (rows, masked)))
    for measure in tried(member):
        one, two = (compared(measure, files).value for files in (pair(rows, masked), mixed))
        assert np.isclose(one, two, rtol=1e-6, atol=max(member.noise, 1e-9)), (
            f"{measure} depends on the order: {one} and {two}"
        )


LAWS = (
    nothing_is_lost_where_nothing_changed,
    more_is_lost_where_more_changed,
    does_not_depend_on_the_order,
)


@dataclasses.dataclass(frozen=True)
class _Fixed(UtilityMeasure):
    def compare(self, pair: Pair, *, rng: Randomness) -> Comparison:
        return self.comparison(self.value(pair), "nothing")

    def value(self, pair: Pair) -> float:
        return 0.0


@dataclasses.dataclass(frozen=True)
class Similarity(_Fixed):
    """Measures what is kept instead of what is lost."""

    name: ClassVar[str] = "similarity"

    def value(self, pair: Pair) -> float:
        before, after = pair.numbers("age")
        return float(np.mean(before == after))


@dataclasses.dataclass(frozen=True)
class Content(_Fixed):
    """Is content with everything."""

    name: ClassVar[str] = "content"


@dataclasses.dataclass(frozen=True)
class LastRecord(_Fixed):
    """Looks at the last record alone."""

    name: ClassVar[str] = "last-record"

    def value(self, pair: Pair) -> float:
        before, after = pair.numbers("age")
        return float(abs(before[-1] - after[-1]))


BROKEN = {
    Similarity: nothing_is_lost_where_nothing_changed,
    Content: more_is_lost_where_more_changed,
    LastRecord: does_not_depend_on_the_order,
}
