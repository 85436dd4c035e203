"""Statements about the session itself: SET, SHOW, BEGIN, …, and what clients ask on connecting."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import re

import pyarrow as pa
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from discreet.app.server.desk import Reply
from discreet.data.sql.spelling import POSTGRES
from discreet.errors import InputError

__all__ = [
    "BUDGET",
    "LONGEST",
    "SHOWN",
    "Transaction",
    "placeholders",
    "session_reply",
    "session_schema",
    "shows_budget",
    "split",
]

#: A text longer than this is no question.
LONGEST = 100_000

#: Settings of every session, as SHOW and pg_settings tell them.
SHOWN = {
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
    "transaction_read_only": "on",
    "default_transaction_isolation": "read committed",
    "default_transaction_deferrable": "off",
    "server_version_num": "150000",
    "extra_float_digits": "1",
    "intervalstyle": "postgres",
    "bytea_output": "hex",
    "lc_collate": "C.UTF-8",
    "lc_ctype": "C.UTF-8",
    "lc_messages": "C.UTF-8",
    "lc_monetary": "C.UTF-8",
    "lc_numeric": "C.UTF-8",
    "max_index_keys": "32",
    "max_connections": "100",
    "block_size": "8192",
    "session_authorization": "",
    "role": "none",
    "client_min_messages": "notice",
    "escape_string_warning": "on",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "row_security": "on",
    "ssl": "on",
    "password_encryption": "scram-sha-256",
    "max_allowed_packet": "1048576",
}
_QUIET = {
    "SET", "RESET", "DISCARD", "DEALLOCATE", "LISTEN", "UNLISTEN", "CLOSE", "SAVEPOINT", "RELEASE",
}  # fmt: skip
_BEGIN = {"BEGIN", "START"}
_END = {"COMMIT", "END", "ROLLBACK", "ABORT"}
_WORD = re.compile(r"[A-Za-z_]+")
_NOTHING = pa.table({})
_TIMEOUT = re.compile(
    r"set\s+(?P<scope>session\s+|local\s+)?\"?statement_timeout\"?\s*(?:=|\bto\b)\s*(?P<value>.+?)[\s;]*$",
    re.IGNORECASE | re.DOTALL,
)
_SET = re.compile(
    r"set\s+(?:session\s+|local\s+)?(?P<name>time\s+zone|[\w.]+)\s*(?:=|\bto\b|\s)\s*(?P<value>.+?)[\s;]*$",
    re.IGNORECASE | re.DOTALL,
)
_BUDGET = re.compile(r"\s*show\s+\"?discreet\"?\.\"?budget\"?[\s;]*$", re.IGNORECASE)
#: What `SHOW discreet.budget` tells.
BUDGET = pa.schema(
    [
        ("relation", pa.string()),
        ("scope", pa.string()),
        ("period", pa.string()),
        ("budget", pa.float64()),
        ("spent", pa.float64()),
        ("left", pa.float64()),
        ("questions_left", pa.int64()),
    ]
)
_RESET = re.compile(r"(reset\s+(all|\"?statement_timeout\"?)|discard\s+all)[\s;]*$", re.IGNORECASE)
_AMOUNT = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)\s*(us|ms|s|min|h|d)?")
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


@dataclasses.dataclass
class Transaction:
    """What the client believes about its transaction; nothing here can be rolled back anyway."""

    state: bytes = b"I"
    #: Seconds after which the client wants its statements ended, 0 for never: for the session,
    #: and until the transaction ends.
    session_timeout: float = 0.0
    local_timeout: float | None = None
    #: Whether answers come with columns of their errors.
    errors: bool = False
    #: Settings that the client made, to show them again; they change nothing.
    settings: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def timeout(self) -> float:
        """The seconds that hold now."""
        return self.session_timeout if self.local_timeout is None else self.local_timeout

    def begin(self) -> None:
        """Open a transaction."""
        if self.state == b"I":
            self.state = b"T"

    def end(self) -> None:
        """Close it."""
        self.state = b"I"
        self.local_timeout = None

    def recover(self) -> None:
        """Go back to a savepoint."""
        if self.state == b"E":
            self.state = b"T"

    def fail(self) -> None:
        """Remember that a statement in it failed."""
        if self.state == b"T":
            self.state = b"E"


@functools.lru_cache(maxsize=256)
def split(sql: str) -> tuple[str, ...]:
    r"""Return the statements of a text; semicolons inside quotes and comments do not count.

    >>> split("SELECT ';'; -- no; \n SHOW x;")
    ("SELECT ';'", 'SHOW x')
    """
    try:
        found = POSTGRES.tokenize(sql)
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
    return tuple(statement.strip() for statement in statements)


@functools.lru_cache(maxsize=256)
def placeholders(sql: str) -> int:
    """Return how many parameters ($1 …) a statement has."""
    try:
        found = POSTGRES.tokenize(sql)
    except SqlglotError:
        return 0
    numbers = [0]
    for before, token in itertools.pairwise(found):
        if before.token_type == TokenType.PARAMETER and token.text.isdigit():
            numbers.append(int(token.text))
    return min(max(numbers), 1000)


def session_reply(sql: str, transaction: Transaction) -> Reply | None:
    """Answer a statement about the session; None for anything else."""
    word = _WORD.match(sql)
    if word is None:
        return None if sql.strip() else Reply(_NOTHING, "session", tag="")
    first = word[0].upper()
    if first in _BEGIN:
        transaction.begin()
        return Reply(_NOTHING, "session", tag="BEGIN")
    if first in _END:
        if "TO" in sql.upper().split()[1:4]:  # ROLLBACK TO SAVEPOINT: nothing was ever changed
            transaction.recover()
            return Reply(_NOTHING, "session", tag="ROLLBACK")
        failed = transaction.state == b"E"
        transaction.end()
        tag = "ROLLBACK" if failed or first in ("ROLLBACK", "ABORT") else "COMMIT"
        return Reply(_NOTHING, "session", tag=tag)
    if first == "SET":
        _check_encoding(sql)
        _set_timeout(sql, transaction)
        _note(sql, transaction)
    elif _RESET.match(sql) is not None:
        transaction.session_timeout, transaction.local_timeout = 0.0, None
        transaction.errors = False
        transaction.settings.clear()
    if first in _QUIET:
        return Reply(_NOTHING, "session", tag=first)
    if first == "SHOW":
        return Reply(_shown(sql, transaction), "session", tag="SHOW")
    if first in ("DECLARE", "FETCH", "MOVE"):
        raise InputError(
            "there are no cursors on the server",
            code="no-cursors",
            hint="ask without a cursor: answers are aggregates, and small",
        )
    if first == "COPY":
        raise InputError("COPY is not offered", code="no-copy", hint="ask SELECT …")
    return None


def shows_budget(sql: str) -> bool:
    """Whether a statement asks what is left of the budgets."""
    return _BUDGET.match(sql) is not None


def session_schema(sql: str, transaction: Transaction) -> tuple[bool, pa.Schema | None]:
    """Return whether a statement is about the session, and the columns it would give, if any.

    Nothing happens to the session.
    """
    if shows_budget(sql):
        return True, BUDGET
    copy = dataclasses.replace(transaction, settings=dict(transaction.settings))
    reply = session_reply(sql, copy)
    if reply is None:
        return False, None
    return True, reply.table.schema if reply.table.num_columns else None


def _check_encoding(sql: str) -> None:
    words = re.findall(r"[\w-]+", sql.lower())
    if ("client_encoding" in words or "names" in words[1:2]) and not (
        {"utf8", "utf-8", "unicode", "default"} & set(words)
    ):
        raise InputError("only UTF8 is spoken here", code="unsupported-encoding", hint="use UTF8")


def _set_timeout(sql: str, transaction: Transaction) -> None:
    """Note SET [LOCAL] statement_timeout; milliseconds unless a unit is given, 0 for no limit."""
    found = _TIMEOUT.match(sql)
    if found is None:
        return
    value = found["value"].strip().strip("'").strip().lower()
    amount = _AMOUNT.fullmatch("0" if value == "default" else value)
    if amount is None:
        raise InputError(
            "statement_timeout needs a number of milliseconds, or one with a unit",
            code="malformed-setting",
            hint="write SET statement_timeout = '5s'",
        )
    seconds = float(amount[1]) * _UNITS[amount[2] or "ms"]
    if (found["scope"] or "").strip().lower() == "local":
        # Outside a transaction it would end with this very statement.
        transaction.local_timeout = seconds if transaction.state != b"I" else None
    else:
        transaction.session_timeout = seconds


def _note(sql: str, transaction: Transaction) -> None:
    """Note a setting: one of our own, or one of PostgreSQL's that is only shown again."""
    found = _SET.match(sql)
    if found is None:
        return
    name = "timezone" if found["name"].lower().startswith("time") else found["name"].lower()
    value = found["value"].strip().strip("'\"")
    if name == "discreet.errors":
        words = {"on": True, "true": True, "1": True, "off": False, "false": False, "0": False}
        if value.lower() not in (*words, "default"):
            raise InputError(
                "discreet.errors is on or off",
                code="malformed-setting",
                hint="write SET discreet.errors = on",
            )
        transaction.errors = words.get(value.lower(), False)
        return
    if name.startswith("discreet."):
        raise InputError(
            f"there is no setting {name[:63]!r}",
            code="unknown-setting",
            hint="write SET discreet.errors = on, or SHOW discreet.budget",
        )
    if len(transaction.settings) < 100 and len(value) <= 1000:
        transaction.settings[name] = value


def _shown(sql: str, transaction: Transaction) -> pa.Table:
    name = " ".join(sql.strip().rstrip(";").split()[1:]).strip('"').lower()
    name = "timezone" if name == "time zone" else name
    shown = {**SHOWN, **transaction.settings}
    shown["statement_timeout"] = f"{round(transaction.timeout * 1000)}ms"
    shown["discreet.errors"] = "on" if transaction.errors else "off"
    if not transaction.timeout:
        shown["statement_timeout"] = "0"
    if name == "all":
        return pa.table(
            {"name": list(shown), "setting": list(shown.values()), "description": [""] * len(shown)}
        )
    if name not in shown:
        raise InputError(
            f"there is no setting {name[:63]!r}", code="unknown-setting", hint="write SHOW ALL"
        )
    return pa.table({name.replace(" ", "_"): [shown[name]]})
