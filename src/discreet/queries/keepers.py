"""The guards of one gateway at work, opened again when the engine has lost what it kept for them."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from discreet.errors import EngineError
from discreet.ledger.population import Population
from discreet.ledger.store import Ledger
from discreet.queries.guards._base import Guard, Keeper, Protected
from discreet.queries.opening import settings_digest
from discreet.queries.turns import Turns

if TYPE_CHECKING:
    from discreet.data.engines.base import Relation

__all__ = ["Keepers"]

Result = TypeVar("Result")


class Keepers:
    """One keeper for each guard of a gateway, by the digest of the guard's settings."""

    def __init__(
        self,
        data: Protected,
        ledger: Ledger,
        population: Population,
        reload: Callable[[], Relation],
    ) -> None:
        self.data = data
        self._ledger, self._population, self._reload = ledger, population, reload
        self._found: dict[str, Keeper] = {}
        self._names: dict[int, str] = {}
        #: How often guards were opened anew.
        self._reopened = 0
        self._lock = threading.RLock()
        self.turns = Turns()
        for guard in data.guards:
            self.of(guard)

    def __iter__(self) -> Iterator[Keeper]:
        return iter(self._found.values())

    def name(self, guard: Guard) -> str:
        """Return the digest of a guard's settings; guards live as long as the gateway."""
        if id(guard) not in self._names:
            self._names[id(guard)] = settings_digest(guard, self._population)
        return self._names[id(guard)]

    def of(self, guard: Guard) -> Keeper:
        """Return the keeper of a guard."""
        name = self.name(guard)
        found = self._found.get(name)
        if found is not None:  # without waiting for whoever decides
            return found
        with self._lock:
            if name not in self._found:
                self._found[name] = guard.open(self.data, self._ledger)
            return self._found[name]

    def reached(self, guard: Guard, work: Callable[[Keeper], Result]) -> Result:
        """Have a keeper do something; if what the engine kept for it is lost, open it anew first."""
        reopened = self._reopened
        try:
            return work(self.of(guard))
        except EngineError as error:
            if error.code != "connection-lost" or not error.facts.get("kept"):
                raise
        self._reopen(reopened)
        return work(self.of(guard))

    def _reopen(self, reopened: int) -> None:
        """Open all guards again, as at the start; what they answered comes from the ledger.

        Those in use elsewhere stay as they are: each knows how far it has read in the ledger.
        """
        with self.turns.alone(), self._lock:
            if self._reopened != reopened:
                return  # somebody else has done so
            self.data = dataclasses.replace(self.data, relation=self._reload())
            guards: Sequence[Guard] = self.data.guards
            self._found = {
                self.name(guard): guard.open(self.data, self._ledger) for guard in guards
            }
            self._reopened += 1

    def close(self) -> None:
        """Let go of what was loaded, when nobody decides any more."""
        for keeper in self._found.values():
            keeper.close()
