"""k-ary randomised response: the truth, or one of the other answers."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from discreet.dp.local._base import Array, Estimate, LocalMechanism, coin, place_of, require_reports
from discreet.errors import InputError
from discreet.randomness import Randomness
from discreet.registry import parameter

__all__ = ["KAryRandomizedResponse"]


@dataclasses.dataclass(frozen=True)
class KAryRandomizedResponse(LocalMechanism):
    """Answer one of k values truthfully with odds e^ε, else another one at random.

    Examples
    --------
    >>> mechanism = KAryRandomizedResponse(("a", "b", "c"), epsilon=2.0)
    >>> reports = mechanism.encode(["a"] * 500 + ["b"] * 300, rng=Randomness.seeded(1))
    >>> mechanism.estimate(reports).labels
    ('a', 'b', 'c')
    """

    name: ClassVar[str] = "k-ary-randomized-response"
    reference: ClassVar[str] = "Kairouz, Bonawitz, Ramage, ICML 2016"
    domain: tuple[str, ...] = parameter(help="every possible answer")
    epsilon: float = parameter(1.0, help="privacy of one report", above=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_domain(self.domain)

    @property
    def privacy(self) -> float:
        """Return epsilon."""
        return self.epsilon

    def _truth(self) -> float:
        return math.exp(self.epsilon) / (math.exp(self.epsilon) + len(self.domain) - 1)

    def encode(self, answers: Sequence[Any], *, rng: Randomness) -> Array:
        """Randomise answers; reports are places in the domain."""
        true = place_of(answers, self.domain)
        honest = coin(self._truth() * (1 - 2.0**-50), len(true), rng)
        # One of the k−1 others: those from the true place on move up by one.
        other = rng.integers(0, len(self.domain) - 1, len(true))
        other += other >= true
        return np.where(honest, true, other)

    def estimate(self, reports: Array) -> Estimate:
        """Estimate the share of every answer."""
        n = require_reports(reports)
        k, p = len(self.domain), self._truth()
        q = (1 - p) / (k - 1)
        seen = np.bincount(np.asarray(reports, dtype=np.int64), minlength=k)[:k] / n
        shares = (seen - q) / (p - q)
        return self._shares(self.domain, shares, seen * (1 - seen) / n / (p - q) ** 2, n)


def require_domain(domain: Sequence[str]) -> None:
    """Insist on at least two different answers."""
    if len(domain) < 2 or len(set(domain)) < len(domain):
        raise InputError(
            "a domain needs at least two answers, each once",
            code="domain-too-small",
            hint="list every possible answer",
            parameter="domain",
        )
