"""k-ary randomised response: the truth, or one of the other answers."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from discreet.dp.local._base import Array, Estimate, LocalMechanism, place_of, require_places
from discreet.dp.local._chances import UNIT, coin, loss, truth
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

        truth(self.epsilon, len(self.domain) - 1)

    @property
    def _truth(self) -> int:
        return truth(self.epsilon, len(self.domain) - 1)

    @property
    def privacy(self) -> float:
        """Return epsilon."""
        return loss(self._truth * (len(self.domain) - 1), UNIT - self._truth)

    def encode(self, answers: Sequence[Any], *, rng: Randomness) -> Array:
        """Randomise answers; reports are places in the domain."""
        true = place_of(answers, self.domain)
        honest = coin(self._truth, len(true), rng)
        # One of the k−1 others: those from the true place on move up by one.
        other = rng.integers(0, len(self.domain) - 1, len(true))
        other += other >= true
        return np.where(honest, true, other)

    def estimate(self, reports: Array) -> Estimate:
        """Estimate the share of every answer."""
        k = len(self.domain)
        given = require_places(self.check(reports), k).ravel()
        seen, n = np.bincount(given, minlength=k), len(given)
        other = Fraction(UNIT - self._truth, k - 1)
        return self._shares(self.domain, seen, np.array([n]), (self._truth, other), n)


def require_domain(domain: Sequence[str]) -> None:
    """Insist on at least two different answers."""
    if len(domain) < 2 or len(set(domain)) < len(domain):
        raise InputError(
            "a domain needs at least two answers, each once",
            code="domain-too-small",
            hint="list every possible answer",
            parameter="domain",
        )
