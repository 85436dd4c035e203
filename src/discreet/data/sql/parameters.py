"""Which type each parameter of a statement needs, from what it stands beside.

Clients that send values in binary form ask before they send them (asyncpg, JDBC); PostgreSQL
answers from the column that a parameter is compared with.
"""

from __future__ import annotations

from sqlglot import exp

from discreet.data.sql.query import Catalog
from discreet.data.sql.reading import read_statements
from discreet.errors import RefusedError

__all__ = ["SAMPLES", "parameter_kinds"]

#: A value of each kind, for reading a statement before its values are known.
SAMPLES: dict[str, object] = {
    "integer": 1,
    "number": 1.5,
    "text": "a",
    "boolean": True,
    "date": "2000-01-01",
    "timestamp": "2000-01-01 00:00:00",
}
_TYPES = {
    exp.DType.INT: "integer",
    exp.DType.BIGINT: "integer",
    exp.DType.SMALLINT: "integer",
    exp.DType.DOUBLE: "number",
    exp.DType.FLOAT: "number",
    exp.DType.DECIMAL: "number",
    exp.DType.BOOLEAN: "boolean",
    exp.DType.DATE: "date",
    exp.DType.TIMESTAMP: "timestamp",
    exp.DType.TIMESTAMPTZ: "timestamp",
}
_COMPARING = (
    exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In, exp.Like, exp.ILike,
    exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Coalesce, exp.NullSafeEQ, exp.NullSafeNEQ,
)  # fmt: skip


def parameter_kinds(sql: str, catalog: Catalog, count: int) -> tuple[str, ...]:
    """Return the kind of each parameter ($1 …): integer, number, text[] …; text if unknown.

    >>> from discreet.data.sql.query import Field
    >>> catalog = Catalog("people", (Field("age", "integer"), Field("sex", "text")))
    >>> sql = "SELECT COUNT(*) FROM people WHERE age < $1 AND sex = ANY ($2) LIMIT $3"
    >>> parameter_kinds(sql, catalog, 3)
    ('integer', 'text[]', 'integer')
    """
    found = ["text"] * count
    try:
        trees = read_statements(sql)
    except RefusedError:
        return tuple(found)
    kinds = {field.name.casefold(): field.kind for field in catalog.fields}
    kinds |= {f.name.casefold(): f.kind for fields in catalog.lookups.values() for f in fields}
    for tree in trees:
        for place in tree.find_all(exp.Parameter):
            if place.name.isdigit() and 1 <= int(place.name) <= count:
                found[int(place.name) - 1] = _kind_at(place, kinds)
    return tuple(found)


def _kind_at(place: exp.Expr, kinds: dict[str, str]) -> str:
    many = ""
    node: exp.Expr = place
    while node.parent is not None:
        above = node.parent
        if isinstance(above, exp.Cast):
            return _TYPES.get(above.to.this, "text") + many
        if isinstance(above, exp.Limit | exp.Offset | exp.Fetch):
            return "integer"
        if isinstance(above, exp.Any | exp.All) or (
            isinstance(above, exp.Anonymous) and above.name.upper() in ("ANY", "ALL")
        ):
            many = "[]"
        elif isinstance(above, _COMPARING):
            return (_beside(above, node, kinds) or "text") + many
        elif not isinstance(above, exp.Paren):
            return "text" + many
        node = above
    return "text"


def _beside(above: exp.Expr, node: exp.Expr, kinds: dict[str, str]) -> str | None:
    """Return the kind of what a parameter is compared with."""
    for other in above.iter_expressions():
        if other is not node and (kind := _kind(other.unnest(), kinds)) is not None:
            return kind
    return None


def _kind(node: exp.Expr, kinds: dict[str, str]) -> str | None:
    if isinstance(node, exp.Column):
        return kinds.get(node.name.casefold())
    if isinstance(node, exp.Literal):
        return "text" if node.is_string else "integer" if str(node.this).isdigit() else "number"
    if isinstance(node, exp.Cast):
        return _TYPES.get(node.to.this, "text")
    if isinstance(node, exp.Count | exp.Length | exp.Extract):
        return "integer"
    if isinstance(node, exp.TimestampTrunc | exp.CurrentTimestamp):
        return "timestamp"
    if isinstance(node, exp.Lower | exp.Upper | exp.Substring | exp.DPipe):
        return "text"
    if isinstance(node, exp.Parameter | exp.Placeholder):
        return None
    found = {_kind(part, kinds) for part in node.iter_expressions()} - {None}
    if found <= {"integer", "number"} and found:
        return "integer" if found == {"integer"} and not isinstance(node, exp.Avg) else "number"
    return found.pop() if len(found) == 1 else None
