"""Randomised response in the γ-form: tell the truth with probability one half plus γ."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from discreet.dp.local._base import Array, Estimate, LocalMechanism, bits, require_bits
from discreet.dp.local._chances import UNIT, coin, loss, share_of_unit
from discreet.dp.local.forced_response import ForcedResponse
from discreet.errors import InputError
from discreet.randomness import Randomness
from discreet.registry import parameter

__all__ = ["RandomizedResponse"]


@dataclasses.dataclass(frozen=True)
class RandomizedResponse(LocalMechanism):
    """Answer yes or no truthfully with probability ½ + γ, else the opposite.

    Other forms: `truthful(p)` tells the truth with probability p and lets a fair coin answer
    otherwise (γ = p/2); `coin()` is that with p = ½; `forced(p)` says yes otherwise, whatever the
    truth, so that a no is certainly true.

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

    def __post_init__(self) -> None:
        super().__post_init__()
        if 2 * self._truth <= UNIT:
            raise InputError(
                f"gamma = {self.gamma:g} is too small: the report would say nothing",
                code="parameter-range",
                hint="give a gamma of 1e-9 or more",
                parameter="gamma",
            )

    @classmethod
    def truthful(cls, p: float) -> RandomizedResponse:
        """Tell the truth with probability p, else let a fair coin answer."""
        return cls(p / 2)

    @classmethod
    def coin(cls) -> RandomizedResponse:
        """Toss a coin: heads, tell the truth; tails, let a second coin answer."""
        return cls(0.25)

    @staticmethod
    def forced(p: float = 0.5) -> ForcedResponse:
        """Tell the truth with probability p, else say yes: a no is certain, epsilon infinite."""
        return ForcedResponse(p)

    @classmethod
    def of_epsilon(cls, epsilon: float) -> RandomizedResponse:
        """Return the mechanism with this privacy, or a little more private where digits end."""
        gamma = min(0.5 * math.tanh(epsilon / 2), math.nextafter(0.5, 0))
        while (found := cls(gamma)).privacy > epsilon:
            gamma = math.nextafter(gamma, 0)
        return found

    @property
    def _truth(self) -> int:
        """Chance of the true answer over 2**62, rounded towards one half."""
        return UNIT // 2 + share_of_unit(self.gamma)

    @property
    def privacy(self) -> float:
        """Return epsilon."""
        return loss(self._truth, UNIT - self._truth)

    def encode(self, answers: Sequence[Any], *, rng: Randomness) -> Array:
        """Randomise yes/no answers."""
        true = bits(answers)
        return np.where(coin(self._truth, len(true), rng), true, ~true)

    def estimate(self, reports: Array) -> Estimate:
        """Estimate the share of yes."""
        given = require_bits(self.check(reports))
        ones, n = np.array([given.sum()]), len(given)
        return self._shares(["yes"], ones, np.array([n]), (self._truth, UNIT - self._truth), n)
