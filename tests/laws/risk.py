"""Laws of risk measures: shares from 0 to 1, blind to the order of records, larger where all is shown."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from discreet.microdata.pair import Pair
from discreet.microdata.risks._base import Finding, RiskMeasure
from discreet.randomness import Randomness
from tests.laws import people
from tests.laws.parameters import examples


def pairs(seed: int, size: int = 60) -> dict[str, Pair]:
    """Files released as they are, somewhat masked, and with nothing left of the keys."""
    rows = people.frame(seed, size)
    rng = np.random.default_rng(seed)
    masked = rows.assign(
        age=(rows["age"] // 10) * 10, pay=(rows["pay"] + rng.normal(0, 2, len(rows))).round(1)
    )
    bare = rows.assign(
        region="All",
        job="Any",
        age=20,
        pay=rng.permutation(rows["pay"]),
        ill=rng.permutation(rows["ill"]),
    )
    files = {"open": rows.copy(), "masked": masked, "bare": bare}
    return {name: pair(rows, released) for name, released in files.items()}


def pair(original: pd.DataFrame, released: pd.DataFrame) -> Pair:
    # People like those in the file who are not in it, for attacks that compare both.
    others = people.frame(97, len(original))
    return Pair.of(
        people.dataset(original), people.dataset(released), holdout=people.dataset(others)
    )


def measured(measure: Any, files: Pair) -> Finding:
    return measure.measure(files, rng=Randomness.seeded(1))


def is_a_share(member: type[RiskMeasure]) -> None:
    for measure in examples(member):
        applied = 0
        for name, files in pairs(1).items():
            if not measure.applies(files):
                continue
            applied += 1
            found = measured(measure, files)
            assert 0 <= found.value <= 1, f"{measure}: {found.value} on the {name} file"
            assert found.meaning
            assert found.scenario, f"{measure} has no words"
            if found.records is not None:
                known = found.records[~np.isnan(found.records)]
                assert len(found.records) == files.size
                assert ((known >= 0) & (known <= 1)).all(), f"{measure}: risk of a record"
        assert applied, f"{measure} applies to none of the files"


def does_not_depend_on_the_order(member: type[RiskMeasure]) -> None:
    rows = people.frame(2)
    masked = rows.assign(age=(rows["age"] // 10) * 10, pay=rows["pay"].round(0))
    order = np.random.default_rng(3).permutation(len(rows))
    mixed = pair(*(f.iloc[order].reset_index(drop=True) for f in (rows, masked)))
    for measure in examples(member):
        one, two = (measured(measure, files) for files in (pair(rows, masked), mixed))
        assert np.isclose(one.value, two.value, rtol=1e-6, atol=member.noise), (
            f"{measure} depends on the order: {one.value} and {two.value}"
        )


def shows_most_where_all_is_shown(member: type[RiskMeasure]) -> None:
    for measure in examples(member):
        files = [f for f in pairs(4).values() if measure.applies(f)]
        values = [measured(measure, f).value for f in files]
        assert values == sorted(values, reverse=True), f"{measure}: {values} as less is shown"
        assert len(values) == 1 or values[0] > values[-1], f"{measure} sees no difference"


LAWS = (is_a_share, does_not_depend_on_the_order, shows_most_where_all_is_shown)


@dataclasses.dataclass(frozen=True)
class _Fixed(RiskMeasure):
    scenario: ClassVar[str] = "Nobody."

    def measure(self, pair: Pair, *, rng: Randomness) -> Finding:
        return self.finding(self.value(pair), "nothing")

    def value(self, pair: Pair) -> float:
        return 0.5


@dataclasses.dataclass(frozen=True)
class Percent(_Fixed):
    """Measures in percent."""

    name: ClassVar[str] = "percent"

    def value(self, pair: Pair) -> float:
        return 100.0 / pair.class_size.min()


@dataclasses.dataclass(frozen=True)
class FirstRecord(_Fixed):
    """Looks at the first record alone."""

    name: ClassVar[str] = "first-record"

    def value(self, pair: Pair) -> float:
        return float(pair.numbers("age")[1][0] / 100)


@dataclasses.dataclass(frozen=True)
class Blind(_Fixed):
    """Finds the same everywhere."""

    name: ClassVar[str] = "blind"


BROKEN = {
    Percent: is_a_share,
    FirstRecord: does_not_depend_on_the_order,
    Blind: shows_most_where_all_is_shown,
}
