"""Sequential CART: one column after the other, each drawn from the leaves of a tree."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from discreet.errors import InputError
from discreet.microdata.synthesizers._base import (
    Fitted,
    Kind,
    Synthesizer,
    released_columns,
    require_pairs,
)
from discreet.microdata.synthesizers._rules import read_rules
from discreet.microdata.synthesizers._sequence import Columns, Options, Plan, several
from discreet.microdata.synthesizers._variables import Variable, folded, variables
from discreet.progress import Progress, silent
from discreet.randomness import Randomness
from discreet.registry import parameter

if TYPE_CHECKING:
    from discreet.data.dataset import Dataset

__all__ = ["CART"]


@dataclasses.dataclass(frozen=True)
class CART(Synthesizer):
    """Draw each column from the leaves of a tree grown on the columns before it.

    The first column is drawn from its own values. For every other one a tree is grown on the
    original columns before it; a synthetic record falls into a leaf by the values it already has,
    and gets the value of one of the original records there. Small leaves keep more and give more
    people away: read the risk. In large files, where leaves hold 25 records or more, a column of two values is drawn from those
    that boosted trees, of leaves as large, hold for most alike.

    Missing numbers and point masses (`semicontinuous`) are drawn as codes first, the other numbers
    after. The extreme values of a number are the means of the `tails` records at each end, so that
    nobody's own highest pay leaves. `rules` fix a column where a condition holds: such records leave the tree. With
    `proper=True` each file is drawn from trees grown on a bootstrap of the records.

    Examples
    --------
    >>> import pandas as pd
    >>> import discreet as dc
    >>> people = pd.DataFrame({"age": [20, 60] * 50, "job": ["student", "retired"] * 50})
    >>> data = dc.read(people, roles={"age": "quasi", "job": "other"})
    >>> drawn = CART(min_leaf=5).fit(data, rng=dc.Randomness.seeded(1))
    >>> rows = drawn.draw(40, rng=dc.Randomness.seeded(1)).to_pandas()
    >>> set(zip(rows["age"], rows["job"])) == {(20, "student"), (60, "retired")}
    True
    """

    name: ClassVar[str] = "cart"
    reference: ClassVar[str] = "Reiter, JOS 2005; Nowok, Raab and Dibben, JSS 2016"

    min_leaf: int | None = parameter(
        None,
        help="records in a leaf at least, of as many units; 50, and 25 below 10,000 records",
        low=1,
    )
    visit: tuple[str, ...] | str = parameter(
        (), help="columns in the order they are drawn; 'codes': few values first"
    )
    predictors: Mapping[str, Any] = parameter(
        {}, help="columns that a column is drawn from, where not all before it"
    )
    smoothing: Mapping[str, str] = parameter(
        {}, help="COLUMN: density, for numbers drawn around those of the leaf"
    )
    rules: Mapping[str, Any] = parameter(
        {}, help="COLUMN: (condition, value), such as marital: ('age < 16', 'single')"
    )
    semicontinuous: Mapping[str, Any] = parameter(
        {}, help="COLUMN: value or values that many records share, such as gain: 0"
    )
    proper: bool = parameter(False, help="grow the trees of each file on a bootstrap")
    tails: int = parameter(
        5,
        help="records (units, where declared) at each end of a number that get their mean, so that no extreme value is one "
        "person's; 0 keeps extremes",
        low=0,
        high=1_000,
    )

    def __post_init__(self) -> None:
        if isinstance(self.visit, list):
            object.__setattr__(self, "visit", tuple(self.visit))
        super().__post_init__()
        for column, way in self.smoothing.items():
            if way != "density":
                raise InputError(
                    f"column {column!r} cannot be smoothed by {way!r}",
                    code="parameter-range",
                    hint="write smoothing={'age': 'density'}",
                    column=column,
                )

    @property
    def inference(self) -> Kind:
        """Which rule combines estimates from several files."""
        return "proper" if self.proper else "simple"

    @property
    def keeps(self) -> str:
        """What the records keep."""
        leaf = "25 or 50" if self.min_leaf is None else f"{self.min_leaf}"
        return (
            "the distribution of each column given those before it, as far as trees with leaves of "
            f"{leaf} records see it; types, codes, the share of missing values and the rules stated; "
            + (f"extremes as means of {self.tails} records; " if self.tails > 1 else "")
            + "not the ties between records of one unit, nor totals"
        )

    def check(self, dataset: Dataset) -> None:
        """Check order, rules and columns."""
        super().check(dataset)
        order = self._order(dataset)
        require_pairs(len(order), self.pairs(order))
        read_rules(self.rules, order)
        for name in (*self.smoothing, *self.semicontinuous, *self.predictors):
            if name not in order:
                dataset.schema[name]
                raise _not_drawn(name, order)
        for name, used in self.predictors.items():
            for one in several(used):
                if one not in order[: order.index(name)]:
                    dataset.schema[str(one)]
                    raise InputError(
                        f"column {name!r} cannot be drawn from {one!r}, which is drawn later",
                        code="rule-order",
                        hint="visit the predictors first: visit=[…]",
                        column=name,
                    )

    def _order(self, dataset: Dataset, found: Sequence[Variable] = ()) -> tuple[str, ...]:
        names = released_columns(dataset)
        if self.visit == "codes":
            width = {v.name: v.width for v in found}
            return tuple(sorted(names, key=lambda name: width.get(name, 0)))
        wanted = (self.visit,) if isinstance(self.visit, str) else self.visit
        for name in wanted:
            dataset.schema[name]
            if name not in names:
                raise _not_drawn(name, names)
        return (*dict.fromkeys(wanted), *(n for n in names if n not in wanted))

    def fit(self, dataset: Dataset, *, rng: Randomness, progress: Progress = silent) -> Fitted:
        """Grow the trees."""
        self.check(dataset)
        return Columns.of(self.plan(dataset), rng, progress)

    def plan(self, dataset: Dataset) -> Plan:
        """Code the columns and put them in order."""
        names = released_columns(dataset)
        found = [folded(variable, self.tails) for variable in variables(dataset, names)]
        order = self._order(dataset, found)
        known = {variable.name: variable for variable in found}
        limits = {
            name: known_domain.range
            for name in names
            if (known_domain := dataset.schema.domain(name)) is not None
        }
        return Plan(self.options(), names, [known[name] for name in order], limits)

    def pairs(self, order: Sequence[str], kept: int = 0) -> int:
        """Return how many pairs of a column and a predictor are looked at, but for columns kept."""
        named = {name: len(several(used)) for name, used in self.predictors.items()}
        return sum(named.get(order[place], place) for place in range(kept, len(order)))

    def options(self) -> Options:
        """Return how trees are grown and drawn from."""
        return Options(
            self.min_leaf,
            self.predictors,
            self.smoothing,
            self.rules,
            self.semicontinuous,
            self.proper,
        )


def _not_drawn(name: str, order: Sequence[str]) -> InputError:
    return InputError(
        f"column {name!r} is an identifier and is not synthesised",
        code="identifier-column",
        hint="choose one of " + ", ".join(order),
        column=name,
    )
