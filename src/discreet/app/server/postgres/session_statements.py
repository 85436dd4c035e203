"""Statements about the session itself: SET, SHOW, BEGIN, …, and what clients ask on connecting."""

from __future__ import annotations

import dataclasses
import itertools
import re
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

import discreet
from discreet.app.server.desk import Reply
from discreet.errors import InputError

if TYPE_CHECKING:
    from discreet.app.server.desk import User

__all__ = ["Transaction", "placeholders", "session_reply", "split"]

_SHOWN = {
    "server_version": "15.0",
    "transaction_isolation": "read committed",
    "transaction isolation level": "read committed",
    "standard_conforming_strings": "on",
    "client_encoding": "UTF8",
    "server_encoding": "UTF8",
    "datestyle": "ISO, MDY",
    "timezone": "UTC",
    "search_path": "public",
    "max_identifier_length": "63",
    "integer_datetimes": "on",
    "application_name": "",
    "is_superuser": "off",
    "default_transaction_read_only": "on",
}
_QUIET = {"SET", "RESET", "DISCARD", "DEALLOCATE", "LISTEN", "UNLISTEN", "CLOSE"}
_BEGIN = {"BEGIN", "START"}
_END = {"COMMIT", "END", "ROLLBACK", "ABORT"}


@dataclasses.dataclass
class Transaction:
    """What the client believes about its transaction; nothing here can be rolled back anyway."""

    state: bytes = b"I"

    def begin(self) -> None:
        """Open a transaction."""
        if self.state == b"I":
            self.state = b"T"

    def end(self) -> None:
        """Close it."""
        self.state = b"I"

    def fail(self) -> None:
        """Remember that a statement in it failed."""
        if self.state == b"T":
            self.state = b"E"


def split(sql: str) -> list[str]:
    r"""Return the statements of a text; semicolons inside quotes and comments do not count.

    >>> split("SELECT ';'; -- no; \n SHOW x;")
    ["SELECT ';'", 'SHOW x']
    """
    try:
        found = Postgres().tokenize(sql)
    except SqlglotError:
        raise InputError(
            "the text is not SQL", code="not-sql", hint="check quotes and comments"
        ) from None
    statements, start = [], None
    for token in found:
        if token.token_type == TokenType.SEMICOLON:
            if start is not None:
                statements.append(sql[start : token.start])
            start = None
        elif start is None:
            start = token.start
            end = token.end
        end = token.end
    if start is not None:
        statements.append(sql[start : end + 1])
    return [statement.strip() for statement in statements]


def placeholders(sql: str) -> int:
    """Return how many parameters ($1 …) a statement has."""
    try:
        found = Postgres().tokenize(sql)
    except SqlglotError:
        return 0
    numbers = [0]
    for before, token in itertools.pairwise(found):
        if before.token_type == TokenType.PARAMETER and token.text.isdigit():
            numbers.append(int(token.text))
    return min(max(numbers), 1000)


def session_reply(sql: str, transaction: Transaction, user: User) -> Reply | None:
    """Answer a statement about the session; None for anything else."""
    words = re.findall(r"[A-Za-z_]+", sql[:200])
    if not words:
        return Reply(pa.table({}), "session", tag="")
    first = words[0].upper()
    if first in _BEGIN:
        transaction.begin()
        return Reply(pa.table({}), "session", tag="BEGIN")
    if first in _END:
        failed = transaction.state == b"E"
        transaction.end()
        tag = "ROLLBACK" if failed or first in ("ROLLBACK", "ABORT") else "COMMIT"
        return Reply(pa.table({}), "session", tag=tag)
    if first in ("SAVEPOINT", "RELEASE"):
        return Reply(pa.table({}), "session", tag=first)
    if first in _QUIET:
        return Reply(pa.table({}), "session", tag="SET" if first == "SET" else first)
    if first == "SHOW":
        name = " ".join(sql.strip().rstrip(";").split()[1:]).strip('"').lower()
        if name not in _SHOWN:
            raise InputError(f"there is no setting {name[:63]!r}", code="unknown-setting")
        return Reply(_one(name.replace(" ", "_"), _SHOWN[name]), "session", tag="SHOW")
    return _known(sql, user)


def _known(sql: str, user: User) -> Reply | None:
    """Answer the handful of functions that clients call on connecting."""
    text = re.sub(r"\s+", " ", sql.strip().rstrip(";")).lower().replace("pg_catalog.", "")
    known = {
        "select version()": ("version", f"PostgreSQL 15.0 (discreet {discreet.__version__})"),
        "select current_schema()": ("current_schema", "public"),
        "select current_schema": ("current_schema", "public"),
        "select current_user": ("current_user", user.name),
        "select current_database()": ("current_database", "discreet"),
        "show transaction isolation level": ("transaction_isolation", "read committed"),
        "select pg_is_in_recovery()": ("pg_is_in_recovery", "f"),
    }
    if text in known:
        return Reply(_one(*known[text]), "session")
    if text == "select 1":
        return Reply(pa.table({"?column?": pa.array([1], pa.int32())}), "session")
    return None


def _one(name: str, value: str) -> pa.Table:
    return pa.table({name: [value]})
