"""Means, deviations and products of columns, and what a straight line through some leaves of another.

They are taken in the engine, over the records that have a value of each column. One wrong value
would hide what holds for the rest, so they are also taken without the records that are far from all
others. In logarithms, a straight line is a product: yearly pay is the hourly wage times the hours.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from discreet.data.engines.base import Relation
from discreet.data.sql.query import from_clause
from discreet.data.sql.total import DOUBLE, total

__all__ = [
    "EXACTLY",
    "FEWEST",
    "NEARLY",
    "Moments",
    "Scale",
    "Search",
    "centred",
    "column_tree",
    "complete",
    "explained",
    "fetched",
    "number_tree",
    "value",
]

Floats = npt.NDArray[np.float64]
#: How values are looked at: as they are, or as the logarithms of those above zero.
Scale = Literal["plain", "logarithm"]
#: A column follows from others if what they leave of its deviation is less than this share.
NEARLY = 0.05
#: Below this share nothing is left but rounding.
EXACTLY = 1e-6
#: Fewer records show no dependence.
FEWEST = 3
#: Records so many deviations from the mean are looked at apart.
_FAR = 4.0
#: Logarithms of fewer of the records than this share say nothing of the others.
_POSITIVE = 0.5


class Search:
    """Looks at sets of columns, each set in the engine and once.

    `names` are the columns that will be looked at; if all `rows` records have them all, what is
    asked of some of them is read off what is known of all.
    """

    def __init__(
        self, data: Relation, names: Sequence[str] = (), rows: int = 0, scale: Scale = "plain"
    ) -> None:
        self.data = data
        self._names = tuple(sorted(names))
        self._rows = rows
        self._scale = scale
        self._seen: dict[tuple[tuple[str, ...], bool], Moments | None] = {}

    def moments(self, names: Sequence[str], *, trimmed: bool) -> Moments | None:
        """Return the moments of columns; None where too few records have them, or none is far."""
        key = tuple(sorted(names)), trimmed
        if key not in self._seen:
            self._seen[key] = self._trimmed(key[0]) if trimmed else self._all(key[0])
        return self._seen[key]

    def straight(self, column: str, given: Sequence[str]) -> tuple[float, tuple[str, ...]]:
        """Return the share of a column's deviation that a line through others leaves, and which it uses.

        The smaller share of all records and of those that are not far from the others.
        """
        best: tuple[float, tuple[str, ...]] = (1.0, ())
        for trimmed in (False, True):
            moments = self.moments((column, *given), trimmed=trimmed)
            if moments is None or moments.deviation(column) == 0.0:
                continue
            factors, left = moments.explained(column, given)
            used = tuple(
                n for n, f in zip(given, factors, strict=True) if abs(f) > max(EXACTLY, left)
            )
            best = min(best, (left, used))
        return best

    def _all(self, names: tuple[str, ...]) -> Moments | None:
        if names != self._names and set(names) < set(self._names):
            whole = self.moments(self._names, trimmed=False)
            if whole is not None and whole.records == self._rows:
                return whole.of_some(names)
        return self._measured(names, self._values(names))

    def _trimmed(self, names: tuple[str, ...]) -> Moments | None:
        first = self.moments(names, trimmed=False)
        if first is None or not first.far.any():
            return None
        near = [
            _is_near(value(place), float(middle), float(deviation))
            for place, (middle, deviation) in enumerate(
                zip(first.middles, first.deviations, strict=True)
            )
        ]
        places = [value(place) for place in range(len(names))]
        return self._measured(names, _chosen(places, self._values(names)).where(*near))

    def _values(self, names: Sequence[str]) -> exp.Select:
        """Return the records that have a value of each column, as numbers v0, v1 and so on."""
        rows = _chosen([column_tree(name) for name in names], self.data.query)
        rows = rows.where(complete(names))
        if self._scale == "plain":
            return rows
        places = [value(place) for place in range(len(names))]
        zero = exp.Literal.number(0)
        positive = [exp.GT(this=one, expression=zero.copy()) for one in places]
        # An engine may compute what it leaves out later: what has no logarithm counts as 1.
        safe = [
            exp.Ln(this=exp.Case(ifs=[exp.If(this=test.copy(), true=one.copy())], default=number_tree(1)))
            for test, one in zip(positive, places, strict=True)
        ]  # fmt: skip
        return _chosen(safe, rows).where(*positive)

    def _measured(self, names: tuple[str, ...], rows: exp.Select) -> Moments | None:
        middles, deviations, far, records = _scales(self.data, rows, len(names))
        least = _POSITIVE * self._rows if self._scale == "logarithm" else FEWEST
        if records < max(least, FEWEST, len(names) + 1):
            return None
        matrix = _products(self.data, rows, middles, deviations) / records
        return Moments(names, middles, deviations, matrix, far, records, rows)


@dataclasses.dataclass(frozen=True, eq=False)
class Moments:
    """Means, deviations and products of columns, over the records that have them all."""

    names: tuple[str, ...]
    middles: Floats
    deviations: Floats
    matrix: Floats
    #: Of each column, whether a record is far from the others.
    far: npt.NDArray[np.bool_]
    records: int
    #: Those that were looked at: column i is v_i.
    rows: exp.Select

    def of_some(self, names: tuple[str, ...]) -> Moments:
        """Return the moments of fewer columns, over the same records."""
        places = [self.names.index(name) for name in names]
        return dataclasses.replace(
            self,
            names=names,
            middles=self.middles[places],
            deviations=self.deviations[places],
            matrix=self.matrix[np.ix_(places, places)],
            far=self.far[places],
            rows=_chosen([value(place) for place in places], self.rows),
        )

    def middle(self, column: str) -> float:
        """Return the mean of a column."""
        return float(self.middles[self.names.index(column)])

    def deviation(self, column: str) -> float:
        """Return the deviation of a column."""
        return float(self.deviations[self.names.index(column)])

    def explained(self, column: str, given: Sequence[str]) -> tuple[Floats, float]:
        """Return the factors of others that explain a column best, and the share they leave.

        Factors are of columns less their means and over their deviations.
        """
        places = [self.names.index(name) for name in given]
        return explained(self.matrix, self.names.index(column), places)


def explained(matrix: Floats, own: int, given: Sequence[int]) -> tuple[Floats, float]:
    """Return the factors of some columns that explain another best, by the products of all.

    Also returns the share of its deviation that they leave.
    """
    if not given:
        return np.zeros(0), 1.0
    part, beside = matrix[np.ix_(given, given)], matrix[given, own]
    factors, *_ = np.linalg.lstsq(part, beside, rcond=1e-12)
    square = matrix[own, own]
    left = square - 2 * factors @ beside + factors @ part @ factors
    share = float(np.sqrt(max(left, 0.0) / square)) if square > 0 else 1.0
    return np.asarray(factors), share


def column_tree(name: str) -> exp.Expression:
    """Return a column as a number that no arithmetic on it makes fail."""
    added = exp.Add(this=exp.column(name, quoted=True), expression=exp.Literal.number(0))
    return exp.Paren(this=total(added))


def number_tree(value: float) -> exp.Expression:
    """Return a number as a double."""
    literal = exp.cast(exp.Literal.number(repr(abs(float(value))).replace("e+", "e")), DOUBLE)
    return exp.Neg(this=literal) if value < 0 else literal


def centred(value: exp.Expression, middle: float, deviation: float) -> exp.Expression:
    """Return a number less its mean and over its deviation."""
    away = exp.Paren(this=exp.Sub(this=value, expression=number_tree(middle)))
    return exp.Paren(this=exp.Div(this=away, expression=number_tree(deviation or 1.0)))


def complete(names: Sequence[str]) -> exp.Expression:
    """Return the condition that a record has a value of each column."""
    tests: list[Any] = [
        exp.Not(this=exp.Is(this=exp.column(n, quoted=True), expression=exp.Null())) for n in names
    ]
    return cast("exp.Expression", exp.and_(*tests))


def value(place: int) -> exp.Column:
    """Return the number of a column, by its place among those looked at."""
    return exp.column(f"v{place}", quoted=True)


def fetched(data: Relation, rows: exp.Query, wanted: Mapping[str, exp.Expression]) -> Any:
    """Return aggregates over some records. Any: a number, or none, by name."""
    named = [exp.alias_(exp.cast(tree, DOUBLE), name) for name, tree in wanted.items()]
    return data.engine.fetch(exp.select(*named).from_(from_clause(rows, "t"))).to_pylist()[0]


def _chosen(values: Sequence[exp.Expression], rows: exp.Query) -> exp.Select:
    named = [exp.alias_(tree.copy(), f"v{place}", quoted=True) for place, tree in enumerate(values)]
    return exp.select(*named).from_(from_clause(rows, "t"))


def _is_near(number: exp.Expression, middle: float, deviation: float) -> exp.Expression:
    reach = _FAR * (deviation or 1.0)
    return exp.Between(
        this=number, low=number_tree(middle - reach), high=number_tree(middle + reach)
    )


def _scales(
    data: Relation, rows: exp.Select, columns: int
) -> tuple[Floats, Floats, npt.NDArray[np.bool_], int]:
    """Return means and deviations, which columns have a far record, and the number of records."""
    wanted: dict[str, exp.Expression] = {"n": exp.Count(this=exp.Star())}
    for place in range(columns):
        wanted[f"a{place}"] = exp.Avg(this=value(place))
        wanted[f"s{place}"] = exp.StddevPop(this=value(place))
        wanted[f"l{place}"] = exp.Min(this=value(place))
        wanted[f"h{place}"] = exp.Max(this=value(place))
    row = fetched(data, rows, wanted)
    middles, deviations, low, high = (
        np.array([row[f"{letter}{place}"] or 0.0 for place in range(columns)]) for letter in "aslh"
    )
    far = np.maximum(middles - low, high - middles) > _FAR * deviations
    return middles, deviations, far, int(row["n"])


def _products(data: Relation, rows: exp.Select, middles: Floats, deviations: Floats) -> Floats:
    """Return the sums of products of the columns, each less its mean and over its deviation."""
    ends = enumerate(zip(middles, deviations, strict=True))
    parts = [centred(value(place), float(m), float(s)) for place, (m, s) in ends]
    pairs = list(itertools.combinations_with_replacement(range(len(parts)), 2))
    wanted: dict[str, exp.Expression] = {
        f"p{i}_{j}": exp.Sum(this=exp.Mul(this=value(i), expression=value(j))) for i, j in pairs
    }
    row = fetched(data, _chosen(parts, rows), wanted)
    matrix = np.zeros((len(parts), len(parts)))
    for i, j in pairs:
        matrix[i, j] = matrix[j, i] = row[f"p{i}_{j}"] or 0.0
    return matrix
