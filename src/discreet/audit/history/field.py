"""Arithmetic modulo a large prime: exact, without fractions.

A combination of answers that is supported on a set of records over the rationals is, cleared of
denominators, also one modulo the prime; so nothing is ever missed. The converse can fail with
negligible chance, which only refuses a question too many.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.compiling import inner, kernel

__all__ = [
    "Marks",
    "Matrix",
    "Place",
    "Residues",
    "Vector",
    "add_residue",
    "inverse",
    "negative",
    "residue",
    "secret_prime",
]

Vector = npt.NDArray[np.int64]
Matrix = npt.NDArray[np.int64]
#: Which of many are meant: 64 in a word.
Marks = npt.NDArray[np.uint64]
#: Residues take 32 bits.
Residues = npt.NDArray[np.int32]
Place = int | np.signedinteger[Any]


def secret_prime() -> int:
    """Return a prime of 31 bits that nobody else knows.

    Whoever knew it could ask for sets that look dependent modulo the prime and are not.

    >>> prime = secret_prime()
    >>> prime > 2**30, any(prime % n == 0 for n in range(2, 1000))
    (True, False)
    """
    while True:
        number = int.from_bytes(os.urandom(4), "big") >> 1 | 1 << 30 | 1
        if (number % np.arange(3, 46_342, 2)).all():
            return number


@kernel
def residue(value: int, p: int) -> int:
    """Return the remainder of a number below 2⁶³ that is not negative.

    >>> residue(5 * 1_073_741_827 + 3, 1_073_741_827)
    3
    """
    value -= int(value * (1.0 / p)) * p  # the quotient is off by one at most
    if value < 0:
        value += p
    return value - p if value >= p else value


@inner
def negative(value: int, p: int) -> int:
    """Return the additive inverse of a residue."""
    return p - value if value != 0 else 0


@kernel
def inverse(value: int, p: int) -> int:
    """Return the inverse of a residue.

    >>> residue(inverse(3, 1_073_741_827) * 3, 1_073_741_827)
    1
    """
    result, base, power = 1, value, p - 2
    while power > 0:
        if power & 1:
            result = residue(result * base, p)
        base = residue(base * base, p)
        power >>= 1
    return result


@inner
def add_residue(there: Place, given: Place, factor: int, high: int, p: int) -> Place:
    """Return a residue plus a multiple of another; `high` is the factor's quotient by p, × 2³².

    Without a division: the quotient of the product is off by one at most. In 32 bits, which what
    is left of the product fits into.
    """
    f, g, q = np.uint32(factor), np.uint32(given), np.uint32(p)
    times_ = np.uint32(np.uint64(np.uint32(high)) * np.uint64(g) >> np.uint64(32))
    value = np.uint32(np.uint32(f * g) - np.uint32(times_ * q))
    value = min(value, np.uint32(value - q))  # what would be negative is huge
    value = np.uint32(value + np.uint32(there))
    return np.int32(min(value, np.uint32(value - q)))
