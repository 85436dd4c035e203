"""The format of a ledger: which version its tables have, and how older ones are brought up to it.

Version 1 had no number of its own. Version 2 keeps the digest of each answer beside it: the chain is
made of digests, so that what was answered can be taken out one day while the chain still verifies.
"""

from __future__ import annotations

import hashlib

from discreet.errors import EngineError, InputError
from discreet.ledger.tables import SCHEMA, Cursor

__all__ = ["FORMAT", "prepare", "require_format"]

#: The version that this code reads and writes.
FORMAT = 2
_PAGE = 500


def prepare(cursor: Cursor, *, blob: str) -> None:
    """Make the tables, or bring those of an older version up to this one; in one transaction."""
    cursor.execute(
        "CREATE TABLE IF NOT EXISTS discreet_format ("
        "one BIGINT PRIMARY KEY CHECK (one = 1), version BIGINT NOT NULL)"
    )
    found = _version(cursor)
    if found is not None and found != FORMAT:
        raise _unknown(found)
    for statement in SCHEMA:
        cursor.execute(statement.format(blob=blob))
    if found is None:  # new, or of a time before versions had numbers
        cursor.execute(
            "ALTER TABLE discreet_entries ADD COLUMN answer_digest TEXT NOT NULL DEFAULT ''"
        )
        _fill(cursor)
        cursor.execute("INSERT INTO discreet_format (one, version) VALUES (1, ?)", (FORMAT,))


def require_format(cursor: Cursor, *, has_version: bool) -> None:
    """Refuse to read a ledger of another version; nothing is written to look at one."""
    if not has_version:
        raise InputError(
            "this ledger is of an older version",
            code="old-ledger",
            hint="bring it up to date once with: discreet ledger migrate LEDGER",
        )
    found = _version(cursor)
    if found != FORMAT:
        raise _unknown(found or 0)


def _version(cursor: Cursor) -> int | None:
    cursor.execute("SELECT version FROM discreet_format WHERE one = 1")
    row = cursor.fetchone()
    return None if row is None else int(row[0])


def _fill(cursor: Cursor) -> None:
    """Add the digests of the answers that are there; no hash of the chain changes by it."""
    number = 0
    while True:
        cursor.execute(
            "SELECT number, answer FROM discreet_entries WHERE number > ? "  # noqa: S608 - a number of this module
            f"ORDER BY number LIMIT {_PAGE}",
            (number,),
        )
        rows = cursor.fetchall()
        if not rows:
            return
        for found, answer in rows:
            digest = hashlib.sha256(bytes(answer)).hexdigest()
            cursor.execute(
                "UPDATE discreet_entries SET answer_digest = ? WHERE number = ?", (digest, found)
            )
        number = int(rows[-1][0])


def _unknown(found: int) -> EngineError:
    return EngineError(
        f"the ledger has format {found}, and this version of discreet knows {FORMAT}",
        code="ledger-format",
        hint="use the version of discreet that wrote it, or a newer one",
    )
