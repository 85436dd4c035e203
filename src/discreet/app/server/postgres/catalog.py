"""The catalog that clients look into: system tables that tell the protected relations' columns.

Clients ask `pg_catalog` and `information_schema` what tables and columns there are. They are
answered from a database of their own in memory, which holds nothing but system tables made from
the names and types of what may be asked about, has no way to files or network, and is asked
nothing but questions about the catalog. What it cannot answer comes back empty with the columns
that were asked for.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from sqlglot import exp
from sqlglot.optimizer.annotate_types import annotate_types

from discreet.app.server.postgres.session_statements import SHOWN
from discreet.app.server.postgres.system_functions import TYPES, replaced
from discreet.app.server.postgres.system_tables import system_tables
from discreet.app.server.postgres.types import oid_of
from discreet.data.engines.base import connect
from discreet.data.sql.normalizing import write_lists
from discreet.data.sql.reading import LONGEST, read_statements
from discreet.data.sql.scope import Parameters
from discreet.errors import DiscreetError, EngineError, InputError, RefusedError

__all__ = ["Catalog"]

_SCHEMAS = {"pg_catalog", "information_schema"}
_PUBLIC, _SYSTEM, _INFORMATION = 2200, 11, 13000
_FIRST = 16384
#: Clients join a dozen system tables at most; more would only be meant to take long.
_MOST_TABLES = 16
_SECONDS = 5.0
# Spellings that only PostgreSQL's own parser knows.
_OPERATOR = re.compile(r"OPERATOR\s*\(\s*(?:pg_catalog\.)?([~=<>!*@|&+-]+)\s*\)", re.IGNORECASE)
_COLLATE = re.compile(r"\s+COLLATE\s+(?:pg_catalog\.)?\"?[a-z_]+\"?", re.IGNORECASE)
#: Words beyond the standard's that PostgreSQL reads in questions.
_KEYWORDS = (
    "analyse",
    "analyze",
    "explain",
    "ilike",
    "isnull",
    "limit",
    "notnull",
    "offset",
    "show",
)
# How pgcli asks for the search path.
_SEARCH_PATH = re.compile(
    r"\s*select\s+\*\s+from\s+unnest\(current_schemas\((?:true|false)\)\)\s*;?\s*"
)
_FROM = re.compile(r"\bfrom\b", re.IGNORECASE)
#: Why an engine fails on values, not on what is asked.
_BY_VALUES = ("Conversion", "OutOfRange", "InvalidInput")


class Catalog:
    """Answers questions about tables and columns."""

    def __init__(self, relations: Mapping[str, pa.Schema]) -> None:
        self._engine: Any = connect(
            "duckdb://", enable_external_access=False, threads=1, memory_limit="256MB"
        )  # Any: the engine by address is DuckDB, which alone can be interrupted
        self._lock = threading.Lock()
        self._numbers = {name: _FIRST + place for place, name in enumerate(relations)}
        self._tables = system_tables()
        rows = _rows(relations, self._numbers)
        for name, schema in self._tables.items():
            held = self._engine.load(pa.Table.from_pylist(rows.get(name, []), schema=schema))
            self._engine.store(held, _stored(name))
            self._engine.drop(held)

    def close(self) -> None:
        """Let go of the database."""
        self._engine.close()

    def answer(
        self, sql: str, parameters: Sequence[Any] = (), *, user: str = "analyst"
    ) -> pa.Table | None:
        """Answer a question about the catalog; None if it is about anything else."""
        low = sql.lower()
        if _SEARCH_PATH.fullmatch(low) is not None:
            return pa.table({"unnest": ["pg_catalog", "public"]})
        if len(sql) > LONGEST or not (
            "pg_" in low or "information_schema" in low or not _FROM.search(low)
        ):
            return None
        try:
            tree, *more = read_statements(_COLLATE.sub("", _OPERATOR.sub(r" \1 ", sql)))
        except (RefusedError, ValueError):  # the latter for a text of nothing
            return _empty_by_text(sql)
        if more:
            return None
        if not isinstance(tree, exp.Query) or not self._is_catalog(tree):
            return None
        try:
            return self._asked(_filled(tree, parameters), user)
        except EngineError as error:
            if error.facts.get("kind") in _BY_VALUES and tree.find(exp.Table) is None:
                raise InputError(
                    "the value cannot be computed",
                    code="no-value",
                    hint="a division by zero, a number out of range, or a text that is no such value",
                ) from None
            return _empty(tree)
        except (DiscreetError, RecursionError, LookupError, ValueError):
            return _empty(tree)

    def _is_catalog(self, tree: exp.Query) -> bool:
        """Whether every table belongs to the catalog; or there is none, and nothing is read."""
        tables = list(tree.find_all(exp.Table))
        common = {cte.alias for cte in tree.find_all(exp.CTE)}
        for table in tables:
            if not isinstance(table.this, exp.Identifier):
                if _harmless(table.this):
                    continue  # comes back empty
                return False  # a table function, such as one that reads files
            known = table.db.lower() in _SCHEMAS or (
                not table.db and table.name.lower().startswith("pg_")
            )
            if not (known or (not table.db and table.name in common)):
                return False
        if tables:
            return True
        # Without tables: values and known functions, such as version() or current_user.
        return isinstance(tree, exp.Select) and not any(
            new is None or isinstance(new, exp.Column | exp.Star)
            for new in (replaced(node, self._numbers, "") for node in tree.walk())
        )

    def _asked(self, tree: exp.Query, user: str) -> pa.Table:
        common = {cte.alias for cte in tree.find_all(exp.CTE)}
        tables = list(tree.find_all(exp.Table))
        if len(tables) > _MOST_TABLES or any(
            w.args.get("recursive") for w in tree.find_all(exp.With)
        ):
            return _empty(tree)
        named = _names(tree)
        for table in tables:
            name = table.name.lower()
            if not isinstance(table.this, exp.Identifier):
                if _called(table.this) == "pg_get_keywords":
                    name = "pg_get_keywords"
                    table.set("this", exp.to_identifier(name))
                else:
                    table.replace(_no_rows(table.alias))
                    continue
            if not table.db and table.name in common:
                continue
            full = (
                name if table.db.lower() != "information_schema" else f"information_schema.{name}"
            )
            if full not in self._tables:
                return _empty(tree)
            alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(name))
            new = exp.to_table(_stored(full))
            new.set("alias", alias.copy())
            table.replace(new)
        _unqualify(tree)
        # Inner ones first: what stands inside a replaced one must be replaced already.
        for node in reversed(list(tree.find_all(exp.Cast, exp.Func, exp.Column))):
            new_node = replaced(node, self._numbers, user)
            if new_node is None:
                return _empty(tree)
            if new_node is not node:
                node.replace(new_node)
        _divide_whole_numbers(tree)
        _label(tree, named)
        return self._run(tree)

    def _run(self, tree: exp.Query) -> pa.Table:
        timer = threading.Timer(_SECONDS, self._engine.interrupt)
        with self._lock:
            timer.start()
            try:
                found: pa.Table = self._engine.fetch(tree)
                return found
            finally:
                timer.cancel()


def _called(function: exp.Expr) -> str:
    name = function.expression if isinstance(function, exp.Dot) else function
    return (name.name if isinstance(name, exp.Anonymous) else name.sql("postgres")).lower()


def _harmless(function: exp.Expr) -> bool:
    return _called(function).startswith(
        ("pg_", "_pg_", "unnest", "generate_s", "aclexplode", "string_to_array")
    )


def _no_rows(name: str) -> exp.Subquery:
    """Return what stands for a function that lists something: nothing is to be listed."""
    inner = exp.select(exp.alias_(exp.null(), name or "x", quoted=True)).where(exp.false())
    return exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier(name or "x")))


def _stored(name: str) -> str:
    return "system_" + name.replace(".", "_")


def _filled(tree: exp.Query, parameters: Sequence[Any]) -> exp.Query:
    """Put values where parameters stand: $1 is the first, wherever and however often it is."""
    write_lists(tree, Parameters(parameters), strict=False)
    for place in list(tree.find_all(exp.Parameter, exp.Placeholder)):
        number = place.name
        at = int(number) - 1 if number.isdigit() else 0
        value = parameters[at] if 0 <= at < len(parameters) else None
        if isinstance(value, bool) or value is None:
            new: exp.Expr = exp.null() if value is None else exp.convert(value)
        elif isinstance(value, int | float):
            new = exp.Literal.number(value)
        else:
            new = exp.Literal.string(str(value))
        place.replace(new)
    return tree


def _unqualify(tree: exp.Query) -> None:
    """Drop schemas before functions and types, and columns' schema (pg_class.oid stays)."""
    for dot in list(tree.find_all(exp.Dot)):
        if isinstance(dot.expression, exp.Func) and dot.this.name.lower() in _SCHEMAS:
            dot.replace(dot.expression)
    for column in tree.find_all(exp.Column):
        column.set("db", None)
        column.set("catalog", None)


def _divide_whole_numbers(tree: exp.Query) -> None:
    """Divide whole numbers as PostgreSQL does: 7 / 2 is 3."""
    annotate_types(tree, dialect="postgres")
    for node in reversed(list(tree.find_all(exp.Div))):
        if all(side.is_type(*exp.DataType.INTEGER_TYPES) for side in (node.this, node.expression)):
            exact = exp.Div(this=node.this.copy(), expression=node.expression.copy())
            node.replace(exp.cast(exp.Trunc(this=exact), "bigint"))


def _names(tree: exp.Query) -> list[str]:
    """Return the names that PostgreSQL would give to the columns."""
    select = tree if isinstance(tree, exp.Select) else tree.find(exp.Select)
    return [] if select is None else [_name(shown) for shown in select.expressions]


def _name(shown: exp.Expr) -> str:
    if isinstance(shown, exp.Alias | exp.Column):
        return shown.alias_or_name
    if isinstance(shown, exp.Cast):
        inner = _name(shown.this)
        return inner if inner != "?column?" else str(shown.to.sql("postgres")).lower()
    if isinstance(shown, exp.Dot):
        return _name(shown.expression)
    if isinstance(shown, exp.Func):
        name = (shown.name if isinstance(shown, exp.Anonymous) else shown.sql_name()).lower()
        return "version" if name == "current_version" else name
    return "*" if isinstance(shown, exp.Star) else "?column?"


def _label(tree: exp.Query, names: Sequence[str]) -> None:
    """Keep the names that columns would have had before functions were replaced."""
    select = tree if isinstance(tree, exp.Select) else tree.find(exp.Select)
    if select is None or len(names) != len(select.expressions):
        return
    for shown, name in zip(list(select.expressions), names, strict=True):
        if not isinstance(shown, exp.Alias) and name != "*":
            shown.replace(exp.alias_(shown.copy(), name, quoted=True))


def _empty(tree: exp.Query) -> pa.Table:
    names = [name for name in _names(tree) if name != "*"] or ["?column?"]
    return pa.Table.from_arrays([pa.array([], pa.string()) for _ in names], names=names)


def _empty_by_text(sql: str) -> pa.Table | None:
    if "pg_catalog." not in sql:
        return None
    return pa.table({"?column?": pa.array([], pa.string())})


# -- the rows of the system tables -----------------------------------------------------------------
def _rows(
    relations: Mapping[str, pa.Schema], numbers: Mapping[str, int]
) -> dict[str, list[dict[str, Any]]]:
    columns = [
        (name, place, field.name, *oid_of(_plain(field.type)))
        for name, schema in relations.items()
        for place, field in enumerate(schema, 1)
    ]
    return {
        "pg_namespace": [
            {"oid": oid, "nspname": name, "nspowner": 10}
            for oid, name in ((_SYSTEM, "pg_catalog"), (_PUBLIC, "public"), (_INFORMATION, "information_schema"))
        ],
        "pg_class": [_class(name, numbers[name], len(schema)) for name, schema in relations.items()],
        "pg_attribute": [_attribute(numbers[n], at, c, oid, size) for n, at, c, oid, size in columns],
        "pg_type": [_type(*entry[:4]) for entry in TYPES],
        "pg_am": [{"oid": 2, "amname": "heap", "amhandler": 3, "amtype": "t"}],
        "pg_database": [
            {"oid": 1, "datname": "discreet", "datdba": 10, "encoding": 6, "datlocprovider": "c",
             "datistemplate": False, "datallowconn": True, "datconnlimit": -1, "dattablespace": 1663,
             "datcollate": "C.UTF-8", "datctype": "C.UTF-8"},
        ],
        "pg_settings": [
            {"name": name, "setting": value, "context": "internal", "vartype": "string", "source": "default"}
            for name, value in SHOWN.items()
        ],
        "pg_get_keywords": [{"word": word, "catcode": "U", "catdesc": "unreserved"} for word in _KEYWORDS],
        "pg_tablespace": [{"oid": 1663, "spcname": "pg_default", "spcowner": 10}],
        "pg_roles": [{"oid": 10, "rolname": "curator", "rolsuper": False, "rolinherit": True,
                      "rolcreaterole": False, "rolcreatedb": False, "rolcanlogin": False,
                      "rolreplication": False, "rolconnlimit": -1, "rolbypassrls": False}],
        "pg_tables": [
            {"schemaname": "public", "tablename": name, "tableowner": "curator", "hasindexes": False,
             "hasrules": False, "hastriggers": False, "rowsecurity": False}
            for name in relations
        ],
        "information_schema.schemata": [
            {"catalog_name": "discreet", "schema_name": name, "schema_owner": "curator"}
            for name in ("public", "information_schema", "pg_catalog")
        ],
        "information_schema.tables": [
            {"table_catalog": "discreet", "table_schema": "public", "table_name": name,
             "table_type": "BASE TABLE", "is_insertable_into": "NO", "is_typed": "NO"}
            for name in relations
        ],
        "information_schema.columns": [
            _information(name, at, column, oid) for name, at, column, oid, _ in columns
        ],
    }  # fmt: skip


def _class(name: str, oid: int, width: int) -> dict[str, Any]:
    flags = ("relhasindex", "relisshared", "relhasrules", "relhastriggers", "relhassubclass",
             "relrowsecurity", "relforcerowsecurity", "relispartition")  # fmt: skip
    return {
        "oid": oid, "relname": name, "relnamespace": _PUBLIC, "reltype": 0, "reloftype": 0,
        "relowner": 10, "relam": 2, "relfilenode": 0, "reltablespace": 0, "relpages": 0,
        "reltuples": -1.0, "reltoastrelid": 0, "relpersistence": "p", "relkind": "r",
        "relnatts": width, "relchecks": 0, "relreplident": "d", "relispopulated": True,
        "relrewrite": 0, **dict.fromkeys(flags, False),
    }  # fmt: skip


def _attribute(relation: int, place: int, name: str, oid: int, size: int) -> dict[str, Any]:
    flags = ("attnotnull", "atthasdef", "atthasmissing", "attisdropped")
    return {
        "attrelid": relation, "attname": name, "atttypid": oid, "attlen": size, "attnum": place,
        "attndims": 0, "atttypmod": -1, "attcollation": 0, "attidentity": "", "attgenerated": "",
        "attstorage": "p", "attcompression": "", "attislocal": True, "attinhcount": 0,
        "attstattarget": -1, "attcacheoff": -1, "attbyval": False, "attalign": "i",
        **dict.fromkeys(flags, False),
    }  # fmt: skip


def _type(oid: int, name: str, size: int, category: str) -> dict[str, Any]:
    return {
        "oid": oid, "typname": name, "typnamespace": _SYSTEM, "typowner": 10, "typlen": size,
        "typbyval": size > 0, "typtype": "b", "typcategory": category, "typispreferred": False,
        "typisdefined": True, "typdelim": ",", "typrelid": 0, "typelem": 0, "typarray": 0,
        "typnotnull": False, "typbasetype": 0, "typtypmod": -1, "typndims": 0, "typcollation": 0,
        "typinput": 0, "typoutput": 0, "typsubscript": 0,
    }  # fmt: skip


def _information(table: str, place: int, column: str, oid: int) -> dict[str, Any]:
    short, word = next((t[1], t[4]) for t in TYPES if t[0] == oid)
    return {
        "table_catalog": "discreet", "table_schema": "public", "table_name": table,
        "column_name": column, "ordinal_position": place, "is_nullable": "YES", "data_type": word,
        "udt_catalog": "discreet", "udt_schema": "pg_catalog", "udt_name": short,
        "is_identity": "NO", "is_generated": "NEVER", "is_updatable": "NO", "is_self_referencing": "NO",
    }  # fmt: skip


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind
