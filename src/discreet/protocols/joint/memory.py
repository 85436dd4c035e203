"""What a party remembers of joint runs: its ledger, and questions that are about to be run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from discreet.errors import RefusedError
from discreet.ledger.store import Ledger

__all__ = ["Memory", "Run", "told_before", "used_before"]


class Run(NamedTuple):
    """An earlier run, and the error of one that may not stand beside it."""

    question: str
    details: Mapping[str, Any]
    refusal: Callable[[], RefusedError]


class Memory:
    """Runs that a later one is judged with. Not for two threads at once: its party has a lock.

    A question takes its place when it is prepared, before anything is recorded. Of two questions
    asked at the same time that may not both be answered, each party then refuses the second before
    it is run; else either could be recorded first by another party, and none of them ever be answered.
    """

    def __init__(self, ledger: Ledger, time_limit: float) -> None:
        self._ledger, self._time_limit = ledger, time_limit
        self._coming: dict[str, tuple[float, str, Mapping[str, Any]]] = {}

    def reserve(self, session: str, question: str, details: Mapping[str, Any]) -> None:
        """Keep the place of a question until it is released, or a time limit has passed."""
        self._coming[session] = time.monotonic(), question, details

    def release(self, session: str) -> None:
        """Give up the place of a question: it is recorded, or will not be run."""
        self._coming.pop(session, None)

    def runs(self, session: str) -> Iterator[Run]:
        """Yield what a question of this session is judged with; refuse a session that was used."""
        for entry in self._ledger.entries():
            # Whatever name the relation had: the memory belongs to the records behind this ledger.
            if entry.kind != "joint":
                continue
            if entry.details["session"] == session:
                raise used_before()
            yield Run(entry.question, entry.details, told_before)
        since = time.monotonic() - self._time_limit
        self._coming = {one: kept for one, kept in self._coming.items() if kept[0] > since}
        for other, (_, question, details) in self._coming.items():
            if other != session:
                yield Run(question, details, _asked_now)


def told_before() -> RefusedError:
    """Refuse what would disclose a difference to an earlier result of the same records."""
    return RefusedError(
        "together with an earlier joint result this one could disclose a difference",
        code="joint-history",
        hint="repeat the earlier keys and condition on the same records under the same rules, with "
        "whatever measures that are withheld together; sums over all owners and tables of the same "
        "records are not both opened, nor two different clusterings",
    )


def _asked_now() -> RefusedError:
    return RefusedError(
        "together with a question that is being asked now this one could disclose a difference",
        code="joint-busy",
        hint="ask again when that one is answered",
    )


def used_before() -> RefusedError:
    """Refuse a session that a run is recorded under: ledgers could not tell the two apart."""
    return RefusedError(
        "a run of this session is recorded already",
        code="session-repeated",
        hint="begin a new session for each question",
    )
