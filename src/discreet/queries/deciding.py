"""Deciding and recording: each answer counts all before it, and leaves when the ledger holds it."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Iterator, Sequence

from discreet.data.engines.interruption import check
from discreet.data.facts import unpack_facts
from discreet.data.sql import Catalog, Query, parse
from discreet.errors import EngineError, RefusedError
from discreet.ledger.entry import Draft, Entry, Seen, StaleError
from discreet.ledger.population import Population
from discreet.ledger.store import Ledger
from discreet.queries.guards._base import Guard, Keeper, Proposal
from discreet.queries.keepers import Keepers
from discreet.queries.opening import require_same_records, snapshot_details
from discreet.queries.packing import packed, unpacked
from discreet.queries.watching import Watch

__all__ = ["Deciding", "columns_of"]

#: A decision that others overtake is made again, so many times.
RETRIES = 50


class Deciding:
    """The keepers of a gateway together with what each of them knows of the ledger."""

    def __init__(
        self,
        keepers: Keepers,
        ledger: Ledger,
        catalog: Catalog,
        population: Population,
        watch: Watch,
    ) -> None:
        self._keepers, self._ledger, self._catalog = keepers, ledger, catalog
        self._population, self._watch = population, watch
        #: How much of the ledger each keeper knows.
        self._seen: weakref.WeakKeyDictionary[Keeper, Seen] = weakref.WeakKeyDictionary()
        #: Whether others, such as another process, record answers in the same ledger.
        self._shared = False
        self._counting = threading.Lock()

    def decided(
        self, keeper: Keeper, guard: Guard, query: Query, user: str, settings: str
    ) -> tuple[Entry, bool]:
        """Decide in turn, where the history matters, and wait for the ledger together.

        A decision counts those before it though their record may still be under way: it is
        recorded after them, or made again. Answers of other processes are found by the ledger.
        """
        ready = keeper.ready(query)
        names = keeper.attributes(query)
        charges, cost = keeper.charges(query, user, ready)
        if charges:
            # Before the engine runs: what it does with a statement may depend on the data.
            details = {"spent": {"epsilon": cost}}
            draft = Draft(
                self._keepers.data.name,
                user,
                "charged",
                query.question,
                query.digest,
                settings,
                details,
            )
            charged, _ = self._ledger.record(draft, charges)
            if charged.kind != "charged":
                return charged, False
        for _ in range(RETRIES):
            with self._turn(keeper, names):
                check()  # whoever waited for the others may have been ended
                seen = self._seen[keeper] if keeper.serial else None
                if seen is not None and seen.lost:
                    continue
                try:
                    self._population.require_unchanged()
                    proposal = keeper.answer(query, user, ready)
                    check()  # an engine may finish what was ended: nobody waits for it
                except RefusedError:
                    raise  # nothing of it was taken into the history
                except BaseException:
                    self._lose(seen)
                    raise
                try:
                    self._watch.require_unchanged()
                    draft = self._draft(guard, proposal, query, user, settings)
                    due = () if charges else proposal.charges
                    ticket = self._ledger.submit(draft, due, after=seen)
                except BaseException:
                    self._lose(seen)  # it may count what will not be answered
                    raise
                self._count(seen, 1)
                if seen is not None and self._shared:
                    ticket.settle()  # others answer too: what waits here would often be stale
            try:
                return ticket.result()
            except StaleError:
                self._shared = True
                self._lose(seen)
            except BaseException:
                self._lose(seen)
                raise
            finally:
                self._count(seen, -1)
        raise EngineError(
            "others were answered again and again while this was decided", code="busy"
        )

    def _draft(
        self, guard: Guard, proposal: Proposal, query: Query, user: str, settings: str
    ) -> Draft:
        details = {
            "k": getattr(guard, "k", None),
            "spent": dict(proposal.spent),
            "error_95": dict(proposal.error_95),
            "withheld": proposal.withheld,
            **snapshot_details(self._population),
        }
        return Draft(
            self._keepers.data.name,
            user,
            proposal.kind,
            query.question,
            query.digest,
            settings,
            details,
            proposal.packed or packed(proposal.rows),
        )

    @contextlib.contextmanager
    def _turn(self, keeper: Keeper, names: Sequence[str]) -> Iterator[None]:
        """Wait for the turn to decide, with a keeper that knows what the ledger holds."""
        if not keeper.serial:
            yield
        elif self._shared:  # others' answers come all the time
            with self._keepers.turns.alone():
                self.replay(keeper)
                yield
        else:
            seen = self._seen.get(keeper)
            if seen is None or seen.lost or self._is_behind(seen):
                with self._keepers.turns.alone():
                    self.replay(keeper)
            with self._keepers.turns.on(names):
                yield

    def _is_behind(self, seen: Seen) -> bool:
        name = self._keepers.data.name
        return max(self._ledger.last(name, kind) for kind in ("exact", "release")) > seen.number

    def replay(self, keeper: Keeper) -> None:
        """Bring a keeper up to date, while nobody decides."""
        if not keeper.serial:
            return
        seen = self._seen.setdefault(keeper, Seen())
        behind = self._is_behind(seen)
        self._shared = self._shared or (behind and seen.number > 0)
        released = self._ledger.last(self._keepers.data.name, "release") > seen.number
        if seen.lost or (behind and seen.pending) or (released and seen.number):
            # Decisions not recorded yet did not know of the others' answers: they are made again.
            # What a release withholds must be known before answers are counted.
            seen.lost = True
            keeper.forget()
            seen = self._seen[keeper] = Seen()
            released = True
        name, after = self._keepers.data.name, seen.number
        if released:
            for entry in self._ledger.history(name, kind="release"):
                facts = unpack_facts(entry.answer)
                require_same_records(entry, facts, self._population)
                keeper.remember(facts)
                seen.number = max(seen.number, entry.number)
        replayed = set()
        for entry in self._ledger.history(name, after=after, kind="exact"):
            # What one was told, another was told too, adds nothing.
            same = entry.digest, entry.policy, entry.answer_digest
            if same not in replayed:
                query = parse(entry.question, self._catalog)
                if (
                    self._keepers.data.askable is not None
                    and not columns_of(query) <= self._keepers.data.askable
                ):
                    raise RefusedError(
                        "another gateway answers about more columns of these records",
                        code="other-columns",
                        hint="ask the curator to open all gateways with the same columns",
                    )
                keeper.replay(entry, query, unpacked(entry.answer))
                replayed.add(same)
            seen.number = max(seen.number, entry.number)

    def _count(self, seen: Seen | None, step: int) -> None:
        """Count decisions that are made and not known to be recorded."""
        if seen is not None:
            with self._counting:
                seen.pending += step

    def _lose(self, seen: Seen | None) -> None:
        """Have a keeper start anew from the ledger: it counts what is not recorded."""
        if seen is not None:
            seen.lost = True


def columns_of(query: Query) -> frozenset[str]:
    """Return the columns that a question is about."""
    named = (query.predicate_columns, *(key.columns for key in query.keys))
    return frozenset().union(*named, *(measure.columns for measure in query.measures))
