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

from discreet.audit.dependences import EXACTLY, NEARLY, centred, column_tree
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
        wanted[f"e{place}"] = exp.Count(this=_case(_equal(one, other)))
    groups = public_columns(data)
    for place, name in enumerate(groups):
        distinct = exp.Distinct(expressions=[exp.column(name, quoted=True)])
        wanted[f"d{place}"] = exp.Count(this=distinct)
    row = _rows(data, wanted, None)[0]
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
    parts = [centred(name, *scale) for name, scale in zip(names, scales, strict=True)]
    found = []
    for one, other in itertools.combinations(range(len(names)), 2):
        x, y = parts[one], parts[other]
        both = [exp.Not(this=exp.Is(this=exp.column(names[n], quoted=True), expression=exp.Null()))
                for n in (one, other)]  # fmt: skip
        wanted: dict[str, exp.Expression] = {
            "n": exp.Count(this=exp.Star()), "x": exp.Avg(this=x), "y": exp.Avg(this=y),
            "xx": exp.Avg(this=_times(x, x)), "yy": exp.Avg(this=_times(y, y)),
            "xy": exp.Avg(this=_times(x, y)),
        }  # fmt: skip
        rows = _rows(data, wanted, by, exp.and_(*both))
        if any(_is_line(row) for row in rows):
            found.append((names[one], names[other]))
    return found


def _is_line(row: dict[str, Any]) -> bool:
    if row["n"] < _FEWEST:
        return False
    x, y, xx, yy, xy = (np.float64(row[word] or 0.0) for word in ("x", "y", "xx", "yy", "xy"))
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


def _case(test: exp.Expression) -> exp.Expression:
    return exp.Case(ifs=[exp.If(this=test, true=exp.Literal.number(1))])


def _times(one: exp.Expression, other: exp.Expression) -> exp.Expression:
    return exp.Mul(this=one.copy(), expression=other.copy())


def _rows(
    data: Protected, wanted: dict[str, exp.Expression], by: str | None, where: Any = None
) -> list[dict[str, Any]]:
    """Return aggregates, by the values of a column if one is named. Any: numbers, or none."""
    named = [exp.alias_(exp.cast(tree.copy(), DOUBLE), name) for name, tree in wanted.items()]
    query = exp.select(*named).from_(from_clause(data.relation.query, "t"))
    query = query if where is None else query.where(where)
    query = query if by is None else query.group_by(exp.column(by, quoted=True))
    found: list[dict[str, Any]] = data.engine.fetch(query).to_pylist()
    return found
