"""What can go wrong beneath an engine, whatever it runs: the same codes and words on all of them.

None of these errors is about a value of the data, so whoever asks may be told which it was. All
others say no more than their kind.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator

from discreet.data.room import disk_full, is_full
from discreet.errors import EngineError

__all__ = [
    "OUTSIDE",
    "changed_table",
    "connection_lost",
    "disk_full",
    "is_full",
    "local_room",
    "no_right",
]

#: Codes of failures that lie outside of the data and of what was asked.
OUTSIDE = frozenset(
    {
        "changed-table",
        "connection-lost",
        "disk-full",
        "no-right",
        "out-of-memory",
        "read-only",
        "too-large-for-driver",
    }
)


def connection_lost(engine: str, reason: str, *, kept: bool = False) -> EngineError:
    """Return the error of a connection that ended; `kept`: rows that lived as long as it are gone.

    >>> print(connection_lost("PostgreSQL", "the server cannot be reached"))
    the connection to PostgreSQL was lost: the server cannot be reached; check that the server ...
    """
    hint = (
        "read the records again, and do again what was done with them"
        if kept
        else "check that the server is up, and try again"
    )
    return EngineError(
        f"the connection to {engine} was lost: {reason}",
        code="connection-lost",
        hint=hint,
        kept=kept,
    )


def no_right(engine: str, what: str) -> EngineError:
    """Return the error of somebody who may not read or write something."""
    return EngineError(
        f"{engine} does not allow it: {what}",
        code="no-right",
        hint="grant SELECT on the table, or on some columns and name those with columns=[…]",
    )


def changed_table(engine: str, what: str, *, sqlstate: str | None = None) -> EngineError:
    """Return the error of a table that has lost a column, or is gone, since it was opened."""
    return EngineError(
        f"{engine} no longer has what was opened: {what}",
        code="changed-table",
        hint="read the records again as they are now",
        sqlstate=sqlstate,
    )


@contextlib.contextmanager
def local_room() -> Iterator[None]:
    """Explain a folder for temporary files of this machine that is full or cannot be written."""
    try:
        yield
    except OSError as error:
        if is_full(error):
            raise disk_full(
                "in the folder for temporary files of this machine",
                "free some of it, or name another folder in the variable TMPDIR",
            ) from None
        raise EngineError(
            "the folder for temporary files of this machine cannot be used: "
            f"{error.strerror or type(error).__name__}",
            code="cannot-write",
            hint="name another folder in the variable TMPDIR, in use now: "
            f"{tempfile.tempdir or 'the default'}",
        ) from None
