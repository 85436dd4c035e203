"""Confidential columns that follow from others, exactly or nearly: total = salary + bonus.

What is proved for each column alone does not hold for both together. At opening the sums of
products of all numeric confidential columns are taken in the engine; each column is explained by
those before it, and counts as dependent where hardly anything is left.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from discreet.data.sql.query import from_clause
from discreet.data.sql.total import total
from discreet.errors import InputError
from discreet.queries.guards._base import Protected

__all__ = ["Dependence", "dependences", "families"]

Floats = npt.NDArray[np.float64]
#: A column follows from others if what they leave of its deviation is less than this share.
NEARLY = 0.05
#: Below this share nothing is left but rounding.
EXACTLY = 1e-6


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
    data: Protected, declared: Mapping[str, Sequence[str]] | None = None
) -> list[Dependence]:
    """Return the confidential columns that follow from others, found or declared.

    A declared one is kept however much the others leave of it.
    """
    names = [
        n for n in data.relation.columns if n in data.confidential and data.catalog[n].is_number
    ]
    for column, others in (declared or {}).items():
        for name in (column, *others):
            if name not in names:
                raise InputError(
                    f"{name!r} is not a confidential column of numbers",
                    code="unknown-column",
                    column=name,
                    hint="declare dependences between confidential columns of numbers",
                )
    if len(names) < 2:
        return []
    middles, scales, count = _scales(data, names)
    if count < 3:
        return []
    matrix = _products(data, names, middles, scales) / count
    found: list[Dependence] = []
    basis: list[int] = []
    # Declared ones last, so that they follow from others and not others from them.
    order = sorted(range(len(names)), key=lambda n: (names[n] in (declared or {}), n))
    for place in order:
        wanted = (declared or {}).get(names[place])
        if scales[place] == 0.0:
            continue  # a constant tells nothing of others
        given = [b for b in basis if wanted is None or names[b] in wanted]
        factors, left = _explained(matrix, place, given)
        if left < NEARLY or wanted is not None:
            found.append(_measured(data, names, place, given, factors, middles, scales, left))
        else:
            basis.append(place)
    return [d for d in found if d.factors]


def families(found: Sequence[Dependence]) -> dict[str, str]:
    """Return for each column in a dependence the name that its whole family goes by.

    >>> made = [Dependence("total", {"salary": 1.0, "bonus": 1.0}, 0.0, (0.0, 0.0))]
    >>> families(made)
    {'bonus': 'bonus', 'salary': 'bonus', 'total': 'bonus'}
    """
    groups: list[set[str]] = []
    for one in found:
        joined = {one.column, *one.factors}
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


def _column(name: str) -> exp.Expression:
    added = exp.Add(this=exp.column(name, quoted=True), expression=exp.Literal.number(0))
    return exp.Paren(this=total(added))


def _complete(names: Sequence[str]) -> exp.Expression:
    tests: list[Any] = [
        exp.Not(this=exp.Is(this=exp.column(n, quoted=True), expression=exp.Null())) for n in names
    ]
    return cast("exp.Expression", exp.and_(*tests))


def _fetch(data: Protected, values: Mapping[str, exp.Expression], names: Sequence[str]) -> Any:
    named = [exp.alias_(exp.cast(tree, "double"), name) for name, tree in values.items()]
    query = exp.select(*named).from_(from_clause(data.relation.query, "t"))
    return data.engine.fetch(query.where(_complete(names))).to_pylist()[0]


def _scales(data: Protected, names: Sequence[str]) -> tuple[Floats, Floats, int]:
    wanted: dict[str, exp.Expression] = {"n": exp.Count(this=exp.Star())}
    for place, name in enumerate(names):
        wanted[f"a{place}"] = exp.Avg(this=_column(name))
        wanted[f"s{place}"] = exp.StddevPop(this=_column(name))
    row = _fetch(data, wanted, names)
    middles = np.array([row[f"a{place}"] or 0.0 for place in range(len(names))])
    scales = np.array([row[f"s{place}"] or 0.0 for place in range(len(names))])
    return middles, scales, int(row["n"])


def _number(value: float) -> exp.Expression:
    literal = exp.cast(exp.Literal.number(repr(abs(value)).replace("e+", "e")), "double")
    return exp.Neg(this=literal) if value < 0 else literal


def _centred(name: str, middle: float, scale: float) -> exp.Expression:
    away = exp.Paren(this=exp.Sub(this=_column(name), expression=_number(middle)))
    return exp.Paren(this=exp.Div(this=away, expression=_number(scale or 1.0)))


def _products(
    data: Protected, names: Sequence[str], middles: Floats, scales: Floats
) -> npt.NDArray[np.float64]:
    """Return the sums of products of the columns, each less its mean and over its deviation."""
    parts = [
        _centred(n, float(m), float(s)) for n, m, s in zip(names, middles, scales, strict=True)
    ]
    pairs = list(itertools.combinations_with_replacement(range(len(names)), 2))
    wanted: dict[str, exp.Expression] = {
        f"p{i}_{j}": exp.Sum(this=exp.Mul(this=parts[i].copy(), expression=parts[j].copy()))
        for i, j in pairs
    }
    row = _fetch(data, wanted, names)
    matrix = np.zeros((len(names), len(names)))
    for i, j in pairs:
        matrix[i, j] = matrix[j, i] = row[f"p{i}_{j}"] or 0.0
    return matrix


def _measured(
    data: Protected,
    names: Sequence[str],
    place: int,
    given: Sequence[int],
    factors: Floats,
    middles: Floats,
    scales: Floats,
    left: float,
) -> Dependence:
    """Return the dependence in the units of the columns, and how far single records are from it."""
    kept = [(g, f) for g, f in zip(given, factors, strict=True) if abs(f) > EXACTLY]
    own = {names[g]: _rounded(float(f * scales[place] / scales[g])) for g, f in kept}
    shift = float(middles[place] - sum(own[names[g]] * middles[g] for g, _ in kept))
    shift = 0.0 if abs(shift) < EXACTLY * float(scales[place]) else _rounded(shift)
    rest: exp.Expression = exp.Sub(this=_column(names[place]), expression=_number(shift))
    for name, factor in own.items():
        part = exp.Mul(this=_column(name), expression=_number(factor))
        rest = exp.Sub(this=rest, expression=exp.Paren(this=part))
    ends: dict[str, exp.Expression] = {"low": exp.Min(this=rest), "high": exp.Max(this=rest.copy())}
    row = _fetch(data, ends, [names[place], *own])
    slack = float(row["low"] or 0.0), float(row["high"] or 0.0)
    reach = max(abs(slack[0]), abs(slack[1]))
    if left < EXACTLY and reach < EXACTLY * float(scales[place]):
        slack = 0.0, 0.0
    return Dependence(names[place], own, shift, slack)


def _rounded(value: float) -> float:
    """Return a factor without the last digits, which are rounding: 0.29999999998 is 0.3."""
    return float(f"{value:.9g}")
