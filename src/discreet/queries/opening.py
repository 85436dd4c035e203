"""What a gateway does first: see whose history the records have."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from discreet.data.dataset import Dataset
from discreet.errors import RefusedError
from discreet.ledger.population import Population, open_population, require_unmarked
from discreet.ledger.store import TELLING, Ledger
from discreet.queries.guards._base import Guard

__all__ = ["opened", "settings_digest", "snapshot_details"]


def opened(
    dataset: Dataset,
    ledger: Ledger,
    guards: Sequence[Guard],
    snapshot: str | None,
    place: str | Path | Ledger,
) -> Population:
    """Return the records as the ledger knows them; a ledger opened for them is closed if refused."""
    try:
        if str(place) == ":memory:":  # begins and ends with the gateway: nothing to compare with
            require_unmarked(dataset)
            return Population()
        answers = {guard.answers for guard in guards}
        return open_population(dataset, ledger, answers=answers, snapshot=snapshot)
    except RefusedError:
        if place is not ledger:
            ledger.close()
        raise


def settings_digest(guard: Guard, population: Population) -> str:
    """Return the digest of a guard's settings; noisy answers about another snapshot are not repeated.

    Exact and interval answers are all about one snapshot.
    """
    if guard.answers in TELLING or population.first or population.snapshot is None:
        return guard.digest
    text = f"{guard.digest} {population.snapshot.identity}"
    return hashlib.sha256(text.encode()).hexdigest()


def snapshot_details(population: Population) -> dict[str, str]:
    """Return what an entry says of the snapshot it is about."""
    return {} if population.snapshot is None else {"snapshot": population.snapshot.identity}
