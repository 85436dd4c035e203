"""The ledger in one SQLite file: durable on commit, shared by threads and processes of a machine."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from discreet.errors import EngineError, InputError
from discreet.ledger.format import prepare, require_format
from discreet.ledger.store import Ledger
from discreet.ledger.tables import Cursor

__all__ = ["SqliteLedger", "SqliteReader"]

#: How long a writer waits for another process before it gives up, in seconds.
PATIENCE = 60.0


class SqliteLedger(Ledger):
    """A ledger in a file, with a write-ahead log that is flushed to disk at each commit."""

    def __init__(self, path: str | Path, *, checkpoint_every: int = 1_000) -> None:
        super().__init__(checkpoint_every=checkpoint_every)
        self.path = str(path)
        self._lock = threading.RLock()
        try:
            if self.path != ":memory:":
                Path(self.path).parent.mkdir(parents=True, exist_ok=True)
                _make_private(Path(self.path))
            self._connection = self._connect()
            self._reader, self._reading = self._connection, self._lock
            with self.transaction(write=True) as cursor:
                prepare(cursor, blob="BLOB")
            if self.path != ":memory:":  # those who read do not wait for the disk
                self._reader, self._reading = self._connect(), threading.RLock()
        except (sqlite3.Error, OSError) as error:
            raise EngineError(
                f"the ledger cannot be opened: {error}",
                code="ledger-unavailable",
                file=self.path,
                hint="check that the file is a ledger and can be written",
            ) from error

    @property
    def is_lasting(self) -> bool:
        """Whether it is in a file."""
        return self.path != ":memory:"

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
        self.let_go()
        with self._lock, self._reading:
            self._reader.close()
            self._connection.close()


class SqliteReader(SqliteLedger):
    """A ledger opened for reading only: nothing is written, not even SQLite's files beside it.

    SQLite itself writes when it only reads a file with a write-ahead log. So a file without a log
    is opened as one that nobody changes, and one with a log is copied first.
    """

    def __init__(self, path: str | Path) -> None:
        Ledger.__init__(self)
        self.path = str(path)
        self._lock = self._reading = threading.RLock()
        self._folder = contextlib.ExitStack()
        try:
            _require_ledger_file(Path(path))
            self._connection = self._reader = self._connect()
            found = {
                str(row[0])
                for row in self._connection.execute("SELECT name FROM sqlite_master").fetchall()
            }
        except sqlite3.Error:
            self._folder.close()
            raise _not_a_ledger(path) from None
        if not found >= _TABLES:
            self.close()
            raise _not_a_ledger(path)
        try:
            with self.reading() as cursor:
                require_format(cursor, has_version="discreet_format" in found)
        except BaseException:
            self.close()
            raise

    def _connect(self) -> sqlite3.Connection:
        place = Path(self.path).absolute()
        log = place.with_name(place.name + "-wal")
        if log.exists() and log.stat().st_size:
            place = self._copied(place, log)
            return sqlite3.connect(place, isolation_level=None, check_same_thread=False)
        address = f"file:{quote(str(place))}?mode=ro&immutable=1"
        return sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)

    def _copied(self, place: Path, log: Path) -> Path:
        """Copy file and log into a private folder; again while a gateway writes them."""
        folder = Path(
            self._folder.enter_context(tempfile.TemporaryDirectory(prefix="discreet-ledger-"))
        )
        for _ in range(10):
            before = [(f.stat().st_mtime_ns, f.stat().st_size) for f in (place, log)]
            for file in (place, log):
                shutil.copyfile(file, folder / file.name)
            if before == [(f.stat().st_mtime_ns, f.stat().st_size) for f in (place, log)]:
                return folder / place.name
        raise EngineError(
            "the ledger changes while it is read",
            code="ledger-busy",
            file=place,
            hint="try again, or stop the gateway for a moment",
        )

    @contextlib.contextmanager
    def transaction(self, *, write: bool) -> Iterator[Cursor]:
        """Run one transaction that reads."""
        if write:
            raise EngineError("the ledger is open for reading", code="ledger-read-only")
        with super().transaction(write=False) as cursor:
            yield cursor

    def close(self) -> None:
        """Close the file, and remove the copy if there is one."""
        self._connection.close()
        self._folder.close()


#: Tables that ledgers of every version have.
_TABLES = {"discreet_entries", "discreet_balances", "discreet_head"}


def _make_private(path: Path) -> None:
    """Make the file, or take others' rights to it; SQLite gives its log the same rights."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    for file in (path, *(path.with_name(path.name + end) for end in ("-wal", "-shm"))):
        if file.exists() and file.stat().st_uid == os.geteuid():
            file.chmod(file.stat().st_mode & 0o700)


def _require_ledger_file(path: Path) -> None:
    with path.open("rb") as file:
        if file.read(16) != b"SQLite format 3\0":
            raise _not_a_ledger(path)


def _not_a_ledger(path: str | Path) -> InputError:
    return InputError(
        "this file is not a ledger",
        code="not-a-ledger",
        file=path,
        hint="give the file that the gateway names under `ledger:`",
    )
