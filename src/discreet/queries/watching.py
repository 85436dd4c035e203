"""Noticing records that change under an open gateway, by the fingerprint of their snapshot."""

from __future__ import annotations

import os
import threading

from discreet.data.dataset import Dataset
from discreet.data.snapshot import Snapshot, fingerprint_rows
from discreet.errors import RefusedError
from discreet.ledger.store import Ledger

__all__ = ["Watch", "changed_records"]


class Watch:
    """The records of a gateway as they were when it was opened.

    An engine that others write to is asked for a cheap sign of its rows' state after each question
    that it computed. Only when that has changed are the rows hashed again and compared.
    """

    def __init__(self, dataset: Dataset) -> None:
        self._relation = dataset.relation
        self._columns: tuple[str, ...] = tuple(sorted(dataset.columns))
        self._engine = dataset.engine
        self._lock = threading.Lock()
        self._asked = -1
        # Before the rows are hashed: what changes meanwhile is then noticed later.
        self._state = self._engine.state(self._relation)
        self._key, self._fingerprint = b"", ""

    def compare_with(self, snapshot: Snapshot | None, ledger: Ledger) -> None:
        """Take the fingerprint of the snapshot as that of the records; hash them if there is none."""
        if self._state is None:
            return
        if snapshot is not None:
            self._key = ledger.secret("fingerprints", os.urandom(32))
            self._columns, self._fingerprint = snapshot.columns, snapshot.fingerprint
            return
        self._key = os.urandom(32)
        self._fingerprint = self._hashed()

    def _hashed(self) -> str:
        return fingerprint_rows(self._relation, self._columns, key=self._key)[1]

    def require_unchanged(self) -> None:
        """Refuse to answer from records that are not those the gateway was opened with."""
        if self._state is None:
            return
        with self._lock:
            asked = self._engine.asked  # first: who asks meanwhile looks again
            if asked == self._asked:
                return
            state = self._engine.state(self._relation)
            if state != self._state and self._hashed() != self._fingerprint:
                raise changed_records()
            self._asked, self._state = asked, state


def changed_records() -> RefusedError:
    """Return the refusal to answer from changed records."""
    return RefusedError(
        "the records have changed since the gateway was opened",
        code="changed-data",
        hint="ask the curator to open the gateway again",
    )
