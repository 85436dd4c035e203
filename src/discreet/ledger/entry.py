"""One line of the ledger, what it charges to which budget, and its place in the hash chain."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from discreet.errors import RefusedError
from discreet.ledger.tables import Cursor
from discreet.report import Report

__all__ = [
    "FIELDS", "GENESIS", "Charge", "Draft", "Entry", "ExhaustedError", "Seen", "StaleError",
    "Verification", "added", "chained_row", "read_entry", "read_page", "read_rows",
]  # fmt: skip

#: The hash that the first entry names as its predecessor.
GENESIS = "0" * 64
#: Columns of the table of entries, in the order of the fields of `Entry`.
FIELDS = (
    "number, time, dataset, asker, kind, question, digest, policy, details, answer, answer_digest, "
    "previous, hash"
)
#: Entries that are read at a time.
_PAGE = 500


class ExhaustedError(RefusedError):
    """A budget does not hold what an answer would cost; nothing was recorded."""


class StaleError(RefusedError):
    """Others have recorded answers since the decision was made; it must be made again."""


@dataclasses.dataclass(frozen=True)
class Charge:
    """What an answer costs one budget.

    Events are spelled by the accountant (such as ``laplace 20.0``) and counted; whether a total
    is still within the budget is the accountant's to say, inside the ledger's transaction.
    """

    #: "dataset", or "user:" and a name.
    scope: str
    events: Mapping[str, int]
    admits: Callable[[Mapping[str, int]], bool] = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True)
class Draft:
    """An answer about to be recorded."""

    dataset: str
    user: str
    #: exact, interval, noisy or refused; charged, before an answer is computed; snapshot, when
    #: records are opened; or the kind of a release.
    kind: str
    question: str
    digest: str
    #: Digest of guard and settings: another policy is another question.
    policy: str
    details: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    answer: bytes = b""


@dataclasses.dataclass(eq=False)
class Seen:
    """How much of the history decisions know; shared by those that one keeper makes in turn.

    Each counts those before it, though they may not be durable yet: they are recorded in the same
    order, or not at all.
    """

    number: int = 0
    #: Whether an entry that decisions relied on failed to be recorded: all must be decided again.
    lost: bool = False
    #: Number of decisions that are not yet known to be recorded.
    pending: int = 0


@dataclasses.dataclass(frozen=True)
class Entry(Report):
    """A recorded answer."""

    number: int
    time: str
    dataset: str
    user: str
    kind: str
    question: str
    digest: str
    policy: str
    details: dict[str, Any]
    answer: bytes = dataclasses.field(repr=False)
    #: SHA-256 of the answer, which the chain is made of.
    answer_digest: str
    previous: str
    hash: str

    def expected_hash(self) -> str:
        """Return the hash the entry must have, given the one before it."""
        return chained(self)


def chained(entry: Entry) -> str:
    """Return the hash of an entry's content and of its predecessor's hash."""
    content = [
        entry.previous,
        entry.number,
        entry.time,
        entry.dataset,
        entry.user,
        entry.kind,
        entry.question,
        entry.digest,
        entry.policy,
        entry.details,
        entry.answer_digest,
    ]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def chained_row(row: Sequence[Any]) -> str:
    """Return the same hash from a row of the table, whose details are written as they are hashed.

    Any: a driver's row.
    """
    number, *texts, details, _, answer_digest, previous, _ = row
    first = json.dumps([previous, number, *texts])
    return hashlib.sha256(f'{first[:-1]}, {details}, "{answer_digest}"]'.encode()).hexdigest()


@dataclasses.dataclass(frozen=True)
class Verification(Report):
    """Whether the ledger is whole: every entry there, unchanged, and every budget its sum."""

    intact: bool
    entries: int
    #: Hash of the last entry; noted elsewhere, it also shows entries cut off the end.
    head: str
    #: Number of the first entry that is wrong.
    first_wrong: int | None = None
    reason: str = ""
    #: What the ledger cannot detect, in words.
    notes: tuple[str, ...] = ()


def added(total: Mapping[str, int], events: Mapping[str, int]) -> dict[str, int]:
    """Return the counts of events together.

    >>> added({"laplace 20.0": 1}, {"laplace 20.0": 2})
    {'laplace 20.0': 3}
    """
    return {name: total.get(name, 0) + events.get(name, 0) for name in sorted({*total, *events})}


def read_rows(cursor: Cursor, after: int = 0) -> Iterator[Sequence[Any]]:
    """Return the rows of entries beyond a number, in order. Any: a driver's rows."""
    while rows := _page(cursor, after):
        yield from rows
        after = int(rows[-1][0])


def read_page(cursor: Cursor, after: int) -> list[Entry]:
    """Return the first of the entries beyond a number."""
    return [read_entry(row) for row in _page(cursor, after)]


def _page(cursor: Cursor, after: int) -> list[Sequence[Any]]:
    cursor.execute(
        f"SELECT {FIELDS} FROM discreet_entries WHERE number > ? "  # noqa: S608 - names of this module
        f"ORDER BY number LIMIT {_PAGE}",
        (after,),
    )
    return cursor.fetchall()


def read_entry(row: Sequence[Any]) -> Entry:
    """Return a row of the table of entries. Any: a driver's row."""
    number, time, dataset, user, kind, question, digest, policy, details, answer, *chain = row
    answer_digest, before, own = map(str, chain)
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
        answer_digest=answer_digest,
        previous=before,
        hash=own,
    )
