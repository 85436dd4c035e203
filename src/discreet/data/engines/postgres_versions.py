"""Whether anybody wrote to some tables of PostgreSQL: which versions of rows they hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg import sql as psql

__all__ = ["Versions"]

#: When the server was started, and which transactions are over: what is visible follows from it.
_NOW = "SELECT pg_postmaster_start_time()::text, txid_current_snapshot()::text"
# Every change makes another version of a row at another place, or takes one away.
_ROWS = psql.SQL(
    "SELECT count(*), sum(hashtextextended(tableoid::text || ctid::text || xmin::text, 0)::numeric) "
    "FROM {}"
)


class Versions:
    """Versions of the rows of tables, scanned again only if a transaction has ended since."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, str]] = {}

    def now(self, connection: psycopg.Connection[Any], tables: Sequence[psql.Identifier]) -> str:
        """Return a text that stays the same while nobody writes to the tables.

        Any: connections of rows of any kind.
        """
        # Before the scan: what ends meanwhile leads to another scan.
        started, over = connection.execute(_NOW).fetchone() or ("", "")
        name = psql.SQL(", ").join(tables).as_string(connection)
        known = self._known.get(name)
        if known is not None and known[0] == f"{started} {over}":
            return known[1]
        try:
            scanned = [connection.execute(_ROWS.format(table)).fetchone() for table in tables]
            state = f"{started} {scanned}"
        except (
            psycopg.errors.UndefinedColumn,
            psycopg.errors.FeatureNotSupported,
            psycopg.errors.InsufficientPrivilege,
        ):
            # A view has no versions, and a right to some columns is none to these.
            state = f"{started} {over}"
        self._known[name] = (f"{started} {over}", state)
        return state
