"""Confidential columns that follow from each other in a part of the records.

Total pay is the salary of everybody in the office, and more only on shifts: over all records neither
follows from the other. So the products of all confidential columns are added up in each group of a
public column with few values. Columns that are equal in many records count as well, whatever tells
these records apart.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from discreet.audit.moments import EXACTLY, NEARLY, centred, column_tree, complete
from discreet.data.sql.query import from_clause
from discreet.data.sql.total import DOUBLE
from discreet.queries.guards._base import Protected
from discreet.queries.guards._profiles import public_columns

__all__ = ["within_groups"]

#: Public columns with more values are not looked at group by group.
_MOST_GROUPS = 50
#: Fewer records of a group lie on a line by chance.
_FEWEST = 30
#: Share of the records in which two columns have the same value, other than zero.
_EQUAL = 0.1


def within_groups(data: Protected, names: Sequence[str]) -> list[tuple[str, str]]:
    """Return pairs of columns that are equal in many records, or on a line in a public group."""
    pairs = list(itertools.combinations(names, 2))
    wanted: dict[str, exp.Expression] = {"n": exp.Count(this=exp.Star())}
    for place, name in enumerate(names):
        wanted[f"a{place}"] = exp.Avg(this=column_tree(name))
        wanted[f"s{place}"] = exp.StddevPop(this=column_tree(name))
    for place, (one, other) in enumerate(pairs):
        wanted[f"e{place}"] = exp.Count(this=_case(_equal(one, other), exp.Literal.number(1)))
    groups = public_columns(data)
    for place, name in enumerate(groups):
        distinct = exp.Distinct(expressions=[exp.column(name, quoted=True)])
        wanted[f"d{place}"] = exp.Count(this=distinct)
    row = _rows(data, data.relation.query, wanted)[0]
    found = [
        pair
        for place, pair in enumerate(pairs)
        if row[f"e{place}"] >= max(_FEWEST, _EQUAL * row["n"])
    ]
    scales = [(float(row[f"a{n}"] or 0.0), float(row[f"s{n}"] or 0.0)) for n in range(len(names))]
    for place, name in enumerate(groups):
        if 1 < row[f"d{place}"] <= _MOST_GROUPS:
            found += _on_lines(data, names, scales, name)
    return sorted(set(found))


def _on_lines(
    data: Protected, names: Sequence[str], scales: Sequence[tuple[float, float]], by: str
) -> list[tuple[str, str]]:
    """Return pairs of columns that lie on a straight line in some group of a public column."""
    pairs = list(itertools.combinations(zip(names, scales, strict=True), 2))
    values: dict[str, exp.Expression] = {"k": exp.column(by, quoted=True)}
    wanted: dict[str, exp.Expression] = {}
    for place, two in enumerate(pairs):
        both = complete([name for name, _ in two])
        for word, (name, scale) in zip("xy", two, strict=True):
            values[f"{word}{place}"] = _case(both, centred(column_tree(name), *scale))
        x, y = (exp.column(f"{word}{place}", quoted=True) for word in "xy")
        wanted |= {
            f"n{place}": exp.Count(this=x), f"x{place}": exp.Avg(this=x), f"y{place}": exp.Avg(this=y),
            f"xx{place}": exp.Avg(this=_times(x, x)), f"yy{place}": exp.Avg(this=_times(y, y)),
            f"xy{place}": exp.Avg(this=_times(x, y)),
        }  # fmt: skip
    named = [exp.alias_(tree, name) for name, tree in values.items()]
    inner = exp.select(*named).from_(from_clause(data.relation.query, "t"))
    rows = _rows(data, inner, wanted, "k")
    return [
        (one[0], other[0])
        for place, (one, other) in enumerate(pairs)
        if any(_is_line(row, place) for row in rows)
    ]


def _is_line(row: dict[str, Any], place: int) -> bool:
    if row[f"n{place}"] < _FEWEST:
        return False
    words = ("x", "y", "xx", "yy", "xy")
    x, y, xx, yy, xy = (np.float64(row[f"{word}{place}"] or 0.0) for word in words)
    deviations: npt.NDArray[np.float64] = np.array([xx - x * x, yy - y * y])
    # A column that hardly differs within the group is on every line.
    if (deviations < EXACTLY).any() or not np.isfinite(deviations).all():
        return False
    together = xy - x * y
    return bool(1 - together**2 / deviations.prod() < NEARLY**2)


def _equal(one: str, other: str) -> exp.Expression:
    same = exp.EQ(this=column_tree(one), expression=column_tree(other))
    zero = exp.EQ(this=column_tree(one), expression=exp.Literal.number(0))
    return exp.And(this=same, expression=exp.Not(this=zero))


def _case(test: exp.Expression, value: exp.Expression) -> exp.Expression:
    return exp.Case(ifs=[exp.If(this=test, true=value)])


def _times(one: exp.Expression, other: exp.Expression) -> exp.Expression:
    return exp.Mul(this=one.copy(), expression=other.copy())


def _rows(
    data: Protected, rows: exp.Query, wanted: dict[str, exp.Expression], by: str | None = None
) -> list[dict[str, Any]]:
    """Return aggregates, by the values of a column if one is named. Any: numbers, or none."""
    named = [exp.alias_(exp.cast(tree.copy(), DOUBLE), name) for name, tree in wanted.items()]
    query = exp.select(*named).from_(from_clause(rows, "t"))
    query = query if by is None else query.group_by(exp.column(by, quoted=True))
    found: list[dict[str, Any]] = data.engine.fetch(query).to_pylist()
    return found
