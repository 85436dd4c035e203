"""The whole-number statistics that noisy aggregates are made of."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from discreet.data.sql.query import Catalog, Measure, Query
from discreet.data.sql.spelling import spelled
from discreet.data.sql.total import total
from discreet.errors import RefusedError
from discreet.queries.guards._ladder import Ladder
from discreet.queries.guards._ranges import bounds_of

if TYPE_CHECKING:
    from discreet.dp.mechanisms import Noise
    from discreet.queries.guards._noise_settings import NoiseSettings

__all__ = ["Recipe", "Statistic", "statistics_of"]

Floats = npt.NDArray[np.float64]
_MOMENTS = ("var_samp", "var_pop", "stddev_samp", "stddev_pop")


@dataclasses.dataclass(frozen=True, eq=False)
class Statistic:
    """A count or a sum of whole grains, and how much one record can change it."""

    name: str
    tree: exp.Expression
    sensitivity: int
    grain: float = 1.0

    def made(self) -> exp.Expression:
        """Return the tree, for whoever makes it when it is needed."""
        return self.tree


@dataclasses.dataclass(frozen=True, eq=False)
class Recipe:
    """How a measure is made of statistics."""

    measure: Measure
    #: Names of statistics: count, and for sums the sum, and for moments the sum of squares.
    count: str | None = None
    total: str | None = None
    squares: str | None = None
    #: Values are counted from the middle of their bounds, which halves the sensitivity.
    middle: float = 0.0
    low: float = -math.inf
    high: float = math.inf
    #: For quantiles, which are not made of sums.
    ladder: Ladder | None = None

    def made(self, values: Mapping[str, Floats]) -> Floats:
        """Return the measure from noisy statistics, each in the column's own unit."""
        function = self.measure.function
        if function in ("count", "units"):
            return np.maximum(values[self._of(self.count)], 0.0)
        total = values[self._of(self.total)]
        if function == "sum":
            return total
        count = np.maximum(values[self._of(self.count)], 1.0)
        mean = total / count
        if function == "avg":
            return np.clip(mean + self.middle, self.low, self.high)
        variance = np.maximum(values[self._of(self.squares)] / count - mean**2, 0.0)
        if function.endswith("samp"):
            variance = variance * count / np.maximum(count - 1, 1.0)
        return np.sqrt(variance) if function.startswith("stddev") else variance

    def error_95(self, noises: Mapping[str, Noise], grains: Mapping[str, float], n: float) -> float:
        """Return the half-width of the 95 % error, for a group of about n records."""
        function = self.measure.function
        if function in ("count", "units"):
            return noises[self._of(self.count)].error_95
        total = noises[self._of(self.total)].error_95 * grains[self._of(self.total)]
        if function == "sum":
            return total
        count = noises[self._of(self.count)].error_95
        half = (self.high - self.low) / 2
        return math.hypot(total, half * count) / max(n, 1.0)

    @staticmethod
    def _of(name: str | None) -> str:
        assert name is not None
        return name


def statistics_of(
    query: Query, guard: NoiseSettings, catalog: Catalog, rows: int = 0
) -> tuple[dict[str, Statistic], list[Recipe]]:
    """Return the statistics a question needs, each once, and how its measures are made.

    Their whole numbers stay within 64 bits for up to four times as many rows as there are.
    """
    statistics: dict[str, Statistic] = {}
    summed = {m.text for m in query.measures if m.function == "sum"}
    # A unit with several records may be in as many groups, and is counted in each of them.
    groups = guard.contribution if query.keys else 1
    recipes = [_recipe(m, guard, catalog, statistics, summed, groups, rows) for m in query.measures]
    return statistics, recipes


def _recipe(
    measure: Measure,
    guard: NoiseSettings,
    catalog: Catalog,
    statistics: dict[str, Statistic],
    summed: set[str],
    groups: int,
    rows: int,
) -> Recipe:
    if measure.function == "units":
        unit = exp.column(str(measure.column), quoted=True)
        tree = exp.Count(this=exp.Distinct(expressions=[unit]))
        return Recipe(measure, count=_add(statistics, "units", tree, groups))
    if measure.function == "count":
        return Recipe(measure, count=_count(statistics, measure.argument, guard))
    if measure.function == "quantile" and 0 < (measure.fraction or 0.0) < 1:
        return Recipe(measure, ladder=Ladder.of(measure, guard, catalog))
    if measure.function not in ("sum", "avg", *_MOMENTS) or measure.argument is None:
        # The smallest and the largest value are one person's: no noise of a useful size hides it.
        ends = {"min": 0.01, "max": 0.99}
        hint = "ask for COUNT, SUM, AVG, VARIANCE, STDDEV, MEDIAN or a quantile between 0 and 1"
        if measure.function in ends:
            hint = f"ask for QUANTILE({measure.column or 'x'}, {ends[measure.function]})"
        raise RefusedError(
            f"{measure.function.upper()} is not answered with noise",
            code="unsupported-noise",
            hint=hint,
        )
    low, high = bounds_of(measure.argument, guard.bounds)
    grain = max(_grain(measure, guard, catalog), _coarsest(low, high, rows))
    text = spelled(measure.argument)
    argument = measure.total()
    if measure.function == "sum":
        return Recipe(
            measure, total=_sum(statistics, f"sum {text}", argument, low, high, 0.0, grain, guard)
        )
    count = _count(statistics, measure.argument, guard)
    if measure.function == "avg" and f"SUM({text})" in summed:
        # The sum is asked for as well: the average is made of it, and the two agree.
        total = _sum(statistics, f"sum {text}", argument, low, high, 0.0, grain, guard)
        return Recipe(measure, count, total, low=low, high=high)
    middle = _middle(low, high, grain)
    total = _sum(statistics, f"centred {text}", argument, low, high, middle, grain, guard)
    if measure.function == "avg":
        return Recipe(measure, count, total, middle=middle, low=low, high=high)
    squares = _squares(statistics, text, argument, low, high, middle, guard)
    return Recipe(measure, count, total, squares, middle, low, high)


def _add(
    statistics: dict[str, Statistic],
    name: str,
    tree: exp.Expression,
    sensitivity: int,
    grain: float = 1.0,
) -> str:
    statistics.setdefault(name, Statistic(name, tree, sensitivity, grain))
    return name


def _count(
    statistics: dict[str, Statistic], argument: exp.Expression | None, guard: NoiseSettings
) -> str:
    if isinstance(argument, exp.Column) and argument.name in guard.complete:
        argument = None
    inner = exp.Star() if argument is None else total(argument)
    name = "count *" if argument is None else f"count {spelled(argument)}"
    return _add(statistics, name, exp.Count(this=inner), guard.contribution)


def _grain(measure: Measure, guard: NoiseSettings, catalog: Catalog) -> float:
    given = [guard.grain[c] for c in measure.columns if c in guard.grain]
    if given:
        return min(given)
    whole = all(catalog[c].kind == "integer" for c in measure.columns)
    return 1.0 if whole and measure.column is not None else 0.01


def _coarsest(low: float, high: float, rows: int) -> float:
    """Return the grain below which a sum of whole grains could leave 64 bits.

    What one record is rounded by is far below the noise that hides the record. The number of rows
    counts by powers of two, and small data counts as 16 million rows.
    """
    most = 1 << max(24, (4 * rows).bit_length())
    return max(abs(low), abs(high)) * most / 2.0**61


def _middle(low: float, high: float, grain: float) -> float:
    return round((low + high) / 2 / grain) * grain


def _cut(argument: exp.Expression, low: float, high: float) -> exp.Expression:
    """Return the value cut to its bounds."""
    # Comparisons keep missing values missing, and are cheaper than GREATEST and LEAST, which
    # engines disagree about. A value that is not a number counts as the largest, in all of them.
    return exp.Case(
        ifs=[
            exp.If(this=exp.LT(this=argument.copy(), expression=_number(low)), true=_number(low)),
            exp.If(this=exp.GT(this=argument.copy(), expression=_number(high)), true=_number(high)),
        ],
        default=argument.copy(),
    )


def _whole(argument: exp.Expression, low: float, high: float, grain: float) -> exp.Expression:
    """Return the value cut to its bounds, in whole grains."""
    cut = _cut(argument, low, high)
    if grain == 1.0 and _is_whole(low) and _is_whole(high):
        inner: exp.Expression = cut
    else:
        scaled = exp.Mul(this=exp.cast(cut, "double"), expression=_double(1 / grain))
        inner = exp.Round(this=scaled)
    return exp.cast(inner, "bigint")


def _double(value: float) -> exp.Expression:
    number = exp.cast(_number(abs(value)), "double")
    return number if value >= 0 else exp.Neg(this=number)


def _is_whole(value: float) -> bool:
    return float(value).is_integer()


def _number(value: float) -> exp.Expression:
    # Whole numbers that no engine takes as integers are written as doubles.
    is_whole = _is_whole(value) and abs(value) < 2**53
    text = repr(int(value)) if is_whole else repr(float(value)).replace("e+", "e")
    return exp.Literal.number(text) if value >= 0 else exp.Neg(this=exp.Literal.number(text[1:]))


def _sum(
    statistics: dict[str, Statistic],
    name: str,
    argument: exp.Expression,
    low: float,
    high: float,
    middle: float,
    grain: float,
    guard: NoiseSettings,
) -> str:
    value = _whole(argument, low, high, grain)
    if middle:
        value = exp.Sub(this=exp.Paren(this=value), expression=_number(round(middle / grain)))
    farthest = max(abs(low - middle), abs(high - middle))
    sensitivity = guard.contribution * math.ceil(farthest / grain)
    tree = exp.cast(exp.Coalesce(this=exp.Sum(this=value), expressions=[_number(0)]), "bigint")
    return _add(statistics, name, tree, max(sensitivity, 1), grain)


def _squares(
    statistics: dict[str, Statistic],
    text: str,
    argument: exp.Expression,
    low: float,
    high: float,
    middle: float,
    guard: NoiseSettings,
) -> str:
    farthest = max(abs(low - middle), abs(high - middle))
    # A grain that keeps the sum of squares within 64 bits and the rounding far below the noise.
    grain = max(farthest**2 / 1e6, 1e-60)
    # In shares of the farthest value, so that no square is too large or too small for a double.
    centred = exp.Sub(
        this=exp.cast(_cut(argument, low, high), "double"), expression=_double(middle)
    )
    share = exp.Div(this=exp.Paren(this=centred), expression=_double(farthest or 1.0))
    square = exp.Mul(this=exp.Paren(this=share), expression=exp.Paren(this=share.copy()))
    scaled = exp.Mul(this=exp.Paren(this=square), expression=_double(farthest**2 / grain))
    whole = exp.cast(exp.Round(this=scaled), "bigint")
    tree = exp.cast(exp.Coalesce(this=exp.Sum(this=whole), expressions=[_number(0)]), "bigint")
    sensitivity = guard.contribution * math.ceil(farthest**2 / grain + 1)
    return _add(statistics, f"squares {text}", tree, sensitivity, grain)


def combined_keys(query: Query, keys: Mapping[str, Sequence[object]]) -> list[str] | None:
    """Return the column of each key if all of them are declared, else None."""
    names = []
    for key in query.keys:
        if not isinstance(key.expression, exp.Column) or key.expression.name not in keys:
            return None
        names.append(key.expression.name)
    return names
