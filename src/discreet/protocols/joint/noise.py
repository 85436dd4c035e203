"""Noise that owners draw in parts, and what the sum of the parts costs.

A sum of discrete Gaussians is nearly one. What it lacks is bounded by Kairouz, Liu and Steinke
(2021): with m parts of variance s² each, τ = 10 Σ exp(−2π² s² j / (j + 1)), j = 1 … m − 1.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from discreet.dp.accountant import gaussian_event, pure_event
from discreet.dp.mechanisms.gaussian import Gaussian
from discreet.dp.mechanisms.laplace import Laplace
from discreet.errors import InputError

__all__ = ["NoisePlan", "lacking", "shared_noise"]

#: Below this variance of a part the sum is not close enough to a discrete Gaussian.
_SMALLEST = 4.0


def lacking(variance: float, parts: int) -> float:
    """Return τ: how far the sum of so many parts may be from a discrete Gaussian.

    >>> lacking(4.0, 3) < 1e-15, lacking(1.0, 2) > 5e-4
    (True, True)
    """
    return 10 * sum(math.exp(-2 * math.pi**2 * variance * j / (j + 1)) for j in range(1, parts))


@dataclasses.dataclass(frozen=True)
class NoisePlan:
    """Each owner's noise for each number, and the loss of all together.

    `deviations` are those of discrete Gaussians; where `epsilon` is above zero they are the scales
    of Laplace noise instead, and every owner adds all of it.
    """

    deviations: tuple[float, ...]
    rho: float
    epsilon: float = 0.0

    @classmethod
    def of(cls, epsilon: float, sensitivities: Sequence[int], *, shares: int) -> NoisePlan:
        """Return noise of which `shares` many parts cost ρ = ε²/2 for all numbers together.

        >>> plan = NoisePlan.of(1.0, [1, 100], shares=2)
        Traceback (most recent call last):
        discreet.errors.InputError: each owner would add noise of variance 1, ...
        >>> plan = NoisePlan.of(0.25, [1, 100], shares=2)
        >>> plan.deviations, round(plan.rho, 9)
        ((4.0, 400.0), 0.03125)
        """
        if shares < 1:
            raise InputError(
                "no owner is left whose noise counts",
                code="noise-too-small",
                hint="count on more owners, or tolerate fewer that collude",
            )
        numbers = len(sensitivities)
        # Every number gets the same part of ρ, so of variance Δ² d / (2 ρ) = Δ² d / ε².
        deviations, rho = [], 0.0
        for sensitivity in sensitivities:
            variance = (sensitivity / epsilon) ** 2 * numbers / shares
            if variance < _SMALLEST:
                raise InputError(
                    f"each owner would add noise of variance {variance:.3g}, and sums of so little "
                    "are no discrete Gaussian",
                    code="noise-too-small",
                    hint="choose a smaller epsilon, or more decimals",
                )
            deviation = math.sqrt(variance)
            tau = lacking(variance, shares)
            direct = sensitivity / (math.sqrt(shares) * deviation)
            loss = min(math.sqrt(direct**2 + tau / 2), direct + tau)
            deviations.append(deviation)
            rho += loss**2 / 2
        # Rounded up by more than the sums above can be off.
        return cls(tuple(deviations), rho * (1 + 1e-12))

    @classmethod
    def in_full(cls, epsilon: float, sensitivities: Sequence[int]) -> NoisePlan:
        """Return Laplace noise that every owner adds by itself: exactly ε whoever colludes.

        Laplace noise does not divide into parts that OpenDP draws, so n owners add n times its
        variance.

        >>> NoisePlan.in_full(0.5, [1, 100]).event
        'pure 0.5...'
        """
        numbers = len(sensitivities)
        noises = [
            Laplace().noise(epsilon=epsilon / numbers, sensitivity=one) for one in sensitivities
        ]
        # What OpenDP says each costs, which is rounded up there.
        cost = math.fsum(float(one.event.split()[1]) for one in noises) * (1 + 1e-12)
        return cls(tuple(one.scale for one in noises), 0.0, cost)

    @property
    def event(self) -> str:
        """What it costs, as the accountant spells it."""
        return pure_event(self.epsilon) if self.epsilon else gaussian_event(self.rho)


def shared_noise(plan: NoisePlan, values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return whole numbers with one owner's part of the noise, drawn by OpenDP."""
    mechanism = Laplace() if plan.epsilon else Gaussian()
    drawn = [
        mechanism.noise(epsilon=1 / deviation, sensitivity=1).draw([int(value)])[0]
        for deviation, value in zip(plan.deviations, values.tolist(), strict=True)
    ]
    return np.array(drawn, dtype=np.int64)
