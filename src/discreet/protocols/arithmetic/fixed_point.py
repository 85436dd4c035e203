"""Decimal numbers as whole ones, with the bounds that keep every product inside 2^62."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.errors import InputError

__all__ = ["EXACT", "LIMIT", "decode", "encode", "require_room"]

#: Signs are right as long as every compared number lies below this in size.
LIMIT = 1 << 62
#: Whole numbers below this are told apart by floats, as which databases add and results are shown.
EXACT = 1 << 53


def encode(values: npt.ArrayLike, *, scale: int, bound: float, name: str) -> npt.NDArray[np.int64]:
    """Return numbers times the scale, rounded; refuse what is missing or beyond the bound.

    The bound is public; which number exceeds it is not, so the text does not say.

    >>> encode([1.25, -3], scale=100, bound=10, name="cost").tolist()
    [125, -300]
    """
    numbers = np.asarray(values, dtype=np.float64)
    if not np.isfinite(numbers).all() or (np.abs(numbers) > bound).any():
        raise InputError(
            f"column {name!r} holds a number that is missing or beyond its declared bound",
            code="beyond-bound",
            column=name,
            hint="declare a larger bound in the policy of all parties, or clean the column",
        )
    return np.rint(numbers * scale).astype(np.int64)


def decode(found: npt.NDArray[np.int64], *, scale: int) -> npt.NDArray[np.float64]:
    """Return what whole numbers stand for.

    >>> decode(np.array([125]), scale=100).tolist()
    [1.25]
    """
    return found / scale


def require_room(largest: int, *, what: str, limit: int = LIMIT) -> None:
    """Refuse bounds under which a number could reach the limit, by default 2^62.

    >>> require_room(2**61, what="the p % rule")
    >>> require_room(2**63, what="the p % rule")
    Traceback (most recent call last):
    discreet.errors.InputError: under the declared bounds the p % rule ...
    """
    if largest >= limit:
        raise InputError(
            f"under the declared bounds {what} could exceed the numbers that shares, or "
            "results, can hold",
            code="bounds-too-wide",
            hint="declare a smaller bound, fewer decimals, or rules with rounder percentages",
        )
