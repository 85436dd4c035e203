"""Answers that wait to be recorded: whoever comes first records for all who wait.

A commit waits for the disk. While it does, others line up, and the next commit takes all of them;
each answer still leaves only after the transaction that holds it is durable.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Sequence

from discreet.errors import DiscreetError, EngineError
from discreet.ledger.entry import Charge, Draft, Entry, Seen

__all__ = ["Queue", "Ticket"]

#: Answers in one transaction, at most.
MOST = 256


@dataclasses.dataclass(eq=False)
class Ticket:
    """One answer in the queue, and what became of it."""

    queue: Queue = dataclasses.field(repr=False)
    draft: Draft
    charges: Sequence[Charge]
    seen: Seen | None
    found: tuple[Entry, bool] | None = None
    error: DiscreetError | None = None
    done: bool = False

    def result(self) -> tuple[Entry, bool]:
        """Return the entry and whether it is new, once it is durable; or raise why not."""
        self.settle()
        if self.error is not None:
            raise self.error
        assert self.found is not None
        return self.found

    def settle(self) -> None:
        """Wait until it is known what became of it."""
        self.queue.settle(self)


class Queue:
    """Records what waits, in order, many at a time."""

    def __init__(self, commit: Callable[[Sequence[Ticket]], None]) -> None:
        self._commit = commit
        self._waiting: list[Ticket] = []
        self._lock = threading.Lock()
        self._committing = threading.Lock()

    def put(self, draft: Draft, charges: Sequence[Charge], seen: Seen | None) -> Ticket:
        """Line up an answer."""
        ticket = Ticket(self, draft, tuple(charges), seen)
        with self._lock:
            self._waiting.append(ticket)
        return ticket

    def settle(self, ticket: Ticket) -> None:
        """Return when the ticket's transaction is durable or has failed."""
        with self._committing:
            while not ticket.done:
                with self._lock:
                    batch, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
                self._together(batch)

    def _together(self, batch: Sequence[Ticket]) -> None:
        try:
            self._commit(batch)
        except BaseException as error:
            # The transaction was rolled back, so none of its answers is recorded.
            told = error if isinstance(error, DiscreetError) else None
            for ticket in batch:
                ticket.found = None
                ticket.error = told or EngineError("the ledger failed", code="ledger-failed")
                if ticket.seen is not None:
                    ticket.seen.lost = True
            if told is None:
                raise
        finally:
            for ticket in batch:
                ticket.done = True
