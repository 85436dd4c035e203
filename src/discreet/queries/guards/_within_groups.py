"""Confidential columns that follow from each other in a part of the records.

Total pay is the salary of everybody in the office, and more only on shifts: over all records neither
follows from the other. So the products of all confidential columns are added up in each group of a
public column with few values. A bonus may be another share of the salary above some age, or above
some salary: numbers and dates with many values, confidential ones too, are cut into ranges, and a
bent line is nearly straight in each. Columns that are equal in many records count as well, whatever
tells these records apart.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from sqlglot import exp

from discreet.audit.moments import (
    EXACTLY,
    NEARLY,
    centred,
    column_tree,
    complete,
    explained,
    number_tree,
)
from discreet.data.sql.query import from_clause
from discreet.data.sql.total import DOUBLE
from discreet.queries.guards._base import Protected
from discreet.queries.guards._profiles import public_columns

__all__ = ["within_groups"]

#: Where a public column has no more values, one group on a line is enough.
_FEW_GROUPS = 50
#: Public columns with more values are not looked at value by value.
_MOST_GROUPS = 1000
#: Into so many ranges of equally many records numbers and dates are cut, if that leaves enough in each.
_RANGES = 20
#: Of many groups, those on a line must hold this share of the records: one far record is a line as well.
_SHARE = 0.1
#: Fewer records of a group lie on a line by chance.
_FEWEST = 30
#: Share of the records in which two columns have the same value, other than zero.
_EQUAL = 0.1


def within_groups(data: Protected, names: Sequence[str]) -> list[tuple[str, str]]:
    """Return pairs of columns that are equal in many records, or follow in a public group."""
    pairs = list(itertools.combinations(names, 2))
    wanted: dict[str, exp.Expression] = {"n": exp.Count(this=exp.Star())}
    for place, name in enumerate(names):
        wanted[f"a{place}"] = exp.Avg(this=column_tree(name))
        wanted[f"s{place}"] = exp.StddevPop(this=column_tree(name))
    for place, (one, other) in enumerate(pairs):
        wanted[f"e{place}"] = exp.Count(this=_case(_equal(one, other), exp.Literal.number(1)))
    groups = [*public_columns(data), *names]
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
    ranges = min(_RANGES, int(row["n"]) // (2 * _FEWEST))
    for place, name in enumerate(groups):
        values = row[f"d{place}"]
        if 1 < values <= _MOST_GROUPS and name not in names:
            least = 0.0 if values <= _FEW_GROUPS else _SHARE * row["n"]
            found += _on_lines(data, names, scales, exp.column(name, quoted=True), least)
        if values > ranges > 1 and data.catalog[name].kind not in ("text", "boolean"):
            by = _range(name, ranges / row["n"])
            found += _on_lines(data, names, scales, by, _SHARE * row["n"])
    return sorted(set(found))


def _range(name: str, share: float) -> exp.Expression:
    """Return in which range of a column a record lies, each with so many records; equal ones together."""
    order = exp.Order(
        expressions=[exp.Ordered(this=exp.column(name, quoted=True), nulls_first=False)]
    )
    rank = exp.cast(exp.Window(this=exp.Rank(), order=order), DOUBLE)
    return exp.Floor(this=exp.Mul(this=rank, expression=number_tree(share * (1 - 1e-9))))


def _on_lines(
    data: Protected,
    names: Sequence[str],
    scales: Sequence[tuple[float, float]],
    by: exp.Expression,
    least: float,
) -> list[tuple[str, str]]:
    """Return pairs of columns of which one follows from the other, or from all, in some groups.

    These groups hold at least so many records; if any are demanded, there are two groups or more.
    """
    scale = dict(zip(names, scales, strict=True))
    sets = [*itertools.combinations(names, 2), *([tuple(names)] if len(names) > 2 else [])]
    values: dict[str, exp.Expression] = {"k": by}
    wanted: dict[str, exp.Expression] = {}
    for number, chosen in enumerate(sets):
        places = [exp.column(f"v{number}_{place}", quoted=True) for place in range(len(chosen))]
        for name, place in zip(chosen, places, strict=True):
            # Each set is looked at where all of its columns have a value.
            values[place.name] = _case(complete(chosen), centred(column_tree(name), *scale[name]))
        wanted[f"n{number}"] = exp.Count(this=places[0].copy())
        for i, place in enumerate(places):
            wanted[f"a{number}_{i}"] = exp.Avg(this=place.copy())
        for i, j in itertools.combinations_with_replacement(range(len(chosen)), 2):
            wanted[f"p{number}_{i}_{j}"] = exp.Avg(this=_times(places[i], places[j]))
    named = [exp.alias_(tree, name) for name, tree in values.items()]
    inner = exp.select(*named).from_(from_clause(data.relation.query, "t"))
    records: Counter[tuple[str, str]] = Counter()
    seen: Counter[tuple[str, str]] = Counter()
    for row in _rows(data, inner, wanted, "k"):
        own = {
            pair: int(row[f"n{number}"])
            for number, chosen in enumerate(sets)
            for pair in _followed(row, number, chosen)
        }
        records.update(own)
        seen.update(own.keys())
    return [pair for pair in seen if records[pair] >= least and seen[pair] > (least > 0)]


def _followed(row: dict[str, Any], number: int, names: Sequence[str]) -> list[tuple[str, str]]:
    """Return which columns of a set follow from others in one group."""
    if row[f"n{number}"] < max(_FEWEST, 10 * len(names)):
        return []
    size = len(names)
    middles = np.array([row[f"a{number}_{i}"] or 0.0 for i in range(size)])
    matrix = np.zeros((size, size))
    for i, j in itertools.combinations_with_replacement(range(size), 2):
        product = (row[f"p{number}_{i}_{j}"] or 0.0) - middles[i] * middles[j]
        matrix[i, j] = matrix[j, i] = product
    # A column that hardly differs within the group is on every line.
    kept = [i for i in range(size) if EXACTLY <= matrix[i, i] < np.inf]
    found = []
    for i in kept:
        others = [j for j in kept if j != i]
        factors, left = explained(matrix, i, others)
        if left >= NEARLY:
            continue
        order = np.argsort(np.abs(factors), kind="stable")
        for j in [others[place] for place in order]:
            # What can be left out with hardly more being left was there by chance.
            rest = [other for other in others if other != j]
            if rest and explained(matrix, i, rest)[1] < max(EXACTLY, 2 * left):
                others = rest
        found += [(min(names[i], names[j]), max(names[i], names[j])) for j in others]
    return found


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
