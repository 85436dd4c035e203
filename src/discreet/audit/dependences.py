"""Columns that follow from others, exactly or nearly: total = salary + bonus.

What is proved for each column alone does not hold for both together. The sums of products of all
given columns of numbers are taken in the engine; each column is explained by
those before it, and counts as dependent where hardly anything is left. That is tried on the records
that have a value of each; where some columns have few values, also with fewer columns; and without
the records that are far from all others, since one wrong value would hide what holds for the rest.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from discreet.data.engines.base import Relation
from discreet.data.sql.query import from_clause
from discreet.data.sql.total import DOUBLE, total

__all__ = [
    "EXACTLY",
    "NEARLY",
    "Dependence",
    "centred",
    "column_tree",
    "dependences",
    "families",
    "straight",
]

Floats = npt.NDArray[np.float64]
#: A column follows from others if what they leave of its deviation is less than this share.
NEARLY = 0.05
#: Below this share nothing is left but rounding.
EXACTLY = 1e-6
#: Columns that most records of another have too are tried together.
_MOST = 0.9
#: Fewer records show no dependence.
_FEWEST = 3
#: Records so many deviations from the mean are looked at apart.
_FAR = 4.0


@dataclasses.dataclass(frozen=True)
class Dependence:
    """A column that is a sum of multiples of others, a constant, and something within a slack."""

    column: str
    factors: Mapping[str, float]
    shift: float
    #: Smallest and largest difference between the column and what follows from the others.
    slack: tuple[float, float]

    def __str__(self) -> str:
        said = " + ".join(f"{factor:.6g} · {name}" for name, factor in self.factors.items())
        near = "" if self.slack == (0.0, 0.0) else ", nearly"
        return f"{self.column} = {said} + {self.shift:.6g}{near}: protected together"


def dependences(
    data: Relation, names: Sequence[str], declared: Mapping[str, Sequence[str]] | None = None
) -> list[Dependence]:
    """Return which of the named columns follow from others, found or declared.

    A declared one is kept however much the others leave of it.

    >>> import pandas as pd
    >>> from discreet.data.dataset import read
    >>> frame = pd.DataFrame({"year": [24.0, 36.0, 50.0, 61.0], "age": [3, 1, 4, 1]})
    >>> rows = read(frame.assign(month=frame["year"] / 12)).relation
    >>> [str(one) for one in dependences(rows, ["year", "age", "month"])]
    ['month = 0.0833333 · year + 0: protected together']
    """
    if len(names) < 2:
        return []
    present, together = _present(data, names)
    search = _Search(data)
    found: list[Dependence] = []
    basis: list[str] = []
    # Those with most values first, so that what is known of some records follows from what is known
    # of more. Declared ones last, so that they follow from others and not others from them.
    for column in sorted(names, key=lambda n: (n in (declared or {}), -present[n])):
        wanted = (declared or {}).get(column)
        given = [b for b in basis if wanted is None or b in wanted]
        dense = [b for b in given if together[column, b] >= _MOST * present[column]]
        sparse = [b for b in given if b not in dense and together[column, b] >= _FEWEST]
        one = search.best(column, [given, dense], needed=wanted is not None)
        made = [one] if one is not None else []
        if not made:  # perhaps from one column for some records, and from another for others
            tried = [search.best(column, [[*dense, b], [b]]) for b in sparse]
            made = [one for one in tried if one is not None]
        found += made
        if not made and wanted is None:
            basis.append(column)
    return [d for d in found if d.factors]


class _Search:
    """Looks for a dependence in sets of columns, each set in the engine and once."""

    def __init__(self, data: Relation) -> None:
        self._data = data
        self._seen: dict[tuple[tuple[str, ...], bool], _Moments | None] = {}

    def best(
        self, column: str, sets: Sequence[Sequence[str]], *, needed: bool = False
    ) -> Dependence | None:
        """Return how a column follows from the first set that leaves hardly anything of it.

        Where it is declared (`needed`), from the first set anyway.
        """
        declared: Dependence | None = None
        for given in dict.fromkeys(map(tuple, sets)):
            for trimmed in (False, True):
                moments = self.moments(tuple(sorted((column, *given))), trimmed) if given else None
                if moments is None or moments.scale(column) == 0.0:
                    continue  # a constant tells nothing of others
                factors, left = moments.explained(column, given)
                if left < NEARLY or (needed and declared is None):
                    made = moments.measured(self._data, column, given, factors, left)
                    if left < NEARLY:
                        return made
                    declared = made
        return declared

    def moments(self, names: tuple[str, ...], trimmed: bool) -> _Moments | None:
        """Return the moments of columns; None where too few records have them, or none is far."""
        if (names, trimmed) not in self._seen:
            first = self.moments(names, False) if trimmed else None
            made = None
            if not trimmed or (first is not None and first.has_far):
                made = _Moments.of(self._data, names, first)
            self._seen[names, trimmed] = made
        return self._seen[names, trimmed]


@dataclasses.dataclass(frozen=True)
class _Moments:
    """Means, deviations and products of columns, over the records that have them all."""

    names: tuple[str, ...]
    middles: Floats
    scales: Floats
    matrix: Floats
    #: Whether a record is far from the others.
    has_far: bool
    #: Which records were looked at.
    where: exp.Expression

    @classmethod
    def of(cls, data: Relation, names: tuple[str, ...], whole: _Moments | None) -> _Moments | None:
        """Return the moments; `whole` are those of all records, the far ones among them left out."""
        where = _complete(names)
        if whole is not None:
            near = [
                _near(n, m, s) for n, m, s in zip(names, whole.middles, whole.scales, strict=True)
            ]
            where = cast("exp.Expression", exp.and_(where, *near))
        middles, scales, far, count = _scales(data, names, where)
        if count < max(_FEWEST, len(names) + 1):
            return None
        matrix = _products(data, names, middles, scales, where) / count
        return cls(names, middles, scales, matrix, far, where)

    def scale(self, column: str) -> float:
        """Return the deviation of a column."""
        return float(self.scales[self.names.index(column)])

    def explained(self, column: str, given: Sequence[str]) -> tuple[Floats, float]:
        """Return the factors of others that explain a column best, and the share they leave."""
        places = [self.names.index(name) for name in given]
        return _explained(self.matrix, self.names.index(column), places)

    def measured(
        self, data: Relation, column: str, given: Sequence[str], factors: Floats, left: float
    ) -> Dependence:
        """Return the dependence in the units of the columns."""
        places = [self.names.index(name) for name in given]
        place = self.names.index(column)
        return _measured(
            data, self.names, place, places, factors, self.middles, self.scales, left, self.where
        )


def families(found: Sequence[Dependence], pairs: Sequence[tuple[str, str]] = ()) -> dict[str, str]:
    """Return for each column in a dependence or a pair the name that its whole family goes by.

    >>> made = [Dependence("total", {"salary": 1.0, "bonus": 1.0}, 0.0, (0.0, 0.0))]
    >>> families(made)
    {'bonus': 'bonus', 'salary': 'bonus', 'total': 'bonus'}
    """
    groups: list[set[str]] = []
    for joined in [*({one.column, *one.factors} for one in found), *map(set, pairs)]:
        apart = [g for g in groups if not g & joined]
        groups = [*apart, joined.union(*(g for g in groups if g & joined))]
    return {name: min(group) for group in groups for name in sorted(group)}


def _explained(matrix: Floats, place: int, given: Sequence[int]) -> tuple[Floats, float]:
    """Return the factors of others that explain a column best, and the share of it they leave."""
    if not given:
        return np.zeros(0), 1.0
    part = matrix[np.ix_(given, given)]
    factors, *_ = np.linalg.lstsq(part, matrix[given, place], rcond=1e-12)
    own = matrix[place, place]
    left = own - 2 * factors @ matrix[given, place] + factors @ part @ factors
    return np.asarray(factors), float(np.sqrt(max(left, 0.0) / own)) if own > 0 else 1.0


def straight(data: Relation, column: str, given: Sequence[str]) -> tuple[float, tuple[str, ...]]:
    """Return the share of a column's deviation that a line through others leaves, and which it uses.

    The smaller share of all records and of those that are not far from the others.
    """
    search = _Search(data)
    best: tuple[float, tuple[str, ...]] = (1.0, ())
    for trimmed in (False, True):
        moments = search.moments(tuple(sorted((column, *given))), trimmed)
        if moments is None or moments.scale(column) == 0.0:
            continue
        factors, left = moments.explained(column, given)
        used = tuple(n for n, f in zip(given, factors, strict=True) if abs(f) > max(EXACTLY, left))
        best = min(best, (left, used))
    return best


def column_tree(name: str) -> exp.Expression:
    """Return a column as a number that no arithmetic on it makes fail."""
    added = exp.Add(this=exp.column(name, quoted=True), expression=exp.Literal.number(0))
    return exp.Paren(this=total(added))


def _complete(names: Sequence[str]) -> exp.Expression:
    tests: list[Any] = [
        exp.Not(this=exp.Is(this=exp.column(n, quoted=True), expression=exp.Null())) for n in names
    ]
    return cast("exp.Expression", exp.and_(*tests))


def _fetch(
    data: Relation, values: Mapping[str, exp.Expression], where: exp.Expression | None
) -> Any:
    named = [exp.alias_(exp.cast(tree, DOUBLE), name) for name, tree in values.items()]
    query = exp.select(*named).from_(from_clause(data.query, "t"))
    asked = query if where is None else query.where(where.copy())
    return data.engine.fetch(asked).to_pylist()[0]


def _present(
    data: Relation, names: Sequence[str]
) -> tuple[dict[str, int], dict[tuple[str, str], int]]:
    """Return how many records have a value of each column, and of each two."""
    pairs = list(itertools.combinations_with_replacement(range(len(names)), 2))
    wanted: dict[str, exp.Expression] = {}
    for i, j in pairs:
        case = exp.Case().when(_complete([names[i], names[j]]), exp.Literal.number(1))
        wanted[f"n{i}_{j}"] = exp.Count(this=case)
    row = _fetch(data, wanted, None)
    both = {(names[i], names[j]): int(row[f"n{i}_{j}"]) for i, j in pairs}
    both |= {(two, one): count for (one, two), count in both.items()}
    return {name: both[name, name] for name in names}, both


def _near(name: str, middle: float, scale: float) -> exp.Expression:
    reach = _FAR * (scale or 1.0)
    return exp.Between(
        this=column_tree(name), low=_number(middle - reach), high=_number(middle + reach)
    )


def _scales(
    data: Relation, names: Sequence[str], where: exp.Expression
) -> tuple[Floats, Floats, bool, int]:
    """Return means and deviations, whether a record is far from the others, and their number."""
    wanted: dict[str, exp.Expression] = {"n": exp.Count(this=exp.Star())}
    for place, name in enumerate(names):
        wanted[f"a{place}"] = exp.Avg(this=column_tree(name))
        wanted[f"s{place}"] = exp.StddevPop(this=column_tree(name))
        wanted[f"l{place}"] = exp.Min(this=column_tree(name))
        wanted[f"h{place}"] = exp.Max(this=column_tree(name))
    row = _fetch(data, wanted, where)
    middles, scales, low, high = (
        np.array([row[f"{letter}{place}"] or 0.0 for place in range(len(names))])
        for letter in "aslh"
    )
    far = (np.maximum(middles - low, high - middles) > _FAR * scales).any()
    return middles, scales, bool(far), int(row["n"])


def _number(value: float) -> exp.Expression:
    literal = exp.cast(exp.Literal.number(repr(abs(float(value))).replace("e+", "e")), DOUBLE)
    return exp.Neg(this=literal) if value < 0 else literal


def centred(name: str, middle: float, scale: float) -> exp.Expression:
    """Return a column less its mean and over its deviation."""
    away = exp.Paren(this=exp.Sub(this=column_tree(name), expression=_number(middle)))
    return exp.Paren(this=exp.Div(this=away, expression=_number(scale or 1.0)))


def _products(
    data: Relation,
    names: Sequence[str],
    middles: Floats,
    scales: Floats,
    where: exp.Expression,
) -> npt.NDArray[np.float64]:
    """Return the sums of products of the columns, each less its mean and over its deviation."""
    parts = [centred(n, float(m), float(s)) for n, m, s in zip(names, middles, scales, strict=True)]
    pairs = list(itertools.combinations_with_replacement(range(len(names)), 2))
    wanted: dict[str, exp.Expression] = {
        f"p{i}_{j}": exp.Sum(this=exp.Mul(this=parts[i].copy(), expression=parts[j].copy()))
        for i, j in pairs
    }
    row = _fetch(data, wanted, where)
    matrix = np.zeros((len(names), len(names)))
    for i, j in pairs:
        matrix[i, j] = matrix[j, i] = row[f"p{i}_{j}"] or 0.0
    return matrix


def _measured(
    data: Relation,
    names: Sequence[str],
    place: int,
    given: Sequence[int],
    factors: Floats,
    middles: Floats,
    scales: Floats,
    left: float,
    where: exp.Expression,
) -> Dependence:
    """Return the dependence in the units of the columns, and how far single records are from it."""
    kept = [(g, f) for g, f in zip(given, factors, strict=True) if abs(f) > EXACTLY]
    own = {names[g]: _rounded(float(f * scales[place] / scales[g])) for g, f in kept}
    shift = float(middles[place] - sum(own[names[g]] * middles[g] for g, _ in kept))
    shift = 0.0 if abs(shift) < EXACTLY * float(scales[place]) else _rounded(shift)
    rest: exp.Expression = exp.Sub(this=column_tree(names[place]), expression=_number(shift))
    for name, factor in own.items():
        part = exp.Mul(this=column_tree(name), expression=_number(factor))
        rest = exp.Sub(this=rest, expression=exp.Paren(this=part))
    ends: dict[str, exp.Expression] = {"low": exp.Min(this=rest), "high": exp.Max(this=rest.copy())}
    row = _fetch(data, ends, where)
    slack = float(row["low"] or 0.0), float(row["high"] or 0.0)
    reach = max(abs(slack[0]), abs(slack[1]))
    if left < EXACTLY and reach < EXACTLY * float(scales[place]):
        slack = 0.0, 0.0
    return Dependence(names[place], own, shift, slack)


def _rounded(value: float) -> float:
    """Return a factor without the last digits, which are rounding: 0.29999999998 is 0.3."""
    return float(f"{value:.9g}")
