"""Unary encoding: one bit per possible answer, each flipped on its own."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np

from discreet.dp.local._base import (
    Array,
    Estimate,
    LocalMechanism,
    coin,
    odds,
    place_of,
    require_reports,
)
from discreet.dp.local.k_ary_randomized_response import require_domain
from discreet.randomness import Randomness
from discreet.registry import parameter

__all__ = ["UnaryEncoding"]


@dataclasses.dataclass(frozen=True)
class UnaryEncoding(LocalMechanism):
    """Send one randomised bit per possible answer: symmetric (RAPPOR) or optimised.

    Examples
    --------
    >>> mechanism = UnaryEncoding(("a", "b", "c"), epsilon=1.0)
    >>> mechanism.encode(["a", "c"], rng=Randomness.seeded(1)).shape
    (2, 3)
    """

    name: ClassVar[str] = "unary-encoding"
    reference: ClassVar[str] = "Wang, Blocki, Li, Jha, USENIX Security 2017"
    domain: tuple[str, ...] = parameter(help="every possible answer")
    epsilon: float = parameter(1.0, help="privacy of one report", above=0)
    form: Literal["symmetric", "optimized"] = parameter("optimized", help="how bits are flipped")

    def __post_init__(self) -> None:
        super().__post_init__()
        require_domain(self.domain)

    @property
    def privacy(self) -> float:
        """Return epsilon."""
        return self.epsilon

    def _probabilities(self) -> tuple[float, float]:
        if self.form == "symmetric":
            p = odds(self.epsilon / 2)
            return p, 1 - p
        return 0.5, 1 / (math.exp(self.epsilon) + 1) * (1 + 2.0**-50)

    def encode(self, answers: Sequence[Any], *, rng: Randomness) -> Array:
        """Randomise answers; a report is a row of bits."""
        true = place_of(answers, self.domain)
        p, q = self._probabilities()
        chance = np.full((len(true), len(self.domain)), q)
        chance[np.arange(len(true)), true] = p
        return coin(chance.ravel(), chance.size, rng).reshape(chance.shape)

    def estimate(self, reports: Array) -> Estimate:
        """Estimate the share of every answer."""
        n = require_reports(reports)
        p, q = self._probabilities()
        seen = np.asarray(reports, dtype=np.float64).mean(axis=0)
        shares = (seen - q) / (p - q)
        return self._shares(self.domain, shares, seen * (1 - seen) / n / (p - q) ** 2, n)
