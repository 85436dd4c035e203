"""Whether a ledger is whole: the hash chain, the head, and balances that are sums of charges.

Opening a ledger verifies what was added since the last checkpoint. A checkpoint holds where the
verified part ends, its balances and how many entries of each kind it has, under a key of the ledger.
Entries before it are hashed again as they lie, without being read; of a very large ledger, a stretch
that is chosen at random. `Ledger.verify` reads and hashes all.
"""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
import json
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from discreet.ledger.entry import (
    GENESIS,
    Entry,
    Verification,
    added,
    chained,
    chained_row,
    read_entry,
    read_rows,
)
from discreet.ledger.tables import Cursor

__all__ = ["Checkpoint", "hash_again", "read_checkpoint", "verify_entries", "write_checkpoint"]

_KEY = "checkpoint"
#: Entries before the checkpoint that an opening hashes again, at most: a few seconds.
_AGAIN = 250_000


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
        self._count(entry.number, entry.hash, entry.dataset, entry.kind, entry.details)

    def add_row(self, row: Sequence[Any]) -> None:
        """Take one more entry into account as it lies in its table. Any: a driver's row."""
        number, _, dataset, _, kind, _, _, _, details = row[:9]
        # Most entries charge nothing: their details need not be read.
        read = json.loads(details) if '"charges"' in details else {}
        self._count(int(number), str(row[-1]), dataset, kind, read)

    def _count(
        self, number: int, last: str, dataset: str, kind: str, details: Mapping[str, Any]
    ) -> None:
        self.number, self.hash = number, last
        self.kinds[dataset, kind] = self.kinds.get((dataset, kind), 0) + 1
        for scope, events in details.get("charges", {}).items():
            budget = dataset, scope
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
    for row in read_rows(cursor, reached.number):
        wrong = _wrong(row, reached.number, reached.hash)
        if wrong:
            return Verification(False, reached.number, reached.hash, reached.number + 1, wrong)
        reached.add_row(row)
        seen = seen or reached.hash == head
    problem = _ends_wrong(cursor, reached)
    if not problem and not seen:
        problem = "the noted head is not in the chain: entries were cut off or replaced"
    return Verification(not problem, reached.number, reached.hash, None, problem)


def hash_again(cursor: Cursor, last: int, own: str, *, most: int = _AGAIN) -> str:
    """Return what is wrong with the entries up to a verified one; at most so many are looked at."""
    start = 0 if last <= most else secrets.randbelow(last - most + 1)
    end = min(last, start + most)
    number, before = start, GENESIS if start == 0 else _hash_at(cursor, start)
    for row in read_rows(cursor, start):
        if number == end:
            break
        wrong = _wrong(row, number, before)
        if wrong:
            return wrong
        number, before = number + 1, str(row[-1])
    if number < end:
        return f"entry {number + 1} is missing"
    return f"entry {last} was changed" if end == last and before != own else ""


def _hash_at(cursor: Cursor, number: int) -> str:
    cursor.execute("SELECT hash FROM discreet_entries WHERE number = ?", (number,))
    row = cursor.fetchone()
    return "" if row is None else str(row[0])


def _wrong(row: Sequence[Any], number: int, before: str) -> str:
    """Return what is wrong with the entry that follows a number and its hash. Any: a driver's row."""
    if int(row[0]) != number + 1:
        return f"entry {number + 1} is missing"
    if str(row[11]) != before:
        return f"entry {number + 1} does not follow the one before it"
    kept = hashlib.sha256(row[9]).hexdigest() == row[10]
    whole = kept and (chained_row(row) == row[12] or _reads_whole(row))
    return "" if whole else f"entry {number + 1} was changed"


def _reads_whole(row: Sequence[Any]) -> bool:
    """Return whether only the spelling of an entry's details differs. Any: a driver's row."""
    try:
        return chained(read_entry(row)) == str(row[12])
    except ValueError:
        return False


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
