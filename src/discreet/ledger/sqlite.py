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
        self.path = str(path)
        self._lock = threading.RLock()
        if self.path != ":memory:":
            Path(self.path).parent.mkdir(parents=True, exist_ok=True)
        try:
            self._connection = sqlite3.connect(
                self.path, timeout=PATIENCE, isolation_level=None, check_same_thread=False
            )
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=FULL")
            with self.transaction(write=True) as cursor:
                for statement in SCHEMA:
                    cursor.execute(statement.format(blob="BLOB"))
        except sqlite3.Error as error:
            raise EngineError(
                f"the ledger cannot be opened: {error}",
                code="ledger-unavailable",
                file=self.path,
                hint="check that the file is a ledger and can be written",
            ) from error

    @contextlib.contextmanager
    def transaction(self, *, write: bool) -> Iterator[Cursor]:
        """Run one transaction; writers queue for the file's lock from the start."""
        with self._lock:
            cursor = self._connection.cursor()
            try:
                cursor.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                try:
                    yield cursor
                except BaseException:
                    cursor.execute("ROLLBACK")
                    raise
                cursor.execute("COMMIT")
            except sqlite3.Error as error:
                if self._connection.in_transaction:
                    self._connection.rollback()
                raise EngineError(
                    f"the ledger failed: {error}", code="ledger-failed", file=self.path
                ) from error
            finally:
                cursor.close()

    def close(self) -> None:
        """Close the file; what was recorded is already on disk."""
        with self._lock:
            self._connection.close()
