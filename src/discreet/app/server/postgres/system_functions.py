"""PostgreSQL's functions about the catalog, as what they would return here.

Clients call them in their questions about tables and columns. Each is replaced in the tree by an
expression over the system tables, so that nothing is called but what stands in these lists.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from sqlglot import exp

import discreet
from discreet.app.server.postgres.session_statements import SHOWN

__all__ = ["ALLOWED", "TYPES", "replaced", "value_of"]

#: Number, name, size, category and SQL's word of the types that clients look up.
TYPES: tuple[tuple[int, str, int, str, str], ...] = (
    (16, "bool", 1, "B", "boolean"),
    (17, "bytea", -1, "U", "bytea"),
    (18, "char", 1, "Z", '"char"'),
    (19, "name", 64, "S", "name"),
    (20, "int8", 8, "N", "bigint"),
    (21, "int2", 2, "N", "smallint"),
    (23, "int4", 4, "N", "integer"),
    (25, "text", -1, "S", "text"),
    (26, "oid", 4, "N", "oid"),
    (114, "json", -1, "U", "json"),
    (700, "float4", 4, "N", "real"),
    (701, "float8", 8, "N", "double precision"),
    (1042, "bpchar", -1, "S", "character"),
    (1043, "varchar", -1, "S", "character varying"),
    (1082, "date", 4, "D", "date"),
    (1083, "time", 8, "D", "time without time zone"),
    (1114, "timestamp", 8, "D", "timestamp without time zone"),
    (1184, "timestamptz", 8, "D", "timestamp with time zone"),
    (1186, "interval", 16, "T", "interval"),
    (1700, "numeric", -1, "N", "numeric"),
    (2205, "regclass", 4, "N", "regclass"),
    (2206, "regtype", 4, "N", "regtype"),
    (2950, "uuid", 16, "U", "uuid"),
    (3802, "jsonb", -1, "U", "jsonb"),
)

#: Functions of any database that read nothing and cannot grow without bound.
ALLOWED = frozenset(
    [
        "abs",
        "all",
        "and",
        "any",
        "array",
        "array_agg",
        "array_length",
        "array_size",
        "array_to_string",
        "arrayany",
        "arraycontains",
        "arraysize",
        "avg",
        "bool_and",
        "bool_or",
        "case",
        "cast",
        "ceil",
        "coalesce",
        "concat",
        "concat_ws",
        "count",
        "current_date",
        "current_timestamp",
        "decode",
        "exists",
        "extract",
        "floor",
        "greatest",
        "if",
        "in",
        "is_inf",
        "is_nan",
        "left",
        "length",
        "least",
        "logical_and",
        "logical_or",
        "lower",
        "ltrim",
        "max",
        "min",
        "mod",
        "now",
        "nullif",
        "or",
        "position",
        "quote_ident",
        "regexp_i_like",
        "regexp_ilike",
        "regexp_like",
        "regexp_replace",
        "replace",
        "right",
        "round",
        "row_number",
        "rtrim",
        "split_part",
        "starts_with",
        "str_position",
        "string_agg",
        "group_concat",
        "strpos",
        "substr",
        "substring",
        "sum",
        "to_char",
        "trim",
        "try_cast",
        "upper",
        "xor",
    ]
)

Arguments = Sequence[exp.Expr]


def _null(_: Arguments) -> exp.Expr:
    return exp.null()


def _format_type(arguments: Arguments) -> exp.Expr:
    words = exp.Case(this=exp.cast(arguments[0].copy(), "bigint"))
    for number, _, _, _, word in TYPES:
        words = words.when(exp.Literal.number(number), exp.Literal.string(word))
    return words.else_(exp.Literal.string("???"))


def _text(value: str) -> Callable[[Arguments], exp.Expr]:
    return lambda _: exp.Literal.string(value)


def _schemas(_: Arguments) -> exp.Expr:
    names = ("pg_catalog", "public")
    return exp.Array(expressions=[exp.Literal.string(name) for name in names])


def _first(arguments: Arguments) -> exp.Expr:
    return arguments[0].copy()


_FUNCTIONS: dict[str, Callable[[Arguments], exp.Expr]] = {
    "version": _text(f"PostgreSQL 15.0 (discreet {discreet.__version__})"),
    "current_version": _text(f"PostgreSQL 15.0 (discreet {discreet.__version__})"),
    "current_schema": _text("public"),
    "current_database": _text("discreet"),
    "current_catalog": _text("discreet"),
    "current_schemas": _schemas,
    "format_type": _format_type,
    "pg_get_userbyid": _text("curator"),
    "pg_encoding_to_char": _text("UTF8"),
    "getdatabaseencoding": _text("UTF8"),
    "pg_client_encoding": _text("UTF8"),
    "quote_ident": _first,
    "pg_backend_pid": lambda _: exp.Literal.number(0),
    "pg_my_temp_schema": lambda _: exp.Literal.number(0),
    "pg_is_in_recovery": lambda _: exp.false(),
    "pg_is_other_temp_schema": lambda _: exp.false(),
    "pg_relation_is_publishable": lambda _: exp.false(),
    **dict.fromkeys(
        (
            "obj_description", "col_description", "shobj_description", "pg_tablespace_location", "pg_table_size", "pg_total_relation_size", "pg_relation_size",
            "pg_database_size", "pg_size_pretty", "pg_stat_get_numscans", "pg_partition_ancestors",
            "inet_server_addr", "inet_client_addr", "to_regclass", "to_regtype", "to_regnamespace",
            "array_remove", "pg_options_to_table", "pg_sequence_last_value",
            "json_build_object", "json_object", "json_agg", "json_object_agg", "jsonb_build_object",
            "pg_postmaster_start_time", "pg_conf_load_time", "txid_current",
        ),
        _null,
    ),
}  # fmt: skip


def value_of(name: str) -> str | None:
    """Return a setting of the session, as current_setting tells it."""
    return SHOWN.get(name.lower())


def replaced(node: exp.Expr, names: Mapping[str, int], user: str) -> exp.Expr | None:
    """Return what a node becomes; itself if it may stay, None if it may not stand here.

    `names` are the numbers of the relations.
    """
    if isinstance(node, exp.Cast):
        return _cast(node, names)
    if isinstance(node, exp.Column) and not node.table and _is_user(node.name):
        return exp.Literal.string(user)
    if isinstance(node, exp.CurrentUser | exp.SessionUser):
        return exp.Literal.string(user)
    if isinstance(node, exp.CurrentDate | exp.CurrentTimestamp):
        # As values: a column that is called after the function would stand for itself.
        now = datetime.now(UTC)
        if isinstance(node, exp.CurrentDate):
            return exp.cast(exp.Literal.string(now.date().isoformat()), "date")
        return exp.cast(exp.Literal.string(now.isoformat()), "timestamptz")
    if not isinstance(node, exp.Func):
        return node
    name = (node.name if isinstance(node, exp.Anonymous) else node.sql_name()).lower()
    if name == "current_setting":
        found = value_of(node.expressions[0].name if node.expressions else "")
        return exp.null() if found is None else exp.Literal.string(found)
    if name in _FUNCTIONS:
        given = node.expressions or [a for a in node.args.values() if isinstance(a, exp.Expr)]
        return _FUNCTIONS[name](given)
    if name.startswith(("pg_", "has_")) and name.endswith(("_is_visible", "_privilege")):
        return exp.true()
    if name.startswith("pg_get_"):  # definitions of what is not here: views, indexes, triggers …
        return exp.null()
    return node if name in ALLOWED else None


def _is_user(name: str) -> bool:
    return name.lower() in ("current_user", "session_user", "user", "current_role")


def _cast(node: exp.Cast, names: Mapping[str, int]) -> exp.Expr:
    kind = node.to.sql("postgres").lower().replace('"', "").removeprefix("pg_catalog.")
    inner: exp.Expr = node.this
    if kind == "regclass" and isinstance(inner, exp.Literal) and inner.is_string:
        plain = inner.name.strip('"').removeprefix("public.").strip('"')
        if plain.isdigit():
            return exp.Literal.number(plain)
        if plain.removeprefix("pg_catalog.").startswith("pg_"):
            return exp.Literal.number(_OF_CATALOG.get(plain.removeprefix("pg_catalog."), 0))
        return exp.Literal.number(names.get(plain, 0))
    if kind == "regtype":
        if isinstance(inner, exp.Literal) and inner.is_string:
            numbers = {n: o for o, short, _, _, word in TYPES for n in (short, word)}
            found = numbers.get(inner.name.lower())
            # An unknown type is an error in PostgreSQL; here nothing equals it.
            return exp.null() if found is None else exp.Literal.number(found)
        return _format_type([inner])
    if kind in ("regclass", "regproc", "regprocedure", "regnamespace", "regrole", "oid", "xid"):
        return exp.cast(inner.copy(), "bigint") if kind in ("oid", "xid") else inner.copy()
    if kind.startswith("information_schema.") or kind in ("name", "char", "bpchar", "regconfig"):
        return exp.cast(inner.copy(), "text")
    if kind.endswith("[]") and isinstance(inner, exp.Literal) and inner.name.startswith("{"):
        parts = [part.strip('" ') for part in inner.name.strip("{}").split(",") if part.strip()]
        return exp.Array(expressions=[exp.Literal.string(part) for part in parts])
    if kind in ("name[]", "char[]", "oid[]", "int2[]", "aclitem[]"):
        return inner.copy()
    if node.to.this == exp.DataType.Type.USERDEFINED:
        return exp.cast(inner.copy(), exp.DataType.build(kind, dialect="postgres"))
    return node


_OF_CATALOG = {
    "pg_class": 1259,
    "pg_type": 1247,
    "pg_namespace": 2615,
    "pg_database": 1262,
    "pg_proc": 1255,
}
