"""Whether a ledger is whole: the hash chain, the head, and balances that are sums of charges.

Opening a ledger verifies what was added since the last checkpoint. A checkpoint holds where the
verified part ends, its balances and how many entries of each kind it has, under a key of the ledger.
Entries counted before are not hashed again when a ledger is opened; `Ledger.verify` hashes all.
"""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any

from discreet.ledger.entry import GENESIS, Entry, Verification, added, chained, read_entries
from discreet.ledger.tables import Cursor

__all__ = ["Checkpoint", "read_checkpoint", "verify_entries", "write_checkpoint"]

_KEY = "checkpoint"


@dataclasses.dataclass(eq=False)
class Checkpoint:
    """The state of a ledger after a number of entries."""

    number: int = 0
    hash: str = GENESIS
    #: Events by dataset and scope.
    balances: dict[tuple[str, str], dict[str, int]] = dataclasses.field(default_factory=dict)
    #: Entries by dataset and kind.
    kinds: dict[tuple[str, str], int] = dataclasses.field(default_factory=dict)

    def add(self, entry: Entry) -> None:
        """Take one more entry into account."""
        self.number, self.hash = entry.number, entry.hash
        kind = entry.dataset, entry.kind
        self.kinds[kind] = self.kinds.get(kind, 0) + 1
        for scope, events in entry.details.get("charges", {}).items():
            budget = entry.dataset, scope
            self.balances[budget] = added(self.balances.get(budget, {}), events)

    def to_json(self) -> str:
        """Return the content as text, always the same for the same content."""
        return json.dumps(
            [
                self.number,
                self.hash,
                sorted([*budget, events] for budget, events in self.balances.items()),
                sorted([*kind, count] for kind, count in self.kinds.items()),
            ],
            sort_keys=True,
        )

    @classmethod
    def from_json(cls, text: str) -> Checkpoint:
        """Return what `to_json` wrote."""
        number, last, balances, kinds = json.loads(text)
        return cls(
            number,
            last,
            {(dataset, scope): events for dataset, scope, events in balances},
            {(dataset, kind): count for dataset, kind, count in kinds},
        )


def read_checkpoint(cursor: Cursor) -> Checkpoint:
    """Return the last checkpoint; that of an empty ledger if there is none with a right code."""
    cursor.execute("SELECT content, code FROM discreet_checkpoint WHERE one = 1")
    row = cursor.fetchone()
    key = _key(cursor)
    if row is None or key is None or not hmac.compare_digest(_code(key, str(row[0])), str(row[1])):
        return Checkpoint()
    return Checkpoint.from_json(str(row[0]))


def write_checkpoint(cursor: Cursor, reached: Checkpoint, proposed: bytes) -> None:
    """Keep a checkpoint; its key is drawn once, and is the proposed one if there is none."""
    cursor.execute(
        "INSERT INTO discreet_secrets (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING",
        (_KEY, proposed),
    )
    key = _key(cursor)
    assert key is not None
    content = reached.to_json()
    cursor.execute(
        "INSERT INTO discreet_checkpoint (one, content, code) VALUES (1, ?, ?) "
        "ON CONFLICT (one) DO UPDATE SET content = excluded.content, code = excluded.code",
        (content, _code(key, content)),
    )


def verify_entries(cursor: Cursor, reached: Checkpoint, *, head: str | None = None) -> Verification:
    """Walk the chain from a checkpoint on, in one transaction; the checkpoint moves to the end.

    `head` is a hash noted earlier that must be met on the way.
    """
    seen = head in (None, GENESIS, reached.hash)
    for entry in read_entries(cursor, reached.number):
        wrong = _wrong(entry, reached)
        if wrong:
            return Verification(False, reached.number, reached.hash, reached.number + 1, wrong)
        reached.add(entry)
        seen = seen or entry.hash == head
    problem = _ends_wrong(cursor, reached)
    if not problem and not seen:
        problem = "the noted head is not in the chain: entries were cut off or replaced"
    return Verification(not problem, reached.number, reached.hash, None, problem)


def _wrong(entry: Entry, reached: Checkpoint) -> str:
    if entry.number != reached.number + 1:
        return f"entry {reached.number + 1} is missing"
    if entry.previous != reached.hash:
        return f"entry {entry.number} does not follow the one before it"
    kept = hashlib.sha256(entry.answer).hexdigest() == entry.answer_digest
    return "" if kept and chained(entry) == entry.hash else f"entry {entry.number} was changed"


def _ends_wrong(cursor: Cursor, reached: Checkpoint) -> str:
    cursor.execute("SELECT number, hash FROM discreet_head WHERE one = 1")
    head = cursor.fetchone() or (0, GENESIS)
    if (int(head[0]), str(head[1])) != (reached.number, reached.hash):
        return f"the head names entry {head[0]}, the last entry is {reached.number}"
    cursor.execute("SELECT dataset, kind, COUNT(*) FROM discreet_entries GROUP BY dataset, kind")
    kinds = {(str(row[0]), str(row[1])): int(row[2]) for row in cursor.fetchall()}
    if kinds != reached.kinds:
        return "entries that were verified earlier are missing or of another kind"
    cursor.execute("SELECT dataset, scope, events FROM discreet_balances")
    balances: Mapping[Any, Any] = {
        (str(row[0]), str(row[1])): dict(json.loads(row[2])) for row in cursor.fetchall()
    }
    if balances != reached.balances:
        return "a budget is not the sum of what was charged to it"
    return ""


def _key(cursor: Cursor) -> bytes | None:
    cursor.execute("SELECT value FROM discreet_secrets WHERE name = ?", (_KEY,))
    row = cursor.fetchone()
    return None if row is None else bytes(row[0])


def _code(key: bytes, content: str) -> str:
    return hmac.new(key, content.encode(), hashlib.sha256).hexdigest()
