"""Confidential numbers that follow from public columns, and from each other along a bent line.

Where everybody of a grade earns the same, the mean of a grade is everybody's salary, however many
they are. So each confidential column is looked at within groups that are alike in a public column, in
that which tells most of it together with another one, and in all of them: it follows from them where
nearly all groups have one value only. It follows nearly where hardly anything of its deviation is
left inside groups, or beside a straight line through public numbers. A tax that rises with the
salary, in steps, is no multiple of it; it is found by the ranks of both.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sqlglot import exp

from discreet.audit.moments import EXACTLY, NEARLY, Search, centred, column_tree
from discreet.data.sql.query import from_clause
from discreet.data.sql.total import DOUBLE
from discreet.errors import InputError
from discreet.queries.guards._base import Protected
from discreet.queries.guards._dependences import confidential_numbers, public_numbers
from discreet.queries.guards._profiles import public_columns
from discreet.queries.guards._within_groups import within_groups

__all__ = ["Followed", "bent", "followed", "require_straight"]

#: Share of the records in groups of two or more that must have the most frequent value of theirs.
_ALIKE = 0.98
#: Share of all records that must be in groups of two or more, else groups show nothing.
_GROUPED = 0.5
#: Fewer records show nothing either: small tables lie on a line by chance.
_FEWEST = 30
_COUNT = exp.Count(this=exp.Star())


@dataclasses.dataclass(frozen=True)
class Followed:
    """A confidential column that public columns tell."""

    column: str
    by: tuple[str, ...]
    #: Whether they tell it exactly.
    exactly: bool

    def __str__(self) -> str:
        by = ", ".join(self.by)
        if self.exactly:
            return f"{self.column} follows from {by}: exact answers tell it of everybody"
        return (
            f"{self.column} follows from {by}, nearly: exact answers tell it of everybody, nearly"
        )


@dataclasses.dataclass(frozen=True)
class _Own:
    """A column by itself."""

    name: str
    records: float
    middle: float
    spread: float

    @classmethod
    def of(cls, data: Protected, name: str) -> _Own | None:
        """Return what a column is by itself; None if nearly all records have one value."""
        m, v = (exp.column(word, quoted=True) for word in "mv")
        column = column_tree(name)
        counts = exp.select(exp.alias_(exp.cast(column, DOUBLE), "v"), exp.alias_(_COUNT, "m"))
        counts = counts.from_(from_clause(data.relation.query, "t")).where(_known(name))
        counts = counts.group_by(exp.column(name, quoted=True))
        wanted: dict[str, exp.Expression] = {"top": exp.Max(this=m), "n": exp.Sum(this=m), "v": exp.Avg(this=v),
                  "spread": exp.StddevPop(this=v)}  # fmt: skip
        row = _fetch(data, exp.select(*_named(wanted)).from_(from_clause(counts, "c")))
        top, records, middle, spread = (float(row[word] or 0.0) for word in wanted)
        if top >= _ALIKE * records or not 0.0 < spread < float("inf"):
            return None
        return cls(name, records, middle, spread)


def followed(data: Protected, searches: Sequence[Search]) -> list[Followed]:
    """Return the confidential columns of numbers that follow from public columns.

    Lines are looked for in each of the searches: straight ones, and products.
    """
    public = public_columns(data)
    if not public or data.count < _FEWEST:
        return []
    owns = [own for name in confidential_numbers(data) if (own := _Own.of(data, name)) is not None]
    found: dict[str, Followed] = {}
    left: dict[str, dict[tuple[str, ...], float]] = {own.name: {} for own in owns}
    for name in public:
        _look(data, (name,), owns, found, left)
    for own in owns:  # the column that tells most, together with each other one
        if own.name not in found and left[own.name] and len(public) > 2:
            (best,) = min(left[own.name], key=lambda by: left[own.name][by])
            for name in public:
                if name != best and own.name not in found:
                    _look(data, (best, name), [own], found, left)
    if len(public) > 1:
        _look(data, tuple(public), [own for own in owns if own.name not in found], found, left)
    _along_lines(data, [own.name for own in owns if own.name not in found], searches, found)
    for column, leaves in left.items():
        enough = [by for by, share in leaves.items() if share < NEARLY]
        if column not in found and enough:
            found[column] = Followed(column, min(enough, key=len), False)
    return [found[own.name] for own in owns if own.name in found]


def bent(data: Protected, searches: Sequence[Search]) -> list[tuple[str, str]]:
    """Return pairs of confidential columns of which one follows from the other.

    They rise or fall together in nearly all records, one is a straight line through the other and
    public numbers or a product of them (yearly pay is the wage times the hours), or they do so in a
    public group: total pay is the salary of all who work in offices.
    """
    names = confidential_numbers(data)
    if len(names) < 2 or data.count < _FEWEST:
        return []
    found = []
    for search, column in itertools.product(searches, names):
        others = [name for name in names if name != column]
        share, used = search.straight(column, [*others, *public_numbers(data)])
        if share < NEARLY:
            found += [(column, name) for name in used if name in others]
    for one, other in itertools.combinations(names, 2):
        ranks = [
            exp.alias_(exp.cast(_ranked(name), DOUBLE), alias)
            for name, alias in ((one, "x"), (other, "y"))
        ]
        both = exp.and_(*(_known(name) for name in (one, other)))
        inner = exp.select(*ranks).from_(from_clause(data.relation.query, "t")).where(both)
        x, y = (exp.column(name, quoted=True) for name in ("x", "y"))
        wanted: dict[str, exp.Expression] = {"n": exp.Count(this=exp.Star()), "x": exp.Avg(this=x), "y": exp.Avg(this=y),
                  "xx": exp.Avg(this=_times(x, x)), "yy": exp.Avg(this=_times(y, y)),
                  "xy": exp.Avg(this=_times(x, y))}  # fmt: skip
        row = _fetch(data, exp.select(*_named(wanted)).from_(from_clause(inner, "r")))
        if int(row["n"] or 0) < _FEWEST:
            continue
        of_x, of_y = (float(row[v + v] - row[v] ** 2) for v in ("x", "y"))
        together = float(row["xy"] - row["x"] * row["y"])
        if min(of_x, of_y) > 0 and 1 - together**2 / (of_x * of_y) < NEARLY**2:
            found.append((one, other))
    found += within_groups(data, names)
    return sorted({(min(two), max(two)) for two in found})


def require_straight(pairs: Sequence[tuple[str, str]], family: Mapping[str, str]) -> None:
    """Refuse intervals of columns that tell of each other otherwise than along a straight line.

    The interval of one, put through what everybody may know of how they go together, would narrow
    the other. Those along a straight line have cells that follow from each other.
    """
    for one, other in pairs:
        if one not in family or family[one] != family.get(other):
            raise InputError(
                f"{one!r} and {other!r} follow from each other: an interval of one would narrow "
                "the other",
                code="dependent-interval",
                column=other,
                hint=f"leave one of them out of the data, or declare dependent: {{{other}: [{one}]}}, "
                "which answers about it from the other's intervals",
            )


def _look(
    data: Protected,
    by: tuple[str, ...],
    columns: Sequence[_Own],
    found: dict[str, Followed],
    left: dict[str, dict[tuple[str, ...], float]],
) -> None:
    """Look at columns within groups that are alike in some public columns."""
    for own in columns:
        name = own.name
        several, groups, alike, inside = _groups(data, by, own)
        if several < max(_FEWEST, _GROUPED * own.records):
            continue
        if alike >= _ALIKE * several:
            found.setdefault(name, Followed(name, by, True))
        elif several > groups:
            left[name][by] = float(np.sqrt(max(inside, 0.0) / (several - groups)))


def _groups(data: Protected, by: Sequence[str], own: _Own) -> tuple[float, ...]:
    """Return what groups of two or more records say of a column.

    How many records are in them; how many groups there are; how many records have the most frequent
    value of their group; and the squares of their distances from its mean, in deviations of all.
    """
    name = own.name
    keys = [exp.column(key, quoted=True) for key in by]
    named = [exp.alias_(key, f"k{place}") for place, key in enumerate(keys)]
    # Over the deviation, so that squares stay small.
    value = centred(column_tree(name), own.middle, own.spread)
    counts = (
        exp.select(*named, exp.alias_(exp.cast(value, DOUBLE), "v"), exp.alias_(_COUNT, "m"))
        .from_(from_clause(data.relation.query, "t"))
        .where(_known(name))
        .group_by(*(key.copy() for key in keys), exp.column(name, quoted=True))
    )
    v, m, n = (exp.column(word, quoted=True) for word in "vmn")
    held: dict[str, exp.Expression] = {"n": exp.Sum(this=m), "top": exp.Max(this=m), "v": exp.Sum(this=_times(m, v)),
            "vv": exp.Sum(this=_times(m, _times(v, v)))}  # fmt: skip
    kept = [exp.column(f"k{place}", quoted=True) for place in range(len(by))]
    groups = exp.select(*_named(held)).from_(from_clause(counts, "c")).group_by(*kept)
    inside = exp.Sub(
        this=exp.column("vv", quoted=True),
        expression=exp.Div(this=_times(v, v), expression=n.copy()),
    )
    wanted: dict[str, exp.Expression] = {"several": exp.Sum(this=n), "groups": _COUNT, "inside": exp.Sum(this=inside),
              "alike": exp.Sum(this=exp.column("top", quoted=True))}  # fmt: skip
    several = exp.GTE(this=n.copy(), expression=exp.Literal.number(2))
    row = _fetch(data, exp.select(*_named(wanted)).from_(from_clause(groups, "g")).where(several))
    return tuple(float(row[word] or 0.0) for word in ("several", "groups", "alike", "inside"))


def _along_lines(
    data: Protected,
    names: Sequence[str],
    searches: Sequence[Search],
    found: dict[str, Followed],
) -> None:
    """Look for columns on a straight line through public numbers."""
    numbers = public_numbers(data)
    for column in names if numbers else ():
        share, used = min(search.straight(column, numbers) for search in searches)
        if used and share < NEARLY:
            found[column] = Followed(column, used, share < EXACTLY)


def _known(name: str) -> exp.Expression:
    return exp.Not(this=exp.Is(this=exp.column(name, quoted=True), expression=exp.Null()))


def _ranked(name: str) -> exp.Expression:
    order = exp.Order(expressions=[exp.Ordered(this=column_tree(name), nulls_first=False)])
    return exp.Window(this=exp.Rank(), order=order)


def _times(one: exp.Expression, other: exp.Expression) -> exp.Expression:
    return exp.Mul(this=one.copy(), expression=other.copy())


def _named(values: Mapping[str, exp.Expression]) -> list[Any]:
    return [exp.alias_(exp.cast(tree.copy(), DOUBLE), name) for name, tree in values.items()]


def _fetch(data: Protected, query: exp.Select) -> dict[str, Any]:
    """Return the one row of a query. Any: numbers, or none."""
    row: dict[str, Any] = data.engine.fetch(query).to_pylist()[0]
    return row
