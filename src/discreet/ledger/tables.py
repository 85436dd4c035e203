"""The tables of a ledger, and what a transaction on them offers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

__all__ = ["SCHEMA", "Cursor"]

SCHEMA = (
    """CREATE TABLE IF NOT EXISTS discreet_entries (
        number BIGINT PRIMARY KEY, time TEXT NOT NULL, dataset TEXT NOT NULL,
        asker TEXT NOT NULL, kind TEXT NOT NULL, question TEXT NOT NULL, digest TEXT NOT NULL,
        policy TEXT NOT NULL, details TEXT NOT NULL, answer {blob} NOT NULL,
        previous TEXT NOT NULL, hash TEXT NOT NULL)""",
    # Ledgers of earlier versions know no charges without an answer.
    "DROP INDEX IF EXISTS discreet_answers",
    "DROP INDEX IF EXISTS discreet_history",
    """CREATE UNIQUE INDEX IF NOT EXISTS discreet_answered
        ON discreet_entries (dataset, asker, digest, policy)
        WHERE kind NOT IN ('refused', 'charged')""",
    """CREATE INDEX IF NOT EXISTS discreet_told
        ON discreet_entries (dataset, number) WHERE kind NOT IN ('refused', 'charged')""",
    """CREATE INDEX IF NOT EXISTS discreet_charged
        ON discreet_entries (dataset, asker, digest, policy) WHERE kind = 'charged'""",
    """CREATE INDEX IF NOT EXISTS discreet_kinds
        ON discreet_entries (dataset, kind, number)""",
    """CREATE TABLE IF NOT EXISTS discreet_balances (
        dataset TEXT NOT NULL, scope TEXT NOT NULL, events TEXT NOT NULL,
        PRIMARY KEY (dataset, scope))""",
    """CREATE TABLE IF NOT EXISTS discreet_secrets (
        name TEXT PRIMARY KEY, value {blob} NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS discreet_head (
        one BIGINT PRIMARY KEY CHECK (one = 1), number BIGINT NOT NULL, hash TEXT NOT NULL)""",
    """CREATE INDEX IF NOT EXISTS discreet_snapshots
        ON discreet_entries (number) WHERE kind = 'snapshot'""",
    """CREATE TABLE IF NOT EXISTS discreet_checkpoint (
        one BIGINT PRIMARY KEY CHECK (one = 1), content TEXT NOT NULL, code TEXT NOT NULL)""",
)


class Cursor(Protocol):
    """What a transaction offers."""

    def execute(self, sql: str, values: Sequence[Any] = (), /) -> Any:
        """Run one statement with `?` placeholders."""

    def fetchone(self) -> Any:
        """Return the next row, or None."""

    def fetchall(self) -> list[Any]:
        """Return all rows."""
