"""The grant of a dataset: how much privacy all its releases may spend together."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol

from discreet.dp.accountant import Accountant
from discreet.dp.libraries import opendp
from discreet.errors import InputError, RefusedError
from discreet.report import Report

__all__ = ["Grant", "charge", "granted", "require_grant"]


class Purse(Protocol):
    """What a ledger offers to those who charge it."""

    def granted(self, dataset: str) -> Mapping[str, Any] | None:
        """Return the grant of a dataset as it was recorded."""

    def spent(self, dataset: str, scope: str) -> Mapping[str, int]:
        """Return the events charged to a budget so far."""

    def charge(
        self,
        dataset: str,
        events: Mapping[str, int],
        admits: Callable[[Mapping[str, int]], bool],
        *,
        what: str,
    ) -> int:
        """Charge events durably, or raise; return the number of the entry."""


@dataclasses.dataclass(frozen=True)
class Grant(Report):
    """How much all differentially private releases of a dataset may spend together.

    Examples
    --------
    >>> import discreet as dc
    >>> with dc.open_ledger() as ledger:
    ...     ledger.set_grant("people", Grant(1.0).to_dict())
    ...     charge(ledger, "people", {dc.pure_event(0.75): 1}, what="a table")
    ...     charge(ledger, "people", {dc.pure_event(0.5): 1}, what="a synthetic file")
    Traceback (most recent call last):
    discreet.ledger.entry.ExhaustedError: the privacy budget does not hold what this would cost; ...
    """

    epsilon: float
    delta: float = 0.0
    accountant: Literal["basic", "zcdp", "rdp", "pld"] = "basic"

    def __post_init__(self) -> None:
        if not 0 < self.epsilon < float("inf"):
            raise InputError(
                "a grant is a finite epsilon above 0",
                code="parameter-range",
                hint="write epsilon=1",
                parameter="epsilon",
            )
        Accountant(self.accountant, self.delta)  # says what is wrong with the delta

    def spent(self, events: Mapping[str, int]) -> float:
        """Return the ε of events at the grant's δ."""
        return Accountant(self.accountant, self.delta).epsilon(events)

    def admits(self, events: Mapping[str, int]) -> bool:
        """Whether events stay within the grant."""
        return self.spent(events) <= self.epsilon * (1 + 1e-9)


def granted(ledger: Purse, dataset: str) -> Grant | None:
    """Return the grant that a ledger holds for a dataset."""
    stated = ledger.granted(dataset)
    if stated is None:
        return None
    try:
        return Grant(**stated)
    except TypeError:
        raise InputError(
            f"the grant of {dataset!r} in the ledger is none",
            code="bad-grant",
            hint=f"write: discreet ledger grant LEDGER {dataset} --epsilon 1",
            dataset=dataset,
        ) from None


def require_grant(ledger: Purse | None, dataset: str, events: Mapping[str, int]) -> None:
    """Refuse what `charge` would refuse, and charge nothing; None is a ledger not yet made."""
    grant = None if ledger is None else granted(ledger, dataset)
    if ledger is None or grant is None:
        raise _no_grant(dataset)
    total = dict(ledger.spent(dataset, "dataset"))
    for event, times in events.items():
        total[event] = total.get(event, 0) + times
    if not grant.admits(total):
        raise RefusedError(
            f"the grant of {dataset!r} does not hold what this would cost besides what was spent",
            code="budget-exhausted",
            hint="ask for less, or see: discreet ledger budget LEDGER",
            dataset=dataset,
        )


def charge(ledger: Purse, dataset: str, events: Mapping[str, int], *, what: str) -> int:
    """Charge events to the grant of a dataset before noise is drawn; return the entry's number.

    Whatever is charged stays charged, also if nothing comes of it. Call this once for each release,
    then draw the noise, and state `BudgetFacts(events, number)` as a fact of the release.
    """
    opendp()  # noise that cannot be drawn is not paid for
    grant = granted(ledger, dataset)
    if grant is None:
        raise _no_grant(dataset)
    return ledger.charge(dataset, events, grant.admits, what=what)


def _no_grant(dataset: str) -> InputError:
    return InputError(
        f"the ledger holds no grant for {dataset!r}: nothing says how much may be spent",
        code="no-grant",
        hint=f"write: discreet ledger grant LEDGER {dataset} --epsilon 1",
        dataset=dataset,
    )
