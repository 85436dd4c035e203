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
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from discreet.data.atomic import atomic_file
from discreet.data.snapshot import Snapshot
from discreet.errors import DiscreetError, EngineError, RefusedError
from discreet.ledger.entry import (
    FIELDS,
    GENESIS,
    Charge,
    Draft,
    Entry,
    ExhaustedError,
    Seen,
    StaleError,
    Verification,
    added,
    chained,
    read_entry,
    read_page,
)
from discreet.ledger.queue import Queue, Ticket
from discreet.ledger.tables import Cursor
from discreet.ledger.verification import (
    Checkpoint,
    hash_again,
    read_checkpoint,
    verify_entries,
    write_checkpoint,
)
from discreet.ledger.witness import Noted, Witness

__all__ = ["TELLING", "Ledger"]

#: Answers whose differences over changed records tell of single ones; noisy ones do not.
TELLING = ("exact", "interval")
#: Entries between two checkpoints, at least.
_APART = 1_000
#: Entries that hold an answer, not a refusal or a charge made before the answer is computed.
_ANSWERED = "kind NOT IN ('refused', 'charged')"
#: Entries by which the ledger keeps its own house: they tell nobody anything.
_HOUSE = ("refused", "charged", "snapshot", "roster", "grant", "published")
#: What else makes a decision on an answer or a release stale, besides others of its kind.
_JUDGED_WITH = {
    "exact": ("release",),
    "interval": ("release",),
    "release": ("exact", "interval"),
}


class Ledger(abc.ABC):
    """The one memory of what has been released and spent; safe to share between threads."""

    def __init__(self) -> None:
        self._queue = Queue(self.commit)
        self._identity = ""
        self._witness: Witness | None = None
        #: The last entry that is recorded here and not noted, and when one was noted last.
        self._newest: tuple[int, str] | None = None
        self._noted = 0.0
        #: What is verified or was recorded here without a gap, and up to where it is kept.
        self._reached: Checkpoint | None = None
        self._kept = 0
        #: Snapshots that all exact and interval answers about a dataset are known to be of.
        self._agreed: set[tuple[str, str]] = set()

    @property
    def is_lasting(self) -> bool:
        """Whether it is still there when the process has ended."""
        return True

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
        returns the recorded answer at no cost, and one of the kind "charged" an earlier charge. With `after`, answers of the same kind to anybody
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
        reached, self._reached = self._reached, None  # lost, if the transaction fails
        with self.transaction(write=True) as cursor:
            for ticket in tickets:
                try:
                    ticket.found = self._recorded(cursor, ticket)
                except RefusedError as error:  # nothing was written for this one
                    ticket.error = error
            made = [ticket.found[0] for ticket in tickets if ticket.found and ticket.found[1]]
            reached = self._followed(cursor, reached, made)
        self._reached = reached
        if made and self._witness is not None:
            self._newest = (made[-1].number, made[-1].hash)
            with contextlib.suppress(DiscreetError, OSError):  # the next commit tries again
                self._note()

    def _followed(
        self, cursor: Cursor, reached: Checkpoint | None, made: Sequence[Entry]
    ) -> Checkpoint | None:
        """Move the checkpoint on while nobody else records here, and keep it now and then."""
        for entry in made:
            if reached is None or entry.previous != reached.hash:
                return None  # the next opening verifies what others added
            reached.add(entry)
        if reached is not None and reached.number - self._kept >= _APART:
            write_checkpoint(cursor, reached, os.urandom(32))
            self._kept = reached.number
        return reached

    def _recorded(self, cursor: Cursor, ticket: Ticket) -> tuple[Entry, bool]:
        draft, seen = ticket.draft, ticket.seen
        name = draft.dataset, draft.user, draft.digest, draft.policy
        if draft.kind != "refused":
            known = self._find(cursor, *name)
            if known is None and draft.kind == "charged":
                # An earlier attempt was charged and came to nothing.
                known = self._find(cursor, *name, "kind = 'charged'")
            if known is not None:
                return known, False
        if seen is not None and (seen.lost or self._newest_judged(cursor, draft) > seen.number):
            raise StaleError("others were answered since", code="stale-decision")
        self._require_snapshot(cursor, draft)
        if ticket.charges:
            charged = self._charge(cursor, draft, ticket.charges)
            draft = dataclasses.replace(draft, details={**draft.details, "charges": charged})
        entry = self._append(cursor, draft)
        if seen is not None and draft.kind != "refused":
            seen.number = entry.number
        return entry, True

    def _newest_judged(self, cursor: Cursor, draft: Draft) -> int:
        """Return the number of the last entry that a decision must have looked at."""
        kinds = (draft.kind, *_JUDGED_WITH.get(draft.kind, ()))
        return max(self._last(cursor, draft.dataset, kind) for kind in kinds)

    def _require_snapshot(self, cursor: Cursor, draft: Draft) -> None:
        """Refuse exact and interval answers about another snapshot than all earlier ones are of."""
        mine = draft.details.get("snapshot")
        if draft.kind not in TELLING or mine is None or (draft.dataset, mine) in self._agreed:
            return
        told = self._told(cursor, draft.dataset)
        if told == mine:
            self._agreed.add((draft.dataset, mine))
        elif told is not None:
            raise RefusedError(
                "the records have changed since others were answered",
                code="changed-data",
                hint="ask the curator to open the gateway again",
            )

    def _told(self, cursor: Cursor, dataset: str) -> str | None:
        for kind in TELLING:
            cursor.execute(
                "SELECT details FROM discreet_entries WHERE dataset = ? AND kind = ? "
                "ORDER BY number DESC LIMIT 1",
                (dataset, kind),
            )
            row = cursor.fetchone()
            found = None if row is None else json.loads(row[0]).get("snapshot")
            if found is not None:
                return str(found)
        return None

    def _charge(
        self, cursor: Cursor, draft: Draft, charges: Sequence[Charge]
    ) -> dict[str, dict[str, int]]:
        spent = self._balances(cursor, draft.dataset, [charge.scope for charge in charges])
        totals = {charge.scope: added(spent[charge.scope], charge.events) for charge in charges}
        for charge in charges:
            if not charge.admits(totals[charge.scope]):
                raise ExhaustedError(
                    "the privacy budget does not hold what this would cost",
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

    def charge(
        self,
        dataset: str,
        events: Mapping[str, int],
        admits: Callable[[Mapping[str, int]], bool],
        *,
        what: str,
    ) -> int:
        """Charge the events of a release to the dataset's budget; return the entry's number.

        Durable on return. `admits` says whether a total is within the grant.
        """
        draft = Draft(dataset, "curator", "charged", what, os.urandom(32).hex(), "release")
        return self.record(draft, [Charge("dataset", events, admits)])[0].number

    def set_grant(self, dataset: str, grant: Mapping[str, Any]) -> None:
        """Record how much all releases about a dataset may spend together; the last one counts."""
        draft = Draft(dataset, "curator", "grant", "", os.urandom(32).hex(), "grant", dict(grant))
        self.record(draft)

    def granted(self, dataset: str) -> dict[str, Any] | None:
        """Return the grant of a dataset as it was recorded last. Any: names and numbers."""
        found = self.history(dataset, kind="grant")
        return found[-1].details if found else None

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
            answer_digest=hashlib.sha256(draft.answer).hexdigest(),
            previous=previous,
            hash="",
        )
        entry = dataclasses.replace(entry, hash=chained(entry))
        cursor.execute(
            f"INSERT INTO discreet_entries ({FIELDS}) VALUES ({', '.join('?' * 13)})",  # noqa: S608 - names and placeholders of this module
            (
                entry.number, entry.time, entry.dataset, entry.user, entry.kind, entry.question,
                entry.digest, entry.policy, json.dumps(details, sort_keys=True), entry.answer,
                entry.answer_digest, entry.previous, entry.hash,
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
        told = f"kind NOT IN ({', '.join(map(repr, _HOUSE))}, 'release')"
        condition, values = (told, ()) if kind is None else ("kind = ?", (kind,))
        with self.reading() as cursor:
            cursor.execute(
                f"SELECT {FIELDS} FROM discreet_entries "  # noqa: S608 - names of this module
                f"WHERE dataset = ? AND number > ? AND {condition} ORDER BY number",
                (dataset, after, *values),
            )
            return [read_entry(row) for row in cursor.fetchall()]

    def policies(self, dataset: str, kind: str) -> set[str]:
        """Return the digests of the settings under which answers of a kind were given."""
        with self.reading() as cursor:
            cursor.execute(
                "SELECT DISTINCT policy FROM discreet_entries WHERE dataset = ? AND kind = ?",
                (dataset, kind),
            )
            return {str(row[0]) for row in cursor.fetchall()}

    def snapshots(self) -> list[Snapshot]:
        """Return the states of data that were opened, in order."""
        with self.reading() as cursor:
            cursor.execute(
                "SELECT dataset, details FROM discreet_entries WHERE kind = 'snapshot' "
                "ORDER BY number"
            )
            rows = [(str(row[0]), json.loads(row[1])) for row in cursor.fetchall()]
        return [
            Snapshot(
                dataset=dataset,
                name=details["name"],
                columns=tuple(details["columns"]),
                fingerprint=details["fingerprint"],
                identity=details["identity"],
                origin=details["origin"],
                marked=details["marked"],
                values=tuple(details.get("values", ())),
            )
            for dataset, details in rows
        ]

    def told(self, dataset: str) -> str | None:
        """Return the identity of the one snapshot that exact and interval answers are about."""
        with self.reading() as cursor:
            return self._told(cursor, dataset)

    def answered(self, dataset: str) -> set[str]:
        """Return the kinds of answers given about a dataset."""
        with self.reading() as cursor:
            cursor.execute(
                "SELECT DISTINCT kind FROM discreet_entries WHERE dataset = ?", (dataset,)
            )
            kinds = {str(row[0]) for row in cursor.fetchall()}
        return kinds - set(_HOUSE)

    def last(self, dataset: str, kind: str) -> int:
        """Return the number of the last answer of a kind about a dataset; 0 if there is none."""
        with self.reading() as cursor:
            return self._last(cursor, dataset, kind)

    def entries(self) -> Iterator[Entry]:
        """Return everything recorded, in order."""
        number = 0
        while True:  # no transaction stays open between pages: the caller may record meanwhile
            with self.reading() as cursor:
                rows = read_page(cursor, number)
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
        self,
        cursor: Cursor,
        dataset: str,
        user: str,
        digest: str,
        policy: str,
        kinds: str = _ANSWERED,
    ) -> Entry | None:
        cursor.execute(
            f"SELECT {FIELDS} FROM discreet_entries WHERE dataset = ? AND asker = ? "  # noqa: S608 - as above
            f"AND digest = ? AND policy = ? AND {kinds}",
            (dataset, user, digest, policy),
        )
        row = cursor.fetchone()
        return None if row is None else read_entry(row)

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
        """Walk the whole hash chain and add up the budgets; `head` is a hash noted earlier."""
        with self.transaction(write=False) as cursor:
            found = verify_entries(cursor, Checkpoint(), head=head)
        unmarked = sorted({known.dataset for known in self.snapshots() if not known.marked})
        notes = [
            f"the source of {name!r} carries no mark: answers under another ledger go unnoticed"
            for name in unmarked
        ]
        return dataclasses.replace(found, notes=tuple(notes))

    def open(self, witness: Witness | None = None) -> None:
        """Verify what was added since the last checkpoint, and that no noted entry is missing.

        Earlier entries are hashed again, so that one that was changed is found.
        """
        with self.transaction(write=False) as cursor:
            reached = read_checkpoint(cursor)
            start = reached.number
            wrong = hash_again(cursor, start, reached.hash) if start else ""
            wrong = wrong or verify_entries(cursor, reached).reason
        if wrong:
            raise EngineError(
                f"the ledger is not whole: {wrong}",
                code="ledger-not-whole",
                hint="restore the newest copy; `discreet ledger verify` says more",
            )
        if reached.number - start >= _APART:
            with self.transaction(write=True) as cursor:
                write_checkpoint(cursor, reached, os.urandom(32))
            start = reached.number
        self._reached, self._kept = reached, start
        if witness is not None:
            self._require_noted(witness.read())
            self._witness = witness
            self._newest = (reached.number, reached.hash)
            self._note(force=True)

    def identity(self) -> str:
        """Return the name that marks and noted heads call this ledger by."""
        if not self._identity:
            self._identity = self.secret("identity", os.urandom(16)).hex()
        return self._identity

    def _require_noted(self, noted: Noted | None) -> None:
        if noted is None:
            return
        name, number, last = noted
        with self.reading() as cursor:
            cursor.execute("SELECT hash FROM discreet_entries WHERE number = ?", (number,))
            row = cursor.fetchone()
        known = GENESIS if number == 0 else None if row is None else str(row[0])
        if name != self.identity() or known != last:
            raise EngineError(
                f"the ledger does not hold entry {number} that was noted: it is an older copy, or "
                "another ledger",
                code="ledger-restored",
                hint="restore the newest copy; what it answered since would be forgotten",
            )

    def _note(self, *, force: bool = False) -> None:
        """Note the last entry elsewhere, now and then: an older copy is noticed from there on."""
        if self._witness is None or self._newest is None:
            return
        now = time.monotonic()
        if not force and now - self._noted < self._witness.pause:
            return
        number, last = self._newest
        self._witness.note((self.identity(), number, last))
        self._noted, self._newest = now, None

    def let_go(self) -> None:
        """Note the last entry before the ledger is closed."""
        if self._witness is not None:
            with contextlib.suppress(DiscreetError, OSError):  # noted again when it is opened
                self._note(force=True)
            self._witness.close()
            self._witness = None

    def export(self, path: str | Path) -> Path:
        """Write all entries as JSON lines for the owner alone, atomically; answers in base 64."""
        with (
            atomic_file(path, private=True) as temporary,
            temporary.open("w", encoding="utf-8") as file,
        ):
            for entry in self.entries():
                line = {**entry.to_dict(), "answer": base64.b64encode(entry.answer).decode()}
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
        return Path(path)
