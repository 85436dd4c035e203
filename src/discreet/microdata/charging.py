"""Charging a private release to the ledger, before any of its noise is drawn."""

from __future__ import annotations

import hashlib
import json
import secrets
from typing import TYPE_CHECKING, Any

from discreet.dp.accountant import Accountant
from discreet.errors import InputError

if TYPE_CHECKING:
    from discreet.data.dataset import Dataset
    from discreet.microdata.synthesizers._base import Budget, Synthesizer

__all__ = ["charge"]

_CURATOR = "curator"


def charge(
    dataset: Dataset, method: Synthesizer, spent: Budget, *, ledger: Any, limit: float | None
) -> None:
    """Record a run and what it costs; each run counts, also one that is never written.

    Any: a path, an address or a ledger. Nothing is done without one.
    """
    from discreet.ledger.entry import Charge, Draft
    from discreet.ledger.opening import open_ledger

    if ledger is None:
        if limit is not None:
            raise InputError(
                "a budget is kept in a ledger, and none is given",
                code="missing-ledger",
                hint="write ledger='ledger.db'",
                parameter="ledger",
            )
        return
    text = json.dumps([dataset.name, method.settings(), secrets.token_hex(16)], default=str)
    draft = Draft(
        dataset.name,
        _CURATOR,
        "charged",
        f"synthetic records by {method.name}",
        hashlib.sha256(text.encode()).hexdigest(),
        "synthesize",
        {"epsilon": spent.epsilon, "delta": spent.delta, "rho": spent.rho},
    )
    accountant = Accountant("zcdp", spent.delta)
    admits = (
        (lambda _: True)
        if limit is None
        else (lambda total: accountant.epsilon(total) <= limit * (1 + 1e-9))
    )
    opened = open_ledger(ledger)
    try:
        opened.record(draft, [Charge("dataset", spent.events, admits)])
    finally:
        if opened is not ledger:
            opened.close()
