"""Quantiles with noise: counts on the steps between declared bounds, and one chosen privately."""

from __future__ import annotations

import dataclasses
import fractions
import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from discreet.data.sql.query import Measure, Query, from_clause, raw_query
from discreet.data.sql.spelling import spelled
from discreet.dp.selection import Selection, select_lowest
from discreet.queries.guards._ranges import bounds_of

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.engines.base import Engine
    from discreet.data.sql.query import Catalog
    from discreet.queries.guards._noise_settings import NoiseSettings

__all__ = ["Ladder"]

Whole = npt.NDArray[np.int64]
#: Steps between the bounds; a quantile is answered to half a step.
STEPS = 1000
#: The column of the value inside the question's rows.
_VALUE = "v"


@dataclasses.dataclass(frozen=True, eq=False)
class Ladder:
    """The steps on which a quantile of one measure is looked for.

    A step's score is how far it is from having the fraction of the records below it and the rest
    above: no score changes by more than max(fraction, 1 − fraction) with one record.
    """

    measure: Measure
    low: float
    step: float
    steps: int
    #: Added to a step's lower end: values that are whole steps are met exactly.
    offset: float
    #: The fraction, as whole numbers.
    part: int
    whole: int
    contribution: int

    @classmethod
    def of(cls, measure: Measure, guard: NoiseSettings, catalog: Catalog) -> Ladder:
        """Return the steps between the declared bounds of what is asked about."""
        assert measure.argument is not None
        assert measure.fraction is not None
        low, high = bounds_of(measure.argument, guard.bounds)
        share = fractions.Fraction(measure.fraction).limit_denominator(1000)
        ends = (share.numerator, share.denominator, guard.contribution)
        if measure.column is not None and catalog[measure.column].kind == "integer":
            first, last = math.floor(low), math.ceil(high)
            width = max(1, math.ceil((last - first + 1) / STEPS))
            steps = (last - first) // width + 1
            return cls(measure, first, width, steps, (width - 1) / 2, *ends)
        # What has one value only has steps too, so that nothing is divided by zero.
        step = (high - low) / STEPS or 1.0
        return cls(measure, low, step, STEPS, step / 2, *ends)

    @property
    def name(self) -> str:
        """What makes two ladders the same question."""
        assert self.measure.argument is not None
        return f"quantile {self.part}/{self.whole} {spelled(self.measure.argument)}"

    def selection(self, epsilon: float, *, concentrated: bool) -> Selection:
        """Return the private choice at a cost."""
        largest = max(self.part, self.whole - self.part) * self.contribution
        return select_lowest(epsilon=epsilon, sensitivity=largest, concentrated=concentrated)

    def ranks_95(self, selection: Selection) -> float:
        """Return by how many records the rank of 95 of 100 answers is wrong at most."""
        return selection.scale * math.log(self.steps / 0.05) / self.whole

    def counts(
        self, query: Query, engine: Engine, rows: exp.Query
    ) -> dict[tuple[object, ...], Whole]:
        """Return the number of records on each step, for each group of the question."""
        # The value is computed once, inside; spelled at every comparison it would grow threefold.
        value = exp.cast(self.measure.total(), "double")
        inside = raw_query(query, rows, {_VALUE: value}, grouped=False)
        names = [f"k{n}" for n in range(len(query.keys))]
        step = exp.alias_(self._place(exp.column(_VALUE)), f"k{len(names)}")
        count = exp.alias_(exp.cast(exp.Count(this=exp.Star()), "bigint"), "n")
        select = exp.select(*names, step, count).from_(from_clause(inside, "asked"))
        places = [exp.Literal.number(n + 1) for n in range(len(names) + 1)]
        table = engine.fetch(select.group_by(*places))
        return self._by_group(table, len(query.keys))

    def _by_group(self, table: pa.Table, keys: int) -> dict[tuple[object, ...], Whole]:
        found: dict[tuple[object, ...], Whole] = {}
        groups = zip(*(table.column(f"k{n}").to_pylist() for n in range(keys)), strict=True)
        named = list(groups) if keys else [()] * table.num_rows
        places, numbers = table.column(f"k{keys}").to_pylist(), table.column("n").to_pylist()
        for group, place, number in zip(named, places, numbers, strict=True):
            counts = found.setdefault(group, np.zeros(self.steps, np.int64))
            if place is not None:  # a missing value is on no step
                counts[min(max(int(place), 0), self.steps - 1)] += int(number)
        return found

    def chosen(self, counts: Whole, selection: Selection) -> float:
        """Return a step near the quantile, chosen privately."""
        below = np.cumsum(counts) - counts
        above = counts.sum() - below - counts
        scores = np.abs((self.whole - self.part) * below - self.part * above)
        place = selection.choose(scores.tolist())
        return self.low + place * self.step + self.offset

    def _place(self, value: exp.Expression) -> exp.Expression:
        """Return the number of the step a value is on, cut to the first and last."""
        low, high = _number(self.low), _number(self.low + self.steps * self.step)
        # A value that is not a number counts as the largest, as in sums.
        cut = exp.Case(
            ifs=[
                exp.If(this=exp.LT(this=value.copy(), expression=low.copy()), true=low.copy()),
                exp.If(this=exp.GT(this=value.copy(), expression=high), true=high.copy()),
            ],
            default=value.copy(),
        )
        away = exp.Paren(this=exp.Sub(this=cut, expression=low))
        scaled = exp.Div(this=away, expression=_number(self.step))
        return exp.cast(exp.Floor(this=scaled), "bigint")


def _number(value: float) -> exp.Expression:
    # With a decimal point, so that no engine divides whole numbers.
    text = repr(float(abs(value)))
    number = exp.cast(exp.Literal.number(text), "double")
    return number if value >= 0 else exp.Neg(this=number)
