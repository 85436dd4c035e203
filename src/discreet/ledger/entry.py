"""One line of the ledger, what it charges to which budget, and its place in the hash chain."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from discreet.errors import RefusedError
from discreet.report import Report

__all__ = [
    "GENESIS", "Charge", "Draft", "Entry", "ExhaustedError", "Seen", "StaleError", "Verification",
]  # fmt: skip

#: What the first entry follows.
GENESIS = "0" * 64


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
    #: exact, interval, noisy or refused; or the kind of a release.
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
    #: Something they counted on was not recorded: all of them must be made again.
    lost: bool = False
    #: How many of them are not known to be recorded.
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
        hashlib.sha256(entry.answer).hexdigest(),
    ]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


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
