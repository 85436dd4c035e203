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

from sqlglot import exp

from discreet.audit.moments import (
    EXACTLY,
    FEWEST,
    NEARLY,
    Floats,
    Moments,
    Search,
    complete,
    fetched,
    number_tree,
    value,
)
from discreet.data.engines.base import Relation

__all__ = ["Dependence", "dependences", "families"]

#: Columns that most records of another have too are tried together.
_MOST = 0.9


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
    data: Relation,
    names: Sequence[str],
    declared: Mapping[str, Sequence[str]] | None = None,
    search: Search | None = None,
) -> list[Dependence]:
    """Return which of the named columns follow from others, found or declared.

    A declared one is kept however much the others leave of it. `search` holds what was looked at before.

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
    search = search or Search(data)
    found: list[Dependence] = []
    basis: list[str] = []
    # Those with most values first, so that what is known of some records follows from what is known
    # of more. Declared ones last, so that they follow from others and not others from them.
    for column in sorted(names, key=lambda n: (n in (declared or {}), -present[n])):
        wanted = (declared or {}).get(column)
        given = [b for b in basis if wanted is None or b in wanted]
        dense = [b for b in given if together[column, b] >= _MOST * present[column]]
        sparse = [b for b in given if b not in dense and together[column, b] >= FEWEST]
        one = _best(search, column, [given, dense], needed=wanted is not None)
        made = [one] if one is not None else []
        if not made:  # perhaps from one column for some records, and from another for others
            tried = [_best(search, column, [[*dense, b], [b]]) for b in sparse]
            made = [one for one in tried if one is not None]
        found += made
        if not made and wanted is None:
            basis.append(column)
    return [d for d in found if d.factors]


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


def _best(
    search: Search, column: str, sets: Sequence[Sequence[str]], *, needed: bool = False
) -> Dependence | None:
    """Return how a column follows from the first set that leaves hardly anything of it.

    Where it is declared (`needed`), from the first set anyway.
    """
    declared: Dependence | None = None
    for given in dict.fromkeys(map(tuple, sets)):
        for trimmed in (False, True):
            moments = search.moments((column, *given), trimmed=trimmed) if given else None
            if moments is None or moments.deviation(column) == 0.0:
                continue  # a constant tells nothing of others
            factors, left = moments.explained(column, given)
            if left < NEARLY or (needed and declared is None):
                made = _measured(search.data, moments, column, given, factors, left)
                if left < NEARLY:
                    return made
                declared = made
    return declared


def _present(
    data: Relation, names: Sequence[str]
) -> tuple[dict[str, int], dict[tuple[str, str], int]]:
    """Return how many records have a value of each column, and of each two."""
    pairs = list(itertools.combinations_with_replacement(range(len(names)), 2))
    wanted: dict[str, exp.Expression] = {}
    for i, j in pairs:
        case = exp.Case().when(complete([names[i], names[j]]), exp.Literal.number(1))
        wanted[f"n{i}_{j}"] = exp.Count(this=case)
    row = fetched(data, data.query, wanted)
    both = {(names[i], names[j]): int(row[f"n{i}_{j}"]) for i, j in pairs}
    both |= {(two, one): count for (one, two), count in both.items()}
    return {name: both[name, name] for name in names}, both


def _measured(
    data: Relation,
    moments: Moments,
    column: str,
    given: Sequence[str],
    factors: Floats,
    left: float,
) -> Dependence:
    """Return the dependence in the units of the columns, and how far single records are from it."""
    deviation = moments.deviation(column)
    own = {
        name: _rounded(float(factor * deviation / moments.deviation(name)))
        for name, factor in zip(given, factors, strict=True)
        if abs(factor) > EXACTLY
    }
    shift = moments.middle(column) - sum(f * moments.middle(name) for name, f in own.items())
    shift = 0.0 if abs(shift) < EXACTLY * deviation else _rounded(shift)
    places = {name: value(place) for place, name in enumerate(moments.names)}
    rest: exp.Expression = exp.Sub(this=places[column], expression=number_tree(shift))
    for name, factor in own.items():
        part = exp.Mul(this=places[name], expression=number_tree(factor))
        rest = exp.Sub(this=rest, expression=exp.Paren(this=part))
    ends: dict[str, exp.Expression] = {"low": exp.Min(this=rest), "high": exp.Max(this=rest.copy())}
    row = fetched(data, moments.rows, ends)
    slack = float(row["low"] or 0.0), float(row["high"] or 0.0)
    reach = max(abs(slack[0]), abs(slack[1]))
    if left < EXACTLY and reach < EXACTLY * deviation:
        slack = 0.0, 0.0
    return Dependence(column, own, shift, slack)


def _rounded(value: float) -> float:
    """Return a factor without the last digits, which are rounding: 0.29999999998 is 0.3."""
    return float(f"{value:.9g}")
