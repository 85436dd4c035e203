"""Charging a release to the ledger, before its noise is drawn."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from discreet.dp.accountant import rho_spent
from discreet.errors import InputError
from discreet.ledger import Ledger, open_ledger
from discreet.ledger.entry import Charge, Draft
from discreet.randomness import Randomness
from discreet.tables.methods import TableMethod

__all__ = ["charge"]


class Charged(Protocol):
    """What is charged: a table, with the records it counts."""

    @property
    def by(self) -> tuple[str, ...]:
        """The crossed attributes."""


def charge(
    ledger: str | Path | Ledger, table: Charged, method: TableMethod, events: Mapping[str, int]
) -> None:
    """Charge what a release of a table costs to the budget of its records, or refuse it.

    Every release is new noise and is charged anew: two of the same table tell more than one.
    """
    if not events:
        raise InputError(
            f"{method.name} has no privacy loss that a ledger could add up",
            code="nothing-to-charge",
            hint="leave out the ledger, or use the method top-down",
            parameter="ledger",
        )
    grant: float | None = getattr(method, "grant", None)
    if grant is None:
        raise InputError(
            "a ledger needs to know what all releases of the records may cost together",
            code="missing-grant",
            hint="give grant=, the ρ that they may reach: top-down rho=1 grant=2",
            parameter="grant",
        )
    limit = grant
    source = getattr(table, "source", None)
    name = "table" if source is None else str(source.dataset.name)
    draft = Draft(
        dataset=name,
        user="curator",
        kind="table",
        question=f"counts by {', '.join(table.by)}, {method.name}",
        digest=Randomness.secure().bytes(16).hex(),
        policy=json.dumps(method.settings(), sort_keys=True, default=str),
    )
    held = open_ledger(ledger)
    try:
        held.record(draft, [Charge("dataset", events, lambda total: rho_spent(total) <= limit)])
    finally:
        if held is not ledger:
            held.close()
