"""Spending a budget of zero-concentrated differential privacy, by OpenDP's own figures.

Each measurement says what it costs; the sum, kept as an exact fraction, never exceeds the grant.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from discreet.dp.accountant import Accountant, gaussian_event
from discreet.dp.mechanisms.gaussian import Gaussian
from discreet.dp.selection import select_lowest
from discreet.errors import EngineError, InputError

__all__ = ["Spending", "concentrated_budget"]

#: Below it delta has fewer digits than double precision, and the search for ρ does not end.
_LEAST_DELTA = 1e-300
#: How much a share may be shrunk to fit below what is left: floating sums end a little above it.
_SHRINK = 1 - 1e-12


@functools.lru_cache(maxsize=256)
def concentrated_budget(epsilon: float, delta: float) -> float:
    """Return the largest ρ whose ε at δ is within the demand, by the product's own accountant.

    >>> 0.0149 < concentrated_budget(1.0, 1e-9) < 0.014974
    True
    """
    if not 1e-6 < epsilon < 1e6:
        raise InputError(
            f"epsilon must be between 1e-6 and 1e6, found {epsilon:g}",
            code="parameter-range",
            parameter="epsilon",
        )
    if not _LEAST_DELTA <= delta < 1:
        raise InputError(
            f"delta must be between {_LEAST_DELTA:g} and 1, found {delta:g}",
            code="parameter-range",
            hint="write delta=1e-9, or what is far below one over the number of people",
            parameter="delta",
        )
    accountant = Accountant("zcdp", delta)

    def fits(rho: float) -> bool:
        return accountant.epsilon({gaussian_event(rho): 1}) <= epsilon

    # The closed bound (Bun and Steinke 2016) lies close to what the accountant says.
    size = math.log(1 / delta)
    near = (math.sqrt(size + epsilon) - math.sqrt(size)) ** 2
    low, high = 0.999 * near, near
    while fits(high):
        low, high = high, 1.1 * high
    while low > 1e-300 and not fits(low):
        low, high = 0.5 * low, low
    while high - low > 1e-7 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    if low <= 1e-300:
        raise InputError(
            f"epsilon {epsilon:g} at delta {delta:g} leaves no budget at all",
            code="parameter-range",
            hint="write a larger epsilon or delta",
            parameter="epsilon",
        )
    return low


class Spending:
    """A grant of ρ and what was spent of it; a measurement that does not fit is not made.

    Examples
    --------
    >>> spending = Spending(0.5)
    >>> counts, deviation = spending.noisy(np.array([10, 20]), 0.125)
    >>> counts.size, deviation, float(spending.spent)
    (2, 2.0, 0.125)
    """

    def __init__(self, rho: float) -> None:
        self.grant = Fraction(rho)
        self.spent = Fraction(0)
        #: What OpenDP's maps said, in order.
        self.costs: list[float] = []

    @property
    def left(self) -> float:
        """What is not spent."""
        return float(self.grant - self.spent)

    @property
    def share(self) -> float:
        """What part of the grant is spent, from 0 to 1."""
        return float(self.spent / self.grant)

    def noisy(
        self, counts: npt.NDArray[np.int64], rho: float
    ) -> tuple[npt.NDArray[np.float64], float]:
        """Return counts with discrete Gaussian noise at a cost of ρ at most, and its deviation.

        One record more or less changes one count by one.
        """
        for _ in range(60):
            noise = Gaussian().noise(epsilon=math.sqrt(2 * rho), sensitivity=1)
            if self._fits(noise.event):
                self._spend(noise.event)
                drawn = noise.draw(counts.ravel().tolist())
                shaped = np.asarray(drawn, np.float64).reshape(counts.shape)
                return shaped, noise.deviation
            rho *= _SHRINK
        raise EngineError("the budget does not hold a measurement", code="budget-exceeded")

    def chosen(self, scores: Sequence[int], rho: float, *, sensitivity: int) -> int:
        """Return the place of a high score, chosen at a cost of ρ at most.

        One record more or less changes no score by more than the sensitivity.
        """
        for _ in range(60):
            epsilon = math.sqrt(2 * rho)
            selection = select_lowest(epsilon=epsilon, sensitivity=sensitivity, concentrated=True)
            if self._fits(selection.event):
                self._spend(selection.event)
                return selection.choose([-score for score in scores])
            rho *= _SHRINK
        raise EngineError("the budget does not hold a choice", code="budget-exceeded")

    def _fits(self, event: str) -> bool:
        return self.spent + Fraction(_cost(event)) <= self.grant

    def _spend(self, event: str) -> None:
        # Spent before it is drawn: a failure in between costs, and gives nothing.
        self.costs.append(_cost(event))
        self.spent += Fraction(_cost(event))


def _cost(event: str) -> float:
    return float(event.split(" ")[1])
