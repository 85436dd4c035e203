"""Expressions that a large query repeats, computed once in a sub-select.

Rounding, buckets and bounds written out repeat their argument, so that three of them nested are a hundred
copies of it. DuckDB and PostgreSQL compute such a tree quickly; Spark plans each copy and may use up its
driver's memory. Only CASE is shared: it guards its own parts, so that it never fails where it is computed
for more records than before.
"""

from __future__ import annotations

import collections
import itertools

from sqlglot import exp

__all__ = ["shared"]

#: Smaller queries stay as they are.
_LARGE = 400
#: A CASE of fewer nodes is cheaper to repeat than to carry along.
_LEAST = 8
#: What stands for more than one record, or for another query.
_APART = (exp.AggFunc, exp.Query, exp.Window, exp.Star)


def shared(query: exp.Expr) -> exp.Expr:
    """Return an equal query in which large selects compute repeated CASEs once.

    Examples
    --------
    >>> from sqlglot import parse_one
    >>> case = "CASE WHEN a > 1 THEN 1 WHEN a < 0 THEN 0 ELSE a END"
    >>> sums = ", ".join(f"SUM({case} + {n}) AS s{n}" for n in range(60))
    >>> shared(parse_one(f"SELECT {sums} FROM (SELECT a FROM t) AS t")).sql().count("CASE")
    1
    """
    if sum(1 for _ in itertools.islice(query.walk(), _LARGE)) < _LARGE:
        return query
    query = query.copy()
    text = query.sql()
    names = (name for n in itertools.count() if (name := f"shared_{n}") not in text)
    for select in list(query.find_all(exp.Select)):
        while layer := _repeated(select):
            _put_below(select, {node: next(names) for node in layer})
    return query


def _repeated(select: exp.Select) -> list[exp.Expr]:
    """Return the innermost CASEs that a select over one sub-select computes more than once."""
    source = select.args.get("from_")
    if source is None or not isinstance(source.this, exp.Subquery) or not source.this.alias:
        return []
    if select.is_star or any(select.args.get(part) for part in ("joins", "laterals", "windows")):
        return []
    seen = collections.Counter(
        node
        for tree in _computed(select)
        for node in tree.find_all(exp.Case)
        if node.find(*_APART) is None
    )
    often = {
        node
        for node, times in seen.items()
        if times > 1 and sum(1 for _ in itertools.islice(node.walk(), _LEAST)) == _LEAST
    }
    return [
        node
        for node in often
        if not any(part in often for part in node.find_all(exp.Case) if part is not node)
    ]


def _computed(select: exp.Select) -> list[exp.Expr]:
    """Return what a select shows and groups by.

    Not its conditions: Spark moves them below sub-selects, and writes each copy out again.
    """
    group = select.args.get("group")
    return [*select.expressions, *(group.expressions if group is not None else ())]


def _put_below(select: exp.Select, names: dict[exp.Expr, str]) -> None:
    """Compute expressions in a sub-select of their own, under names, and use these instead."""
    source = select.args["from_"].this
    alias = source.args["alias"]
    for tree in _computed(select):
        for node in list(tree.find_all(exp.Case)):
            if (name := names.get(node)) is not None:
                node.replace(exp.column(name, table=alias.this.copy(), quoted=True))
    shown = [exp.Star(), *(exp.alias_(node, name, quoted=True) for node, name in names.items())]
    below = exp.Select(expressions=shown).from_(source.copy())
    source.replace(exp.Subquery(this=below, alias=alias.copy()))
