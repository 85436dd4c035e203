"""What a gateway does first: see whose history the records have."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from discreet.data.dataset import Dataset
from discreet.data.facts import Facts, LinearFacts, unpack_facts
from discreet.errors import RefusedError
from discreet.ledger.entry import Entry
from discreet.ledger.population import Population, open_population, require_unmarked
from discreet.ledger.store import TELLING, Ledger
from discreet.queries.guards._base import Guard

__all__ = ["opened", "require_same_records", "settings_digest", "snapshot_details"]


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
        found = open_population(dataset, ledger, answers=answers, snapshot=snapshot)
        if "interval" in answers:
            _require_no_tables(dataset, ledger)
        return found
    except RefusedError:
        if place is not ledger:
            ledger.close()
        raise


def require_same_records(entry: Entry, facts: Sequence[Facts], population: Population) -> None:
    """Refuse to answer exactly beside a table of another snapshot: it would tell the difference."""
    if not any(isinstance(fact, LinearFacts) for fact in facts) or population.snapshot is None:
        return
    if entry.details.get("snapshot") != population.snapshot.identity:
        raise RefusedError(
            f"the ledger holds a table of another snapshot (entry {entry.number}): exact answers "
            "about these records would tell who came, went or changed",
            code="changed-data",
            hint="open the records that the table is of, or answer under Perturbation alone",
        )


def _require_no_tables(dataset: Dataset, ledger: Ledger) -> None:
    """Refuse intervals beside exact tables of the same records."""
    for entry in ledger.history(dataset.name, kind="release"):
        if any(isinstance(fact, LinearFacts) for fact in unpack_facts(entry.answer)):
            raise RefusedError(
                f"the ledger holds a table of these records (entry {entry.number}): intervals are "
                "not given beside exact sums",
                code="intervals-and-releases",
                hint="answer under Restriction or Perturbation",
            )


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
