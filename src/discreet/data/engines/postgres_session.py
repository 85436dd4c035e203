"""A connection to PostgreSQL that is begun anew when it is lost, once for each piece of work."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import psycopg

from discreet.data.engines.faults import changed_table, connection_lost, disk_full, no_right
from discreet.data.engines.interruption import check, interrupted
from discreet.errors import DiscreetError, EngineError

__all__ = ["Session"]

Result = TypeVar("Result")

# Classes of SQLSTATE whose text can quote a row: data exceptions and violated constraints.
_TELLING = ("22", "23", "44", "P0")
#: States in which the server has ended the session or takes none for a while.
_ENDED = frozenset({"57P01", "57P02", "57P03", "57P05", "25P03"})
#: How long a server may take to come back before its absence is reported, in seconds.
PATIENCE = 10.0
#: A peer that has gone without a word is noticed after about two minutes, where the address does
#: not say otherwise; a statement that runs long is not.
_ALIVE = {
    "keepalives_idle": "60",
    "keepalives_interval": "10",
    "keepalives_count": "6",
    "tcp_user_timeout": "120000",
}
# Rows are compared across engines: one clock, doubles to the last bit.
_SETTINGS = (
    "SET TIME ZONE 'UTC'",
    "SET extra_float_digits = 1",
    "SET client_encoding = 'UTF8'",
    "SET DateStyle = 'ISO'",
)


class Session:
    """One connection, and what is known of it when it has to be begun anew.

    Temporary tables go with a connection. Their names are kept, so that nobody takes a statement
    that fails for want of them as one about the data.
    """

    def __init__(self, url: str, options: dict[str, Any]) -> None:
        # Any: connection parameters of libpq.
        self._url = url
        said = psycopg.conninfo.conninfo_to_dict(url)
        alive = {name: value for name, value in _ALIVE.items() if name not in said}
        self._options: dict[str, Any] = {**alive, **options}
        self.lock = threading.RLock()
        #: How often a connection was begun: what was seen through an earlier one may have changed.
        self.begun = 0
        self._held: set[str] = set()
        self._gone: set[str] = set()
        self._failed = float("-inf")
        self._closed = False
        self._connection = self._begin()

    @property
    def encoding(self) -> str:
        """The character set of the database."""
        return self._connection.info.parameter_status("server_encoding") or ""

    def _begin(self) -> psycopg.Connection[Any]:
        connection = psycopg.connect(self._url, autocommit=True, **self._options)
        for setting in _SETTINGS:
            connection.execute(setting)
        self.begun += 1
        return connection

    # -- temporary tables ------------------------------------------------------------------------
    def hold(self, name: str) -> None:
        """Note a temporary table, which lives as long as the connection."""
        self._held.add(name)
        self._gone.discard(name)

    def let_go(self, name: str) -> bool:
        """Forget a temporary table; False if it went with its connection already."""
        was_gone = name in self._gone
        self._gone.discard(name)
        self._held.discard(name)
        return not was_gone

    def require(self, names: set[str]) -> None:
        """Refuse to look for temporary tables that went with an earlier connection."""
        if not self._gone.isdisjoint(names):
            raise connection_lost("PostgreSQL", "rows that were kept for it are gone", kept=True)

    # -- running ---------------------------------------------------------------------------------
    def run(
        self,
        work: Callable[[psycopg.Connection[Any]], Result],
        *,
        again: bool = True,
        needs: set[str] | None = None,
    ) -> Result:
        """Do some work with the connection; if it is lost, begin another and do the work again.

        `again`: whether work that was begun may be done a second time; `needs`: the tables it
        reads. Any: connections of rows of any kind.
        """
        asked = time.monotonic()
        with self.lock:
            self.require(needs or set())
            for attempt in (1, 2):
                if self._connection.closed and not self._closed:
                    self._reconnect(asked)
                    self.require(needs or set())
                try:
                    return work(self._connection)
                except psycopg.Error as error:
                    if self._closed or not self._is_lost(error):
                        raise explained(error) from None
                    self._connection.close()
                    if attempt == 2 or not again:
                        raise connection_lost("PostgreSQL", "the server ended it") from None
        raise AssertionError("unreachable")  # pragma: no cover

    def ensure(self) -> None:
        """See that the connection is alive, before work that must not be done twice."""
        self.run(lambda connection: connection.execute("SELECT 1"))

    def _is_lost(self, error: psycopg.Error) -> bool:
        state = error.sqlstate or ""
        return self._connection.closed or state in _ENDED or state.startswith("08")

    def _reconnect(self, asked: float) -> None:
        """Begin another connection, waiting for a server that is being started."""
        self._gone |= self._held
        self._held.clear()
        if self._failed > asked:  # others waited for it in vain meanwhile
            raise connection_lost("PostgreSQL", "the server cannot be reached")
        end, pause = time.monotonic() + PATIENCE, 0.05
        while True:
            check()
            try:
                self._connection = self._begin()
                return
            except psycopg.Error as error:
                if not _may_pass(error) or time.monotonic() + pause > end:
                    self._failed = time.monotonic()
                    reason = (
                        "the server cannot be reached"
                        if error.sqlstate is None
                        else f"the server takes no other ({type(error).__name__})"
                    )
                    raise connection_lost("PostgreSQL", reason) from None
            time.sleep(pause)
            pause = min(2 * pause, 1.0)

    def close(self) -> None:
        """Close the connection; everything temporary goes with it."""
        with self.lock:
            self._closed = True
            self._connection.close()


def _may_pass(error: psycopg.Error) -> bool:
    """Whether a server that refused a connection may take one soon: it is starting, or full."""
    state = error.sqlstate
    return state is None or state.startswith("08") or state in (*_ENDED, "53300")


def explained(error: psycopg.Error) -> DiscreetError:
    """Return a server's error as ours, without anything that could quote a row."""
    state = error.sqlstate or ""
    if state == "57014":
        return interrupted()
    # Names of tables and columns, never a value: those have states of their own.
    said = error.diag.message_primary or type(error).__name__
    if state == "42501":
        return no_right("PostgreSQL", said)
    if state in ("42P01", "42703", "3F000"):
        return changed_table("PostgreSQL", said, sqlstate=state)
    if state in ("53100", "53400"):
        return disk_full(
            "on the disk of the PostgreSQL server",
            "free some of it, or raise temp_file_limit; nothing was written",
        )
    if state == "53200":
        return EngineError(
            "PostgreSQL ran out of the memory it may use",
            code="out-of-memory",
            hint="lower work_mem or max_connections on the server, or give it more memory",
        )
    if state == "25006":
        return EngineError(
            "this PostgreSQL server only reads",
            code="read-only",
            hint="connect to the primary server: some work keeps rows in temporary tables",
        )
    kind = type(error).__name__
    telling = state.startswith(_TELLING) or not error.diag.message_primary
    reason = f"{kind} in the data" if telling else said
    return EngineError(
        f"PostgreSQL failed: {reason}", code="engine-failed", kind=kind, sqlstate=state
    )
