"""Columns that were released as intervals, in a query over released rows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

from sqlglot import exp

from discreet.data.sql.typed import refuse
from discreet.errors import RefusedError

__all__ = ["sources_of", "with_intervals"]

#: Names that a statement's own aggregates get when it is taken apart.
_MADE = re.compile(r"a\d+")


def sources_of(select: exp.Select) -> list[exp.Expr]:
    """Return what a SELECT reads: tables and sub-selects."""
    from_ = select.args.get("from_")
    joins = select.args.get("joins") or []
    return ([] if from_ is None else [from_.this]) + [join.this for join in joins]


def with_intervals(query: exp.Query, held: Mapping[str, set[str]]) -> exp.Query:
    """Return the query with both ends in place of a column that was released as an interval.

    A column of an interval can be passed on; computing with it is for whoever knows how.
    """
    found = query.copy()
    ranged = {
        name: {c.removesuffix("_lower") for c in columns if c.endswith("_lower")} - columns
        for name, columns in held.items()
    }
    if not any(ranged.values()):
        return found
    _spread_intervals(found, ranged)
    return found


def _spread_intervals(query: exp.Query, known: Mapping[str, set[str]]) -> set[str]:
    """Replace columns in a query and in those inside it; return its own columns of that kind."""
    if isinstance(query, exp.SetOperation):
        left = _spread_intervals(query.this.unnest(), known)
        return left | _spread_intervals(query.expression.unnest(), known)
    assert isinstance(query, exp.Select)
    scope: dict[str, set[str]] = {}
    common = dict(known)
    with_ = query.args.get("with_")
    for table in with_.expressions if with_ is not None else ():
        common[table.alias] = _spread_intervals(table.this, common)
    for source in sources_of(query):
        if isinstance(source, exp.Subquery):
            scope[source.alias] = _spread_intervals(cast("exp.Query", source.this), common)
        else:
            scope[source.alias_or_name] = common.get(source.name, set())

    def is_interval(column: exp.Expr) -> bool:
        if not isinstance(column, exp.Column):
            return False
        places = [scope.get(column.table, set())] if column.table else scope.values()
        return any(column.name in names for names in places)

    shown: list[exp.Expr] = []
    own: set[str] = set()
    for item in query.expressions:
        inner = item.this if isinstance(item, exp.Alias) else item
        if is_interval(inner):
            label = item.alias_or_name
            own.add(label)
            for end in ("_lower", "_upper"):
                column = exp.column(inner.name + end, table=inner.table or None, quoted=True)
                shown.append(exp.alias_(column, label + end, quoted=True))
        else:
            shown.append(item.copy())
    query.set("expressions", shown)
    for column in query.find_all(exp.Column):
        if is_interval(column) and column.parent_select is query:
            raise _computed_with(column.name)
    return own


def _computed_with(name: str) -> RefusedError:
    """Return why an interval is not computed with; taken apart, a statement names it itself."""
    if _MADE.fullmatch(name):
        return refuse(
            "an aggregate is answered by an interval, which the outer query computes with",
            "interval-outside",
            "ask for it alone, or compute with its ends: SELECT x_lower, x_upper FROM "
            "(SELECT AVG(…) AS x FROM …) AS t",
        )
    return refuse(
        f"{name!r} is answered by an interval, which the outer query computes with",
        "interval-outside",
        f"use {name}_lower and {name}_upper, or ask for it alone",
    )
