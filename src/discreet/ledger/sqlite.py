"""The ledger in one SQLite file: durable on commit, shared by threads and processes of a machine."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

from discreet.errors import EngineError
from discreet.ledger.store import SCHEMA, Cursor, Ledger

__all__ = ["SqliteLedger"]

#: How long a writer waits for another process before it gives up, in seconds.
PATIENCE = 60.0


class SqliteLedger(Ledger):
    """A ledger in a file, with a write-ahead log that is flushed to disk at each commit."""

    def __init__(self, path: str | Path) -> None:
        super().__init__()
        self.path = str(path)
        self._lock = threading.RLock()
        if self.path != ":memory:":
            Path(self.path).parent.mkdir(parents=True, exist_ok=True)
        try:
            self._connection = self._connect()
            self._reader, self._reading = self._connection, self._lock
            with self.transaction(write=True) as cursor:
                for statement in SCHEMA:
                    cursor.execute(statement.format(blob="BLOB"))
            if self.path != ":memory:":  # those who read do not wait for the disk
                self._reader, self._reading = self._connect(), threading.RLock()
        except sqlite3.Error as error:
            raise EngineError(
                f"the ledger cannot be opened: {error}",
                code="ledger-unavailable",
                file=self.path,
                hint="check that the file is a ledger and can be written",
            ) from error

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, timeout=PATIENCE, isolation_level=None, check_same_thread=False
        )
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        return connection

    @contextlib.contextmanager
    def transaction(self, *, write: bool) -> Iterator[Cursor]:
        """Run one transaction; writers queue for the file's lock from the start."""
        lock, connection = (
            (self._lock, self._connection) if write else (self._reading, self._reader)
        )
        with lock, self._cursor(connection) as cursor:
            cursor.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            try:
                yield cursor
            except BaseException:
                cursor.execute("ROLLBACK")
                raise
            cursor.execute("COMMIT")

    @contextlib.contextmanager
    def reading(self) -> Iterator[Cursor]:
        """Run one statement that reads."""
        with self._reading, self._cursor(self._reader) as cursor:
            yield cursor

    @contextlib.contextmanager
    def _cursor(self, connection: sqlite3.Connection) -> Iterator[sqlite3.Cursor]:
        cursor = connection.cursor()
        try:
            yield cursor
        except sqlite3.Error as error:
            if connection.in_transaction:
                connection.rollback()
            raise EngineError(
                f"the ledger failed: {error}", code="ledger-failed", file=self.path
            ) from error
        finally:
            cursor.close()

    def close(self) -> None:
        """Close the file; what was recorded is already on disk."""
        with self._lock, self._reading:
            self._reader.close()
            self._connection.close()
