"""The catalog that clients look into: an empty twin of the protected schema.

Clients ask `pg_catalog` and `information_schema` what tables and columns there are. They are
answered from a database of their own in memory, which holds the protected relations without a
single row, has no way to files or network, and is asked nothing but questions about the catalog.
What it cannot answer comes back empty with the columns that were asked for.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from discreet.data.engines.base import connect
from discreet.errors import DiscreetError

__all__ = ["Catalog"]

_SCHEMAS = {"pg_catalog", "information_schema"}


class Catalog:
    """Answers questions about tables and columns."""

    def __init__(self, relations: Mapping[str, pa.Schema]) -> None:
        self._engine = connect("duckdb://", enable_external_access=False, threads=1)
        self._lock = threading.Lock()
        for name, schema in relations.items():
            plain = pa.schema([pa.field(field.name, _plain(field.type)) for field in schema])
            rows = self._engine.load(plain.empty_table())
            self._engine.store(rows, name)
            self._engine.drop(rows)

    def close(self) -> None:
        """Let go of the database."""
        self._engine.close()

    def answer(self, sql: str, parameters: Sequence[Any] = ()) -> pa.Table | None:
        """Answer a question about the catalog; None if it is about anything else."""
        try:
            tree = sqlglot.parse_one(sql, read="postgres")
        except (SqlglotError, RecursionError):
            # psql's own look-ups use operators that no parser but PostgreSQL's knows.
            return _empty_by_text(sql)
        if not isinstance(tree, exp.Query) or not _is_catalog(tree):
            return None
        values = iter(parameters)
        for place in tree.find_all(exp.Parameter, exp.Placeholder):
            value = next(values, None)
            place.replace(exp.Null() if value is None else exp.Literal.string(str(value)))
        try:
            with self._lock:
                return self._engine.fetch(tree)
        except DiscreetError:
            names = [name for name in tree.named_selects if name != "*"] or ["?column?"]
            return pa.table({name: pa.array([], pa.string()) for name in names})


def _is_catalog(tree: exp.Query) -> bool:
    """Whether every table belongs to the catalog, and no function reads anything else."""
    tables = list(tree.find_all(exp.Table))
    common = {cte.alias for cte in tree.find_all(exp.CTE)}
    for table in tables:
        if not isinstance(table.this, exp.Identifier):
            return False  # a table function, such as one that reads files
        known = table.db.lower() in _SCHEMAS or (
            not table.db and table.name.lower().startswith("pg_")
        )
        if not (known or table.name in common):
            return False
    return bool(tables)


def _empty_by_text(sql: str) -> pa.Table | None:
    if "pg_catalog." not in sql:
        return None
    return pa.table({"?column?": pa.array([], pa.string())})


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return kind.value_type
    return kind
