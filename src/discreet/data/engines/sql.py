"""SQL as trees: building them, quoting every name and binding every value.

No engine ever formats a value or a name into text. A tree is made of columns, functions and
literals; before it is rendered its literals become numbered parameters and its identifiers are
quoted, in the spelling the engine wants.
"""

from __future__ import annotations

import datetime
import decimal
import numbers
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from sqlglot import exp
from sqlglot.errors import SqlglotError

from discreet.data.engines.meaning import meant
from discreet.errors import InputError, nearest

__all__ = [
    "alias",
    "bound",
    "call",
    "column",
    "double",
    "is_known",
    "named",
    "number",
    "resolve",
    "resolve_columns",
    "select",
    "subquery",
    "text",
]

# Where a number is part of the statement's shape (a position, a precision, a limit), it stays.
_SHAPE = (exp.DataTypeParam, exp.Limit, exp.Offset, exp.Ordered, exp.Group, exp.Interval, exp.Fetch)
Tree = TypeVar("Tree", bound=exp.Expr)
_NUMBER = re.compile(r"\d+(\.\d*)?([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?")


def column(name: str, table: str | None = None) -> exp.Column:
    """Return a column, whatever its name is.

    >>> column('a"; DROP TABLE x').sql("duckdb")
    '"a""; DROP TABLE x"'
    """
    return exp.column(
        exp.to_identifier(name, quoted=True),
        table=None if table is None else exp.to_identifier(table, quoted=True),
    )


def alias(value: exp.Expr, name: str) -> exp.Alias:
    """Return an expression under a name."""
    return exp.Alias(this=value, alias=exp.to_identifier(name, quoted=True))


def number(value: int | float) -> exp.Expr:
    """Return a number as a literal."""
    # Those of numpy are numbers of Python too, but say more than their digits.
    value = int(value) if isinstance(value, numbers.Integral) else float(value)
    literal = exp.Literal.number(repr(abs(value)))
    return exp.Neg(this=literal) if value < 0 else literal


def text(value: str) -> exp.Literal:
    """Return a text as a literal."""
    return exp.Literal.string(value)


def double(value: exp.Expr) -> exp.Cast:
    """Return an expression cast to double precision."""
    return exp.Cast(this=value, to=exp.DataType.build("double"))


def bigint(value: exp.Expr) -> exp.Cast:
    """Return an expression cast to a 64-bit integer."""
    return exp.Cast(this=value, to=exp.DataType.build("bigint"))


def is_known(value: exp.Expr) -> exp.Expr:
    """Return the condition that a value is not missing."""
    return exp.Not(this=exp.Is(this=value, expression=exp.Null()))


def call(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    """Return the call of a function by the engine's own name for it."""
    return exp.Anonymous(this=name, expressions=list(arguments))


def named(name: str, *, schema: str | None = None, as_: str | None = None) -> exp.Table:
    """Return a table by name."""
    return exp.Table(
        this=exp.to_identifier(name, quoted=True),
        db=None if schema is None else exp.to_identifier(schema, quoted=True),
        alias=None if as_ is None else exp.TableAlias(this=exp.to_identifier(as_, quoted=True)),
    )


def subquery(query: exp.Query, name: str) -> exp.Subquery:
    """Return a query in brackets, under a name."""
    return exp.Subquery(
        this=query.copy(), alias=exp.TableAlias(this=exp.to_identifier(name, quoted=True))
    )


def select(source: exp.Expr, values: Iterable[exp.Expr]) -> exp.Select:
    """Return SELECT values FROM source."""
    return exp.Select(expressions=list(values), from_=exp.From(this=source))


def literal(value: Any) -> exp.Expr:
    """Return a Python value as a literal or null.

    Any: what an Arrow scalar holds.
    """
    if value is None:
        return exp.Null()
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, int | float):
        return number(value)
    if isinstance(value, decimal.Decimal):
        return number(float(value))
    if isinstance(value, datetime.datetime):
        return exp.Cast(this=text(value.isoformat(sep=" ")), to=exp.DataType.build("timestamp"))
    if isinstance(value, datetime.date):
        return exp.Cast(this=text(value.isoformat()), to=exp.DataType.build("date"))
    return text(str(value))


def bound(
    query: exp.Expr,
    *,
    dialect: str,
    placeholder: Callable[[int], exp.Expr],
    spell: Callable[[str], str],
) -> tuple[str, list[Any]]:
    """Return a tree as SQL text without values, and the values in the order of their numbers.

    Equal literals share a parameter, so that `GROUP BY f(x, 'a')` still equals `SELECT f(x, 'a')`.
    `spell` turns a column's name into the engine's spelling of it. Any: parameters are of the
    types that drivers bind.
    """
    values: list[Any] = []
    place: dict[tuple[type, Any], int] = {}

    def visit(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Identifier):
            name = spell(node.name) if _names_column(node) else node.name
            if "\x00" in name:
                raise InputError("a name holds a zero byte", code="bad-name")
            return exp.to_identifier(name, quoted=True)
        if isinstance(node, exp.Literal) and not _is_shape(node):
            value = _value(node)
            key = (type(value), value)
            if key not in place:
                place[key] = len(values)
                values.append(value)
            return placeholder(place[key] + 1)
        return node

    try:
        tree = meant(query.copy(), dialect).transform(visit, copy=False)
        return tree.sql(dialect=dialect), values
    except SqlglotError as error:
        raise InputError(
            "the query cannot be written for this engine",
            code="unsupported-query",
            reason=type(error).__name__,
        ) from None


def _names_column(node: exp.Identifier) -> bool:
    parent = node.parent
    if isinstance(parent, exp.Column):
        return node.arg_key == "this"
    if isinstance(parent, exp.TableAlias):
        return node.arg_key == "columns"
    return isinstance(parent, exp.Alias)


def _is_shape(node: exp.Literal) -> bool:
    if node.is_string and not isinstance(node.parent, exp.Interval):
        return False
    parent = node.parent.parent if isinstance(node.parent, exp.Neg) else node.parent
    if not node.is_string and not _NUMBER.fullmatch(node.name):
        raise InputError("a number in the query is not one", code="bad-query")
    return isinstance(parent, _SHAPE)


def _value(node: exp.Literal) -> str | int | float:
    if node.is_string:
        return str(node.this)
    if not _NUMBER.fullmatch(node.name):
        raise InputError("a number in the query is not one", code="bad-query")
    return int(node.name) if node.name.isdigit() else float(node.name)


def resolve(query: exp.Query, columns: Mapping[str, Iterable[str]]) -> exp.Query:
    """Return a parsed query with table and column names in the spelling of the data.

    SQL that people write ignores case; quoted names are what they are. An unknown table is an
    InputError; a name that is no column (an alias, say) is left alone.
    """
    query = query.copy()
    tables = {name.casefold(): name for name in columns}
    known = {name for names in columns.values() for name in names}
    local = {cte.alias.casefold() for cte in query.find_all(exp.CTE)}
    for table in query.find_all(exp.Table):
        name = table.name.casefold()
        if name in local and not table.db:
            continue
        if name not in tables or table.db:
            guess = nearest(table.name, columns)
            raise InputError(
                f"there is no table {table.name!r}",
                code="unknown-table",
                hint=f"write {guess!r}" if guess else "choose one of " + ", ".join(columns),
            )
        if not table.alias:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(tables[name], quoted=True)))
        table.set("this", exp.to_identifier(tables[name], quoted=True))
    query = resolve_columns(query, known)
    for node in query.find_all(exp.Column):
        owner = node.table.casefold()
        if owner in tables and node.table not in columns:
            node.set("table", exp.to_identifier(tables[owner], quoted=True))
    return query


def resolve_columns(tree: Tree, known: Iterable[str]) -> Tree:
    """Return a tree whose column names are spelt as in the data; unknown names stay.

    >>> import sqlglot
    >>> resolve_columns(sqlglot.condition("AGE > 3"), ["Age"]).sql()
    '"Age" > 3'
    """
    tree, names = tree.copy(), set(known)
    folded: dict[str, set[str]] = {}
    for name in names:
        folded.setdefault(name.casefold(), set()).add(name)
    for node in tree.find_all(exp.Column):
        spelt = folded.get(node.name.casefold(), set())
        if node.name not in names and len(spelt) == 1:
            node.set("this", exp.to_identifier(next(iter(spelt)), quoted=True))
    return tree
