"""One-bit mean: a bounded number collected as a single randomised bit (as Microsoft does)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from discreet.dp.local._base import Array, Estimate, LocalMechanism, coin, require_reports
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

    @property
    def privacy(self) -> float:
        """Return epsilon."""
        return self.epsilon

    def encode(self, answers: Sequence[Any], *, rng: Randomness) -> Array:
        """Randomise numbers between 0 and the maximum."""
        values = np.asarray(answers, dtype=np.float64)
        if not ((values >= 0) & (values <= self.maximum)).all():
            raise InputError(
                "an answer lies outside the declared range",
                code="answer-outside-domain",
                hint="clamp answers to [0, maximum] or declare a larger maximum",
            )
        # Written around one half, so that both ends are rounded to the private side.
        spread = 0.5 * math.tanh(self.epsilon / 2) * (1 - 2.0**-50)
        return coin(0.5 + (2 * values / self.maximum - 1) * spread, len(values), rng)

    def estimate(self, reports: Array) -> Estimate:
        """Estimate the mean."""
        n = require_reports(reports)
        growth = math.exp(self.epsilon)
        seen = float(np.asarray(reports, dtype=bool).mean())
        mean = self.maximum * (seen * (growth + 1) - 1) / (growth - 1)
        error = self.maximum * (growth + 1) / (growth - 1) * math.sqrt(seen * (1 - seen) / n)
        low, high = (float(np.clip(mean + s * 1.959964 * error, 0, self.maximum)) for s in (-1, 1))
        return Estimate(("mean",), (mean,), (low,), (high,), (error,), n, self.epsilon)
