"""One-bit mean: a bounded number collected as a single randomised bit (as Microsoft does)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from discreet.dp.local._base import (
    Array,
    Estimate,
    LocalMechanism,
    binomial_interval,
    require_bits,
)
from discreet.dp.local._chances import UNIT, coin, loss, truth
from discreet.errors import InputError
from discreet.randomness import Randomness
from discreet.registry import parameter

__all__ = ["OneBitMean"]


@dataclasses.dataclass(frozen=True)
class OneBitMean(LocalMechanism):
    """Send one bit whose chance grows with the value; the mean is estimated from many bits.

    Examples
    --------
    >>> mechanism = OneBitMean(100.0, epsilon=1.0)
    >>> reports = mechanism.encode([40.0] * 5000, rng=Randomness.seeded(2))
    >>> 34 < mechanism.estimate(reports).estimate[0] < 46
    True
    """

    name: ClassVar[str] = "one-bit-mean"
    reference: ClassVar[str] = "Ding, Kulkarni, Yekhanin, NeurIPS 2017"
    maximum: float = parameter(help="the largest possible value; the smallest is 0", above=0)
    epsilon: float = parameter(1.0, help="privacy of one report", above=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        truth(self.epsilon)

    @property
    def _chances(self) -> tuple[int, int]:
        """The chance of a one, over 2**62, of the largest and of the smallest value."""
        most = truth(self.epsilon)
        return most, UNIT - most

    @property
    def privacy(self) -> float:
        """Return epsilon."""
        return loss(*self._chances)

    def encode(self, answers: Sequence[Any], *, rng: Randomness) -> Array:
        """Randomise numbers between 0 and the maximum."""
        values = np.asarray(answers, dtype=np.float64)
        if not ((values >= 0) & (values <= self.maximum)).all():
            raise InputError(
                "an answer lies outside the declared range",
                code="answer-outside-domain",
                hint="clamp answers to [0, maximum] or declare a larger maximum",
            )
        most, least = self._chances
        above = np.floor(values / self.maximum * (most - least)).astype(np.uint64)
        # Rounded products may pass the end by a few of the 2**62 steps.
        chance = np.minimum(above, np.uint64(most - least)) + np.uint64(least)
        return coin(chance, len(values), rng)

    def estimate(self, reports: Array) -> Estimate:
        """Estimate the mean."""
        given = require_bits(self.check(reports)).ravel()
        ones, n = np.array([given.sum()]), len(given)
        p, q = (chance / UNIT for chance in self._chances)
        scale = self.maximum / (p - q)
        seen = ones / n
        likely = np.clip(seen, q, p)
        error = scale * np.sqrt(likely * (1 - likely) / n)
        ends = [
            np.clip((end - q) * scale, 0, self.maximum)
            for end in binomial_interval(ones, np.array([n]))
        ]
        return self._estimate(["mean"], (seen - q) * scale, ends, error, n)
