"""The ledger in PostgreSQL: one memory for several gateway processes and machines."""

from __future__ import annotations

import contextlib
import queue
from collections.abc import Iterator, Sequence
from typing import Any

from discreet.errors import EngineError, InputError
from discreet.ledger.store import SCHEMA, Cursor, Ledger

__all__ = ["PostgresLedger"]

#: All writers of ledgers in a database take this advisory lock, so the chain has one end.
LOCK = 0x64697363726574
#: Connections kept open; more threads wait for one.
CONNECTIONS = 4


class _Cursor:
    """A psycopg cursor that takes `?` placeholders."""

    def __init__(self, cursor: Any) -> None:
        # Any: psycopg is an extra and may be absent where this is type-checked.
        self._cursor = cursor

    def execute(self, sql: str, values: Sequence[Any] = (), /) -> Any:
        return self._cursor.execute(sql.replace("?", "%s"), values)

    def fetchone(self) -> Any:
        return self._cursor.fetchone()

    def fetchall(self) -> list[Any]:
        return list(self._cursor.fetchall())


class PostgresLedger(Ledger):
    """A ledger in a PostgreSQL database; commits wait for the disk whatever the server's default."""

    def __init__(self, address: str) -> None:
        super().__init__()
        try:
            import psycopg
        except ImportError:
            raise InputError(
                "a PostgreSQL ledger needs the driver psycopg",
                code="missing-extra",
                hint="install discreet[postgres]",
            ) from None
        self._psycopg = psycopg
        self._address = address
        self._free: queue.LifoQueue[Any] = queue.LifoQueue()
        for _ in range(CONNECTIONS):
            self._free.put(None)
        with self.transaction(write=True) as cursor:
            for statement in SCHEMA:
                cursor.execute(statement.format(blob="BYTEA"))

    def _connect(self) -> Any:
        connection = self._psycopg.connect(self._address, autocommit=True)
        connection.execute("SET synchronous_commit = on")
        connection.execute("SET client_min_messages = warning")
        return connection

    @contextlib.contextmanager
    def transaction(self, *, write: bool) -> Iterator[Cursor]:
        """Run one transaction; writers take the database's advisory lock first."""
        with self._cursor() as cursor, cursor.connection.transaction():
            if write:
                cursor.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
            yield _Cursor(cursor)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Cursor]:
        """Run one statement that reads."""
        with self._cursor() as cursor:
            yield _Cursor(cursor)

    @contextlib.contextmanager
    def _cursor(self) -> Iterator[Any]:
        # Any: as above.
        connection = self._free.get()
        try:
            if connection is None or connection.closed:
                connection = self._connect()
            with connection.cursor() as cursor:
                yield cursor
        except self._psycopg.Error as error:
            raise EngineError(
                f"the ledger failed: {type(error).__name__}",
                code="ledger-failed",
                hint="check that the PostgreSQL server is up and the address is right",
            ) from error
        finally:
            self._free.put(connection)

    def close(self) -> None:
        """Close all connections; what was recorded is already on disk."""
        held = [self._free.get() for _ in range(CONNECTIONS)]
        for connection in held:
            if connection is not None:
                connection.close()
            self._free.put(None)
