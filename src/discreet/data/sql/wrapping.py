"""Clients that wrap a statement before they send it: SELECT columns FROM (statement) AS name.

DuckDB's postgres extension and BI tools do so. Such a wrapper only picks columns of what is
released, so the statement inside is what is asked.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

__all__ = ["unwrapped"]


def unwrapped(select: exp.Select) -> exp.Select:
    """Return the statement inside, with the columns and the limit of its wrapper.

    >>> from sqlglot import parse_one
    >>> inside = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
    >>> unwrapped(parse_one(f'SELECT "n" FROM ({inside}) AS w LIMIT 9')).sql()
    'SELECT COUNT(*) AS n FROM people GROUP BY sex LIMIT 9'
    """
    used = {name for name, value in select.args.items() if value}
    source = select.args.get("from_")
    if source is None or not used <= {"expressions", "from_", "limit", "kind"}:
        return select
    wrapped = source.this
    if not isinstance(wrapped, exp.Subquery) or not isinstance(wrapped.this, exp.Select):
        return select
    inner = unwrapped(wrapped.this)
    if not _releases(inner) or (inner.args.get("limit") and select.args.get("limit")):
        return select
    chosen = _chosen(select, inner, wrapped.alias)
    if chosen is None:
        return select
    found = inner.copy()
    found.set("expressions", chosen)
    if select.args.get("limit"):
        found.set("limit", select.args["limit"].copy())
    return found


def _releases(inner: exp.Select) -> bool:
    return any(projection.find(exp.AggFunc) is not None for projection in inner.expressions)


def _chosen(outer: exp.Select, inner: exp.Select, name: str) -> list[Any] | None:
    """Return the columns of the statement inside that its wrapper picks; None if it does more."""
    if len(outer.expressions) == 1 and type(outer.expressions[0]) is exp.Star:
        return [projection.copy() for projection in inner.expressions]
    by_name = {projection.alias_or_name: projection for projection in inner.expressions}
    if len(by_name) < len(inner.expressions) or "" in by_name:
        return None
    found = []
    for picked in outer.expressions:
        column = picked.this if isinstance(picked, exp.Alias) else picked
        if type(column) is not exp.Column or column.table not in ("", name):
            return None
        if column.name not in by_name:
            return None
        projection = by_name[column.name].copy()
        plain = projection.this if isinstance(projection, exp.Alias) else projection
        found.append(exp.alias_(plain, picked.alias_or_name, quoted=True))
    if [f.alias for f in found] != list(by_name) and _counts_places(inner):
        return None
    return [
        by_name[f.alias].copy() if f.alias in by_name and f.this == _plain(by_name[f.alias]) else f
        for f in found
    ]


def _plain(projection: Any) -> Any:
    return projection.this if isinstance(projection, exp.Alias) else projection


def _counts_places(inner: exp.Select) -> bool:
    """Whether GROUP BY or ORDER BY name columns by their place, which picking would change."""
    parts = [inner.args.get("group"), inner.args.get("order")]
    listed = [item for part in parts if part is not None for item in part.expressions]
    return any(isinstance(getattr(i, "this", None), exp.Literal) or i.is_number for i in listed)
