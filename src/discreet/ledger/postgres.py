"""The ledger in PostgreSQL: one memory for several gateway processes and machines."""

from __future__ import annotations

import contextlib
import queue
import select
from collections.abc import Iterator, Sequence
from typing import Any

from discreet.errors import EngineError, InputError
from discreet.ledger.format import prepare, require_format
from discreet.ledger.store import Ledger
from discreet.ledger.tables import Cursor
from discreet.ledger.witness import Noted, Witness

__all__ = ["PostgresLedger", "PostgresWitness"]

#: Every writer takes this advisory lock, so that no two entries follow the same one.
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

    def __init__(
        self, address: str, *, read_only: bool = False, checkpoint_every: int = 1_000
    ) -> None:
        super().__init__(checkpoint_every=checkpoint_every)
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
        self._read_only = read_only
        self._free: queue.LifoQueue[Any] = queue.LifoQueue()
        for _ in range(CONNECTIONS):
            self._free.put(None)
        if read_only:
            self._require_ledger()
            return
        with self.transaction(write=True) as cursor:
            prepare(cursor, blob="BYTEA")

    def _require_ledger(self) -> None:
        with self.reading() as cursor:
            cursor.execute("SELECT to_regclass('discreet_entries'), to_regclass('discreet_head')")
            if None in cursor.fetchone():
                raise InputError(
                    "the database holds no ledger",
                    code="not-a-ledger",
                    hint="give the address that the gateway names under `ledger:`",
                )
            cursor.execute("SELECT to_regclass('discreet_format')")
            has_version = cursor.fetchone()[0] is not None
            require_format(cursor, has_version=has_version)

    def _connect(self) -> Any:
        connection = self._psycopg.connect(self._address, autocommit=True)
        connection.execute("SET synchronous_commit = on")
        connection.execute("SET client_min_messages = warning")
        if self._read_only:
            connection.execute("SET default_transaction_read_only = on")
        return connection

    @contextlib.contextmanager
    def transaction(self, *, write: bool) -> Iterator[Cursor]:
        """Run one transaction; writers take the database's advisory lock first."""
        with self._cursor() as cursor, cursor.connection.transaction():
            if write:
                cursor.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
            else:  # all statements see the ledger as it was at the first of them
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
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
            if connection is None or connection.closed or _was_ended(connection):
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
        self.let_go()
        held = [self._free.get() for _ in range(CONNECTIONS)]
        for connection in held:
            if connection is not None:
                connection.close()
            self._free.put(None)


def _was_ended(connection: Any) -> bool:
    """Whether the server ended a connection while nobody used it: it has then said so.

    Any: as above.
    """
    readable, _, _ = select.select([connection.fileno()], [], [], 0)
    if readable:
        connection.close()
    return bool(readable)


class PostgresWitness(Witness):
    """Notes the head in a table `discreet_noted` of another database than the ledger's."""

    def __init__(self, address: str) -> None:
        self._address = address

    def read(self) -> Noted | None:
        """Return what the table says."""
        with self._cursor() as cursor:
            cursor.execute("SELECT ledger, number, hash FROM discreet_noted")
            found = cursor.fetchone()
        return None if found is None else (str(found[0]), int(found[1]), str(found[2]))

    def note(self, noted: Noted) -> None:
        """Replace the row."""
        with self._cursor() as cursor:
            cursor.execute(
                "INSERT INTO discreet_noted (one, ledger, number, hash) VALUES (1, %s, %s, %s) "
                "ON CONFLICT (one) DO UPDATE SET ledger = excluded.ledger, "
                "number = excluded.number, hash = excluded.hash",
                noted,
            )

    @contextlib.contextmanager
    def _cursor(self) -> Iterator[Any]:
        # Any: as above.
        import psycopg

        try:
            with psycopg.connect(self._address) as connection, connection.cursor() as cursor:
                cursor.execute("SET LOCAL client_min_messages = warning")
                cursor.execute(
                    "CREATE TABLE IF NOT EXISTS discreet_noted (one BIGINT PRIMARY KEY "
                    "CHECK (one = 1), ledger TEXT NOT NULL, number BIGINT NOT NULL, "
                    "hash TEXT NOT NULL)"
                )
                yield cursor
        except psycopg.Error as error:
            raise EngineError(
                f"the database that notes the head failed: {type(error).__name__}",
                code="ledger-witness",
                hint="check that the PostgreSQL server is up and the address is right",
            ) from error
