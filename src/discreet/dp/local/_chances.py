"""Probabilities as whole numbers over 2**62, and the epsilon they really give.

A coin compares 62 random bits with a whole number, so the probabilities that are drawn are known
exactly. They are rounded to the private side: never more certain of the truth than epsilon
allows, and never certain. What a mechanism states as its epsilon is computed from these numbers.
"""

from __future__ import annotations

import decimal
import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from discreet.errors import InputError
from discreet.randomness import Randomness

__all__ = ["UNIT", "coin", "loss", "share_of_unit", "truth"]

UNIT = 1 << 62
#: Sixty digits carry e**epsilon far beyond the 2**62 steps of a probability.
_DIGITS = decimal.Context(prec=60)
#: Beyond this epsilon every probability is already the last one before certainty.
_LARGEST = 64.0


def truth(epsilon: float, others: int = 1) -> int:
    """Return the chance of the truth, over 2**62, where the other answers share the rest.

    >>> round(truth(math.log(3)) / UNIT, 12)
    0.75
    >>> truth(1000.0) == UNIT - 1
    True
    """
    growth = _DIGITS.exp(decimal.Decimal(min(epsilon, _LARGEST)))
    chance = _DIGITS.divide(_DIGITS.multiply(UNIT, growth), _DIGITS.add(growth, others))
    # Half of the sixtieth digit could lift a whole number that lies just below.
    whole = int(_DIGITS.multiply(chance, decimal.Decimal(1) - decimal.Decimal(10) ** -50))
    whole = min(whole, UNIT - 1)
    if whole * (others + 1) <= UNIT:
        raise InputError(
            f"epsilon = {epsilon:g} is too small: the report would say nothing about the answer",
            code="parameter-range",
            hint="give an epsilon of 1e-9 or more",
            parameter="epsilon",
        )
    return whole


def share_of_unit(probability: float) -> int:
    """Return a probability over 2**62, rounded down.

    >>> share_of_unit(0.25) == UNIT // 4
    True
    """
    return math.floor(Fraction(probability) * UNIT)


def loss(likelier: int, unlikelier: int) -> float:
    """Return the logarithm of a ratio of probabilities, rounded up to the next number.

    >>> loss(3, 1) >= math.log(3), loss(1, 0)
    (True, inf)
    """
    if unlikelier == 0:
        return math.inf
    exact = _DIGITS.ln(_DIGITS.divide(decimal.Decimal(likelier), decimal.Decimal(unlikelier)))
    near = float(exact)
    return near if decimal.Decimal(near) >= exact else math.nextafter(near, math.inf)


def coin(chance: int | npt.NDArray[np.uint64], size: int, rng: Randomness) -> npt.NDArray[np.bool_]:
    """Toss coins that fall true with exactly this chance over 2**62."""
    return (rng.words(size) >> np.uint64(2)) < np.asarray(chance, dtype=np.uint64)
