"""Opening a ledger by its place: a file, a PostgreSQL database, or memory."""

from __future__ import annotations

from pathlib import Path

from discreet.errors import InputError
from discreet.ledger.store import Ledger
from discreet.ledger.witness import CommandWitness, FileWitness, Witness

__all__ = ["open_ledger", "open_witness"]


def open_ledger(
    place: str | Path | Ledger = ":memory:",
    *,
    read_only: bool = False,
    head: str | Path | Witness | None = None,
    checkpoint_every: int = 1_000,
) -> Ledger:
    """Return the ledger at a path (SQLite) or an address `postgresql://…`.

    It is verified, from the last checkpoint on; `head` says where its last entry is noted, so that an
    older copy is noticed: a file, `postgresql://…` or `command:PROGRAM`. Opened to be read only,
    nothing is written or verified, and what is no ledger is an InputError. A checkpoint, from which
    the next opening verifies, is written after `checkpoint_every` entries.

    Examples
    --------
    >>> from discreet.ledger.entry import Draft
    >>> with open_ledger() as ledger:
    ...     entry, new = ledger.record(
    ...         Draft("people", "ana", "exact", "SELECT COUNT(*) FROM people", "d1", "p1")
    ...     )
    ...     again = ledger.record(
    ...         Draft("people", "ana", "exact", "SELECT COUNT(*) FROM people", "d1", "p1")
    ...     )
    ...     entry.number, new, again[1], ledger.verify().intact
    (1, True, False, True)
    """
    if isinstance(place, Ledger):
        return place
    ledger = _connected(str(place), read_only, checkpoint_every)
    if not read_only:
        try:
            ledger.open(None if head is None else open_witness(head))
        except BaseException:
            ledger.close()
            raise
    return ledger


def _connected(text: str, read_only: bool, checkpoint_every: int) -> Ledger:
    if text.startswith(("postgresql://", "postgres://")):
        from discreet.ledger.postgres import PostgresLedger

        return PostgresLedger(text, read_only=read_only, checkpoint_every=checkpoint_every)
    if "://" in text:
        raise InputError(
            f"there is no ledger at {text.split('://', maxsplit=1)[0]}://",
            code="unknown-ledger",
            hint="give a file, or postgresql://…",
        )
    from discreet.ledger.sqlite import SqliteLedger, SqliteReader

    if read_only:
        return SqliteReader(text)
    return SqliteLedger(text, checkpoint_every=checkpoint_every)


def open_witness(place: str | Path | Witness) -> Witness:
    """Return the witness at a path, at an address `postgresql://…`, or behind `command:PROGRAM`.

    >>> open_witness("heads/people.json").pause
    1.0
    """
    if isinstance(place, Witness):
        return place
    text = str(place)
    if text.startswith(("postgresql://", "postgres://")):
        from discreet.ledger.postgres import PostgresWitness

        return PostgresWitness(text)
    if text.startswith("command:"):
        return CommandWitness(text.removeprefix("command:"))
    if "://" in text:
        raise InputError(
            f"no head can be noted at {text.split('://', maxsplit=1)[0]}://",
            code="unknown-witness",
            hint="give a file, postgresql://… or command:PROGRAM",
        )
    return FileWitness(text)
