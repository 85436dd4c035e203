"""What a ledger does, in SQL that SQLite and PostgreSQL share.

One transaction, before anything leaves: look for the same question by the same user, see that
nobody else has been answered since the decision, see that every budget holds the cost, append the
entry to the hash chain, add to the balances. Readers see all of it or nothing, and after a crash
what was committed is there and what was not was never answered.
"""

from __future__ import annotations

import abc
import base64
import contextlib
import dataclasses
import datetime
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from discreet.data.atomic import atomic_file
from discreet.errors import InputError, RefusedError
from discreet.ledger.entry import (
    GENESIS,
    Charge,
    Draft,
    Entry,
    ExhaustedError,
    Seen,
    StaleError,
    Verification,
    chained,
)
from discreet.ledger.queue import Queue, Ticket

__all__ = ["Cursor", "Ledger", "open_ledger"]

SCHEMA = (
    """CREATE TABLE IF NOT EXISTS discreet_entries (
        number BIGINT PRIMARY KEY, time TEXT NOT NULL, dataset TEXT NOT NULL,
        asker TEXT NOT NULL, kind TEXT NOT NULL, question TEXT NOT NULL, digest TEXT NOT NULL,
        policy TEXT NOT NULL, details TEXT NOT NULL, answer {blob} NOT NULL,
        previous TEXT NOT NULL, hash TEXT NOT NULL)""",
    """CREATE UNIQUE INDEX IF NOT EXISTS discreet_answers
        ON discreet_entries (dataset, asker, digest, policy) WHERE kind <> 'refused'""",
    """CREATE INDEX IF NOT EXISTS discreet_history
        ON discreet_entries (dataset, number) WHERE kind <> 'refused'""",
    """CREATE INDEX IF NOT EXISTS discreet_kinds
        ON discreet_entries (dataset, kind, number)""",
    """CREATE TABLE IF NOT EXISTS discreet_balances (
        dataset TEXT NOT NULL, scope TEXT NOT NULL, events TEXT NOT NULL,
        PRIMARY KEY (dataset, scope))""",
    """CREATE TABLE IF NOT EXISTS discreet_secrets (
        name TEXT PRIMARY KEY, value {blob} NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS discreet_head (
        one BIGINT PRIMARY KEY CHECK (one = 1), number BIGINT NOT NULL, hash TEXT NOT NULL)""",
)
_FIELDS = (
    "number, time, dataset, asker, kind, question, digest, policy, details, answer, previous, hash"
)


class Cursor(Protocol):
    """What a transaction offers."""

    def execute(self, sql: str, values: Sequence[Any] = (), /) -> Any:
        """Run one statement with `?` placeholders."""

    def fetchone(self) -> Any:
        """Return the next row, or None."""

    def fetchall(self) -> list[Any]:
        """Return all rows."""


class Ledger(abc.ABC):
    """The one memory of what has been released and spent; safe to share between threads."""

    def __init__(self) -> None:
        self._queue = Queue(self.commit)

    @abc.abstractmethod
    def transaction(self, *, write: bool) -> contextlib.AbstractContextManager[Cursor]:
        """Return a transaction; a writing one is alone, across processes, until it is durable."""

    @abc.abstractmethod
    def reading(self) -> contextlib.AbstractContextManager[Cursor]:
        """Return a cursor for one statement, which sees one state without a transaction."""

    @abc.abstractmethod
    def close(self) -> None:
        """Let go of the database."""

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- recording -------------------------------------------------------------------------------
    def record(
        self, draft: Draft, charges: Sequence[Charge] = (), *, after: int | Seen | None = None
    ) -> tuple[Entry, bool]:
        """Record an answer and charge its budgets, in one transaction; durable on return.

        Returns the entry and whether it is new: a question that this user was already answered
        returns the recorded answer at no cost. With `after`, answers of the same kind to anybody
        recorded beyond that number raise `StaleError`. A budget that does not hold the cost raises
        `ExhaustedError`. In both cases nothing is recorded.
        """
        return self.submit(draft, charges, after=after).result()

    def submit(
        self, draft: Draft, charges: Sequence[Charge] = (), *, after: int | Seen | None = None
    ) -> Ticket:
        """Put an answer into the queue of those to be recorded; `Ticket.result` waits for it.

        Answers are recorded in the order in which they were submitted here.
        """
        seen = Seen(after) if isinstance(after, int) else after
        return self._queue.put(draft, charges, seen)

    def commit(self, tickets: Sequence[Ticket]) -> None:
        """Record several answers in one transaction: each as if alone, all durable together."""
        with self.transaction(write=True) as cursor:
            for ticket in tickets:
                try:
                    ticket.found = self._recorded(cursor, ticket)
                except RefusedError as error:  # nothing was written for this one
                    ticket.error = error

    def _recorded(self, cursor: Cursor, ticket: Ticket) -> tuple[Entry, bool]:
        draft, seen = ticket.draft, ticket.seen
        if draft.kind != "refused":
            known = self._find(cursor, draft.dataset, draft.user, draft.digest, draft.policy)
            if known is not None:
                return known, False
        if seen is not None and (
            seen.lost or self._last(cursor, draft.dataset, draft.kind) > seen.number
        ):
            raise StaleError("others were answered since", code="stale-decision")
        if ticket.charges:
            charged = self._charge(cursor, draft, ticket.charges)
            draft = dataclasses.replace(draft, details={**draft.details, "charges": charged})
        entry = self._append(cursor, draft)
        if seen is not None and draft.kind != "refused":
            seen.number = entry.number
        return entry, True

    def _charge(
        self, cursor: Cursor, draft: Draft, charges: Sequence[Charge]
    ) -> dict[str, dict[str, int]]:
        spent = self._balances(cursor, draft.dataset, [charge.scope for charge in charges])
        totals = {charge.scope: _added(spent[charge.scope], charge.events) for charge in charges}
        for charge in charges:
            if not charge.admits(totals[charge.scope]):
                raise ExhaustedError(
                    "the privacy budget does not hold what this answer would cost",
                    code="budget-exhausted",
                    hint="ask for less, repeat an earlier question at no cost, or ask the curator",
                    scope=charge.scope.split(":")[0],
                )
        for scope, total in totals.items():
            cursor.execute(
                "INSERT INTO discreet_balances (dataset, scope, events) VALUES (?, ?, ?) "
                "ON CONFLICT (dataset, scope) DO UPDATE SET events = excluded.events",
                (draft.dataset, scope, json.dumps(total, sort_keys=True)),
            )
        return {charge.scope: dict(charge.events) for charge in charges}

    def _append(self, cursor: Cursor, draft: Draft) -> Entry:
        cursor.execute("SELECT number, hash FROM discreet_head WHERE one = 1")
        head = cursor.fetchone()
        number, previous = (0, GENESIS) if head is None else (int(head[0]), str(head[1]))
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
        # Through JSON and back, so that the hash is of what will be read.
        details = json.loads(json.dumps(dict(draft.details)))
        entry = Entry(
            number=number + 1,
            time=now,
            dataset=draft.dataset,
            user=draft.user,
            kind=draft.kind,
            question=draft.question,
            digest=draft.digest,
            policy=draft.policy,
            details=details,
            answer=draft.answer,
            previous=previous,
            hash="",
        )
        entry = dataclasses.replace(entry, hash=chained(entry))
        cursor.execute(
            f"INSERT INTO discreet_entries ({_FIELDS}) VALUES ({', '.join('?' * 12)})",  # noqa: S608 - names and placeholders of this module
            (
                entry.number, entry.time, entry.dataset, entry.user, entry.kind, entry.question,
                entry.digest, entry.policy, json.dumps(details, sort_keys=True), entry.answer,
                entry.previous, entry.hash,
            ),
        )  # fmt: skip
        cursor.execute(
            "INSERT INTO discreet_head (one, number, hash) VALUES (1, ?, ?) "
            "ON CONFLICT (one) DO UPDATE SET number = excluded.number, hash = excluded.hash",
            (entry.number, entry.hash),
        )
        return entry

    def secret(self, name: str, proposed: bytes) -> bytes:
        """Return the secret kept under a name; the first proposal is kept, for ever.

        What hides records must be the same after a restart, or two answers to one question would
        differ and say more together. Secrets are not exported.
        """
        with self.transaction(write=True) as cursor:
            cursor.execute(
                "INSERT INTO discreet_secrets (name, value) VALUES (?, ?) "
                "ON CONFLICT (name) DO NOTHING",
                (name, proposed),
            )
            cursor.execute("SELECT value FROM discreet_secrets WHERE name = ?", (name,))
            return bytes(cursor.fetchone()[0])

    # -- reading ---------------------------------------------------------------------------------
    def find(self, dataset: str, user: str, digest: str, policy: str) -> Entry | None:
        """Return the answer this user was given to this question, if any."""
        with self.reading() as cursor:
            return self._find(cursor, dataset, user, digest, policy)

    def history(self, dataset: str, *, after: int = 0, kind: str | None = None) -> list[Entry]:
        """Return the answers (of a kind) given to anybody beyond a number, in order."""
        condition, values = ("kind <> 'refused'", ()) if kind is None else ("kind = ?", (kind,))
        with self.reading() as cursor:
            cursor.execute(
                f"SELECT {_FIELDS} FROM discreet_entries "  # noqa: S608 - names of this module
                f"WHERE dataset = ? AND number > ? AND {condition} ORDER BY number",
                (dataset, after, *values),
            )
            return [_entry(row) for row in cursor.fetchall()]

    def policies(self, dataset: str, kind: str) -> set[str]:
        """Return the digests of the settings under which answers of a kind were given."""
        with self.reading() as cursor:
            cursor.execute(
                "SELECT DISTINCT policy FROM discreet_entries WHERE dataset = ? AND kind = ?",
                (dataset, kind),
            )
            return {str(row[0]) for row in cursor.fetchall()}

    def last(self, dataset: str, kind: str) -> int:
        """Return the number of the last answer of a kind about a dataset; 0 if there is none."""
        with self.reading() as cursor:
            return self._last(cursor, dataset, kind)

    def entries(self) -> Iterator[Entry]:
        """Return everything recorded, in order."""
        number = 0
        while True:
            with self.reading() as cursor:
                cursor.execute(
                    f"SELECT {_FIELDS} FROM discreet_entries WHERE number > ? "  # noqa: S608 - as above
                    "ORDER BY number LIMIT 500",
                    (number,),
                )
                rows = [_entry(row) for row in cursor.fetchall()]
            if not rows:
                return
            yield from rows
            number = rows[-1].number

    def spent(self, dataset: str, scope: str) -> dict[str, int]:
        """Return the events charged to a budget so far."""
        return self.balances(dataset, [scope])[scope]

    def balances(self, dataset: str, scopes: Sequence[str]) -> dict[str, dict[str, int]]:
        """Return the events charged to several budgets so far."""
        with self.reading() as cursor:
            return self._balances(cursor, dataset, scopes)

    def _find(
        self, cursor: Cursor, dataset: str, user: str, digest: str, policy: str
    ) -> Entry | None:
        cursor.execute(
            f"SELECT {_FIELDS} FROM discreet_entries WHERE dataset = ? AND asker = ? "  # noqa: S608 - as above
            "AND digest = ? AND policy = ? AND kind <> 'refused'",
            (dataset, user, digest, policy),
        )
        row = cursor.fetchone()
        return None if row is None else _entry(row)

    def _last(self, cursor: Cursor, dataset: str, kind: str) -> int:
        cursor.execute(
            "SELECT MAX(number) FROM discreet_entries WHERE dataset = ? AND kind = ?",
            (dataset, kind),
        )
        return int(cursor.fetchone()[0] or 0)

    def _balances(
        self, cursor: Cursor, dataset: str, scopes: Sequence[str]
    ) -> dict[str, dict[str, int]]:
        cursor.execute(
            "SELECT scope, events FROM discreet_balances WHERE dataset = ? "  # noqa: S608 - placeholders
            f"AND scope IN ({', '.join('?' * len(scopes))})",
            (dataset, *scopes),
        )
        found = {str(scope): dict(json.loads(events)) for scope, events in cursor.fetchall()}
        return {scope: found.get(scope, {}) for scope in scopes}

    # -- checking --------------------------------------------------------------------------------
    def verify(self, *, head: str | None = None) -> Verification:
        """Walk the hash chain and add up the budgets; `head` is a hash noted earlier."""
        previous, number, seen = GENESIS, 0, head in (None, GENESIS)
        sums: dict[tuple[str, str], dict[str, int]] = {}
        for entry in self.entries():
            wrong = _wrong(entry, number, previous)
            if wrong:
                return Verification(False, number, previous, number + 1, wrong)
            number, previous = entry.number, entry.hash
            seen = seen or entry.hash == head
            for scope, events in entry.details.get("charges", {}).items():
                key = (entry.dataset, scope)
                sums[key] = _added(sums.get(key, {}), events)
        problem = self._ends_wrong(number, previous, sums)
        if not problem and not seen:
            problem = "the noted head is not in the chain: entries were cut off or replaced"
        return Verification(not problem, number, previous, None, problem)

    def _ends_wrong(
        self, number: int, last: str, sums: Mapping[tuple[str, str], Mapping[str, int]]
    ) -> str:
        with self.transaction(write=False) as cursor:
            cursor.execute("SELECT number, hash FROM discreet_head WHERE one = 1")
            head = cursor.fetchone() or (0, GENESIS)
            cursor.execute("SELECT dataset, scope, events FROM discreet_balances")
            balances = {(row[0], row[1]): dict(json.loads(row[2])) for row in cursor.fetchall()}
        if (int(head[0]), str(head[1])) != (number, last):
            return f"the head names entry {head[0]}, the last entry is {number}"
        if balances != {key: dict(events) for key, events in sums.items()}:
            return "a budget is not the sum of what was charged to it"
        return ""

    def export(self, path: str | Path) -> Path:
        """Write all entries as JSON lines, atomically; answers in base 64."""
        with atomic_file(path) as temporary, temporary.open("w", encoding="utf-8") as file:
            for entry in self.entries():
                line = {**entry.to_dict(), "answer": base64.b64encode(entry.answer).decode()}
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
        return Path(path)


def _added(total: Mapping[str, int], events: Mapping[str, int]) -> dict[str, int]:
    return {name: total.get(name, 0) + events.get(name, 0) for name in sorted({*total, *events})}


def _wrong(entry: Entry, number: int, previous: str) -> str:
    if entry.number != number + 1:
        return f"entry {number + 1} is missing"
    if entry.previous != previous:
        return f"entry {entry.number} does not follow the one before it"
    return "" if chained(entry) == entry.hash else f"entry {entry.number} was changed"


def _entry(row: Sequence[Any]) -> Entry:
    (
        number,
        time,
        dataset,
        user,
        kind,
        question,
        digest,
        policy,
        details,
        answer,
        previous,
        hash_,
    ) = row
    return Entry(
        number=int(number),
        time=time,
        dataset=dataset,
        user=user,
        kind=kind,
        question=question,
        digest=digest,
        policy=policy,
        details=json.loads(details),
        answer=bytes(answer),
        previous=previous,
        hash=hash_,
    )


def open_ledger(place: str | Path | Ledger = ":memory:") -> Ledger:
    """Return the ledger at a path (SQLite) or an address `postgresql://…`.

    Examples
    --------
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
    text = str(place)
    if text.startswith(("postgresql://", "postgres://")):
        from discreet.ledger.postgres import PostgresLedger

        return PostgresLedger(text)
    if "://" in text:
        raise InputError(
            f"there is no ledger at {text.split('://', maxsplit=1)[0]}://",
            code="unknown-ledger",
            hint="give a file, or postgresql://…",
        )
    from discreet.ledger.sqlite import SqliteLedger

    return SqliteLedger(text)
