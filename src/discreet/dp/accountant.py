"""Accountants: what many answers cost together, through dp-accounting.

A ledger counts *events*. `pure ε` is any ε-differentially private answer; it is accounted for as
randomised response, which is the worst of them, so that the total also holds for discrete noise
(whose loss is not that of continuous Laplace noise). `zcdp ρ` is a ρ-zero-concentrated answer.
`normal ρ:σ` is discrete Gaussian noise of that scale, which also has a privacy loss distribution.
`delta δ` is a chance of failing altogether, as thresholds on private keys have.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Literal

from discreet.dp.libraries import accounting
from discreet.errors import InputError

__all__ = [
    "Accountant",
    "delta_event",
    "gaussian_event",
    "normal_event",
    "pure_event",
    "rho_of",
    "rho_spent",
]


def pure_event(epsilon: float) -> str:
    """Return the name of a pure event."""
    return f"pure {epsilon!r}"


def gaussian_event(rho: float) -> str:
    """Return the name of a zero-concentrated event."""
    return f"zcdp {rho!r}"


def normal_event(rho: float, scale: float) -> str:
    """Return the name of discrete Gaussian noise with this scale on whole numbers."""
    return f"normal {rho!r}:{scale!r}"


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
        pure, rho, normal, failing = _sorted(events)
        if failing > self.delta * (1 + 1e-9):
            return math.inf
        if not pure and not rho and not normal:
            return 0.0
        if self.method == "basic":
            if rho or normal:
                raise InputError(
                    "the basic accountant cannot add Gaussian noise",
                    code="accountant-mismatch",
                    hint="use accountant='zcdp' or 'rdp'",
                )
            return math.fsum(epsilon * count for epsilon, count in pure)
        remaining = self.delta - failing
        if remaining <= 0:
            return math.inf
        if self.method == "pld":
            return _convolved(pure, rho, normal, remaining)
        concentrated = tuple(sorted((*rho, *((r, n) for r, _, n in normal))))
        return _tight(self.method, pure, concentrated, remaining)


def rho_of(epsilon: float, delta: float) -> float:
    """Return the largest ρ whose ε at a δ is within a given one, by this module's own accountant.

    >>> rho = rho_of(1.0, 1e-6)
    >>> Accountant("zcdp", 1e-6).epsilon({gaussian_event(rho): 1}) <= 1.0
    True
    """
    if not epsilon > 0 or not math.isfinite(epsilon):
        raise InputError(
            f"epsilon must be above 0, found {epsilon:g}",
            code="parameter-range",
            parameter="epsilon",
        )
    accountant = Accountant("zcdp", delta)
    # ε is at least ρ, whatever δ.
    low, high = 0.0, epsilon
    for _ in range(60):
        middle = (low + high) / 2
        if accountant.epsilon({gaussian_event(middle): 1}) <= epsilon:
            low = middle
        else:
            high = middle
    if low == 0.0:
        raise InputError(
            f"no noise gives epsilon = {epsilon:g} at delta = {delta:g}",
            code="parameter-range",
            hint="allow a larger epsilon or delta",
            parameter="epsilon",
        )
    return low


def rho_spent(events: Mapping[str, int]) -> float:
    """Return the ρ of events together, rounded up; infinite where one may fail altogether.

    >>> rho_spent({gaussian_event(0.25): 2, pure_event(1.0): 1})
    1.0
    """
    pure, rho, normal, failing = _sorted(events)
    if failing > 0:
        return math.inf
    total = sum((Fraction(r) * n for r, n in rho), Fraction(0))
    total += sum((Fraction(r) * n for r, _, n in normal), Fraction(0))
    total += sum((Fraction(e) ** 2 / 2 * n for e, n in pure), Fraction(0))
    found = float(total)
    return found if Fraction(found) >= total else math.nextafter(found, math.inf)


Pairs = tuple[tuple[float, int], ...]
#: ρ, scale and number of answers with discrete Gaussian noise.
Normals = tuple[tuple[float, float, int], ...]


def _sorted(events: Mapping[str, int]) -> tuple[Pairs, Pairs, Normals, float]:
    kinds: dict[str, list[tuple[float, int]]] = {"pure": [], "zcdp": [], "delta": []}
    normal: list[tuple[float, float, int]] = []
    for name, count in events.items():
        kind, value = name.split(" ")
        if kind == "normal":
            rho, _, scale = value.partition(":")
            normal.append((float(rho), float(scale), count))
        else:
            kinds[kind].append((float(value), count))
    failing = math.fsum(value * count for value, count in kinds["delta"])
    pure, rho_events = tuple(sorted(kinds["pure"])), tuple(sorted(kinds["zcdp"]))
    return pure, rho_events, tuple(sorted(normal)), failing


@functools.lru_cache(maxsize=4096)
def _tight(method: str, pure: Pairs, rho: Pairs, delta: float) -> float:
    libraries = accounting()
    rdp = libraries.rdp

    # Pure answers never cost more than their sum, which is less than the rest for a few of them.
    simple = math.fsum(e * n for e, n in pure) if not rho else math.inf
    if method == "zcdp":
        total = math.fsum(r * n for r, n in rho) + math.fsum(e * e / 2 * n for e, n in pure)
        accountant: Any = rdp.RdpAccountant()
        accountant.compose(libraries.ZCDpEvent(total))
        return min(float(accountant.get_epsilon(delta)), simple)
    # The events state their own loss; the relation is the one randomised response is defined for.
    relation = libraries.NeighboringRelation.REPLACE_ONE
    accountant = rdp.RdpAccountant(neighboring_relation=relation)
    for epsilon, count in pure:
        # Randomised response over two values is the worst ε-private answer there is.
        event = libraries.RandomizedResponseDpEvent(2 / (1 + math.exp(epsilon)), 2)
        accountant.compose(event, count)
    for value, count in rho:
        accountant.compose(libraries.ZCDpEvent(value), count)
    return min(float(accountant.get_epsilon(delta)), simple)


#: From this scale on, discrete Gaussian noise is compared with continuous noise.
FINE = 500.0
#: Beyond so many scales lies less than `TAIL` of the noise, on both sides.
REACH, TAIL = 12.0, 4e-33


@functools.lru_cache(maxsize=4096)
def _convolved(pure: Pairs, rho: Pairs, normal: Normals, delta: float) -> float:
    if rho:
        raise InputError(
            "the accountant pld needs to know the scale of Gaussian noise",
            code="accountant-mismatch",
            hint="start a new ledger, or use accountant='rdp'",
        )
    slack = 0.0
    for _, scale, count in normal:
        if scale >= FINE:
            slack += count * _lattice_slack(scale)
            delta -= count * TAIL
    delta *= math.exp(-slack)
    if delta <= 0:
        return math.inf
    total: Any = None
    for one, count in (*_pure_losses(pure), *_normal_losses(normal)):
        many = one.self_compose(count)
        total = many if total is None else total.compose(many)
    found = float(total.get_epsilon_for_delta(delta)) + 2 * slack
    # Pure answers never cost more than their sum, which is less than the rest for a few of them.
    return min(found, math.fsum(e * n for e, n in pure)) if not normal else found


def _lattice_slack(scale: float) -> float:
    """Return how far a discrete Gaussian's probabilities are from a rounded Gaussian's, in logs.

    Rounding continuous noise only loses information, so that the rounded Gaussian costs at most
    what the continuous one does. Within `REACH` scales the logarithm of the ratio of both is at
    most (REACH² + 1) / (24 scale²) and a term of fourth order, which twice the first covers.
    """
    return (REACH * REACH + 1) / (12 * scale * scale)


def _pure_losses(pure: Pairs) -> list[tuple[Any, int]]:
    # Any: distributions of dp-accounting, which has no annotations.
    pld = accounting().pld.privacy_loss_distribution

    # Discrete Laplace noise at sensitivity 1 is randomised response. (The library's own
    # accountant composes randomised response once, whatever the count, as of 0.6.)
    return [(pld.from_discrete_laplace_mechanism(epsilon, 1), count) for epsilon, count in pure]


def _normal_losses(normal: Normals) -> list[tuple[Any, int]]:
    pld = accounting().pld.privacy_loss_distribution

    found = []
    for rho, scale, count in normal:
        # ρ = Δ² / 2σ², rounded up by whoever drew the noise.
        sensitivity = scale * math.sqrt(2 * rho)
        if scale < FINE:
            whole = max(1, math.ceil(sensitivity - 1e-6))
            found.append((pld.from_discrete_gaussian_mechanism(scale, whole), count))
        else:
            found.append((pld.from_gaussian_mechanism(scale / sensitivity), count))
    return found
