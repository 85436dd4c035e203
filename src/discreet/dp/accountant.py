"""Accountants: what many answers cost together, through dp-accounting.

A ledger counts *events*. `pure ε` is any ε-differentially private answer; it is accounted for as
randomised response, which is the worst of them, so that the total also holds for discrete noise
(whose loss is not that of continuous Laplace noise). `zcdp ρ` is a ρ-zero-concentrated answer.
`delta δ` is a chance of failing altogether, as thresholds on private keys have.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping
from typing import Any, Literal

from discreet.errors import InputError

__all__ = ["Accountant", "delta_event", "gaussian_event", "pure_event"]


def pure_event(epsilon: float) -> str:
    """Return the name of a pure event."""
    return f"pure {epsilon!r}"


def gaussian_event(rho: float) -> str:
    """Return the name of a zero-concentrated event."""
    return f"zcdp {rho!r}"


def delta_event(delta: float) -> str:
    """Return the name of a chance of failure."""
    return f"delta {delta!r}"


@dataclasses.dataclass(frozen=True)
class Accountant:
    """Adds up events to one ε at a given δ.

    Parameters
    ----------
    method
        `basic` adds epsilons; `zcdp` adds ρ; `rdp` and `pld` are tighter.
    delta
        The δ at which ε is stated; 0 only with `basic`.

    Examples
    --------
    >>> Accountant("basic").epsilon({pure_event(0.01): 1000})
    10.0
    >>> round(Accountant("rdp", 1e-6).epsilon({pure_event(0.01): 1000}), 2)
    1.47
    """

    method: Literal["basic", "zcdp", "rdp", "pld"] = "basic"
    delta: float = 0.0

    def __post_init__(self) -> None:
        if self.method != "basic" and not 0 < self.delta < 1:
            raise InputError(
                f"the accountant {self.method} needs a delta between 0 and 1",
                code="missing-delta",
                hint="write delta=1e-6, or accountant='basic'",
                parameter="delta",
            )

    def epsilon(self, events: Mapping[str, int]) -> float:
        """Return the total ε of events; infinite where δ is used up."""
        pure, rho, failing = _sorted(events)
        if failing > self.delta * (1 + 1e-9):
            return math.inf
        if not pure and not rho:
            return 0.0
        if self.method == "basic":
            if rho:
                raise InputError(
                    "the basic accountant cannot add Gaussian noise",
                    code="accountant-mismatch",
                    hint="use accountant='zcdp' or 'rdp'",
                )
            return math.fsum(epsilon * count for epsilon, count in pure)
        remaining = self.delta - failing
        if remaining <= 0:
            return math.inf
        return _tight(self.method, pure, rho, remaining)


Pairs = tuple[tuple[float, int], ...]


def _sorted(events: Mapping[str, int]) -> tuple[Pairs, Pairs, float]:
    kinds: dict[str, list[tuple[float, int]]] = {"pure": [], "zcdp": [], "delta": []}
    for name, count in events.items():
        kind, value = name.split(" ")
        kinds[kind].append((float(value), count))
    failing = math.fsum(value * count for value, count in kinds["delta"])
    return tuple(sorted(kinds["pure"])), tuple(sorted(kinds["zcdp"])), failing


@functools.lru_cache(maxsize=4096)
def _tight(method: str, pure: Pairs, rho: Pairs, delta: float) -> float:
    import dp_accounting
    from dp_accounting import rdp

    # Pure answers never cost more than their sum, which is less than the rest for a few of them.
    simple = math.fsum(e * n for e, n in pure) if not rho else math.inf
    if method == "zcdp":
        total = math.fsum(r * n for r, n in rho) + math.fsum(e * e / 2 * n for e, n in pure)
        accountant: Any = rdp.RdpAccountant()
        accountant.compose(dp_accounting.ZCDpEvent(total))
        return min(float(accountant.get_epsilon(delta)), simple)
    if method == "pld":
        return min(_convolved(pure, rho, delta), simple)
    # The events state their own loss; the relation is the one randomised response is defined for.
    relation = dp_accounting.NeighboringRelation.REPLACE_ONE
    accountant = rdp.RdpAccountant(neighboring_relation=relation)
    for epsilon, count in pure:
        # Randomised response over two values is the worst ε-private answer there is.
        event = dp_accounting.RandomizedResponseDpEvent(2 / (1 + math.exp(epsilon)), 2)
        accountant.compose(event, count)
    for value, count in rho:
        accountant.compose(dp_accounting.ZCDpEvent(value), count)
    return min(float(accountant.get_epsilon(delta)), simple)


def _convolved(pure: Pairs, rho: Pairs, delta: float) -> float:
    from dp_accounting.pld import privacy_loss_distribution

    if rho:
        raise InputError(
            "the accountant pld is for Laplace noise",
            code="accountant-mismatch",
            hint="use accountant='rdp' with Gaussian noise",
        )
    total: Any = None
    for epsilon, count in pure:
        # Discrete Laplace noise at sensitivity 1 is randomised response. (The library's own
        # accountant composes randomised response once, whatever the count, as of 0.6.)
        one = privacy_loss_distribution.from_discrete_laplace_mechanism(epsilon, 1)
        many = one.self_compose(count)
        total = many if total is None else total.compose(many)
    return float(total.get_epsilon_for_delta(delta))
