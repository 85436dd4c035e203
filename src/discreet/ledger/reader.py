"""What a ledger can be asked: answers, snapshots and budgets as they were recorded."""

from __future__ import annotations

import abc
import contextlib
import json
from collections.abc import Iterator, Sequence
from typing import Any

from discreet.data.snapshot import Snapshot
from discreet.ledger.entry import FIELDS, Entry, read_entry, read_page
from discreet.ledger.tables import Cursor

__all__ = ["TELLING", "LedgerReader"]

#: Kinds of answers that may be about one state of the records only: the difference between answers
#: before and after a change would disclose the changed records. Noisy answers may be about several.
TELLING = ("exact", "interval")
#: Entries that hold an answer, not a refusal or a charge made before the answer is computed.
_ANSWERED = "kind NOT IN ('refused', 'charged')"
#: Kinds of entries that hold no answer: the ledger's own bookkeeping.
_HOUSE = ("refused", "charged", "snapshot", "roster", "grant", "published")


class LedgerReader(abc.ABC):
    """The questions to a ledger; none of them changes it."""

    @abc.abstractmethod
    def reading(self) -> contextlib.AbstractContextManager[Cursor]:
        """Return a cursor for one statement, which sees one state without a transaction."""

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
        """Return the identity of the snapshot that all exact and interval answers are about."""
        with self.reading() as cursor:
            return self._told(cursor, dataset)

    def told_settings(self, dataset: str) -> set[tuple[str, str]]:
        """Return which kinds of sure answers were given about a dataset, under which settings."""
        with self.reading() as cursor:
            cursor.execute(
                "SELECT DISTINCT kind, policy FROM discreet_entries "
                "WHERE dataset = ? AND kind IN (?, ?)",
                (dataset, *TELLING),
            )
            return {(str(kind), str(policy)) for kind, policy in cursor.fetchall()}

    def told_questions(self, dataset: str) -> list[tuple[str, str]]:
        """Return the questions that had a sure answer, each once with the settings it was under."""
        with self.reading() as cursor:
            cursor.execute(
                "SELECT DISTINCT policy, question FROM discreet_entries "
                "WHERE dataset = ? AND kind IN (?, ?)",
                (dataset, *TELLING),
            )
            return [(str(policy), str(question)) for policy, question in cursor.fetchall()]

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

    def granted(self, dataset: str) -> dict[str, Any] | None:
        """Return the grant of a dataset as it was recorded last. Any: names and numbers."""
        found = self.history(dataset, kind="grant")
        return found[-1].details if found else None

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
