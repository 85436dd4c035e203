"""Randomised response in the γ-form: tell the truth with probability one half plus γ."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from discreet.dp.local._base import Array, Estimate, LocalMechanism, bits, coin, require_reports
from discreet.randomness import Randomness
from discreet.registry import parameter

__all__ = ["RandomizedResponse"]


@dataclasses.dataclass(frozen=True)
class RandomizedResponse(LocalMechanism):
    """Answer yes or no truthfully with probability ½ + γ, else the opposite.

    The coin form of the seeds (heads: the truth; tails: a second coin answers) is γ = ¼; telling
    the truth with probability p and a fair coin otherwise is γ = p/2: see `truthful` and `coin`.

    Examples
    --------
    >>> mechanism = RandomizedResponse(0.25)
    >>> round(mechanism.privacy, 4)
    1.0986
    >>> reports = mechanism.encode(["yes"] * 600 + ["no"] * 400, rng=Randomness.seeded(1))
    >>> 0.5 < mechanism.estimate(reports).estimate[0] < 0.7
    True
    """

    name: ClassVar[str] = "randomized-response"
    reference: ClassVar[str] = "Warner, Journal of the American Statistical Association 60 (1965)"
    gamma: float = parameter(
        0.25, help="how much likelier than a coin the truth is", above=0, below=0.5
    )

    @classmethod
    def truthful(cls, p: float) -> RandomizedResponse:
        """Tell the truth with probability p, else answer by a fair coin."""
        return cls(p / 2)

    @classmethod
    def coin(cls) -> RandomizedResponse:
        """Toss a coin: heads, tell the truth; tails, let a second coin answer."""
        return cls(0.25)

    @classmethod
    def of_epsilon(cls, epsilon: float) -> RandomizedResponse:
        """Return the mechanism with this privacy."""
        return cls(0.5 * math.tanh(epsilon / 2))

    @property
    def privacy(self) -> float:
        """Return epsilon."""
        return math.log((0.5 + self.gamma) / (0.5 - self.gamma))

    def encode(self, answers: Sequence[Any], *, rng: Randomness) -> Array:
        """Randomise yes/no answers."""
        true = bits(answers)
        return np.where(coin(0.5 + self.gamma, len(true), rng), true, ~true)

    def estimate(self, reports: Array) -> Estimate:
        """Estimate the share of yes."""
        n = require_reports(reports)
        seen = float(np.asarray(reports, dtype=bool).mean())
        share = (seen - 0.5 + self.gamma) / (2 * self.gamma)
        variance = seen * (1 - seen) / n / (2 * self.gamma) ** 2
        return self._shares(["yes"], np.array([share]), np.array([variance]), n)
