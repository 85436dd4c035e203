"""What one node holds of secret numbers: two of three summands, modulo 2^64 or bit by bit.

A secret is x = x0 + x1 + x2; node i holds x_i and x_(i+1). Two nodes together know it, one alone
holds two uniform words. Sums and public multiples need no message.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.randomness import Randomness

__all__ = ["BitShares", "Shares", "Words", "split", "stack", "words"]

Words = npt.NDArray[np.uint64]


def words(values: npt.ArrayLike) -> Words:
    """Return whole numbers modulo 2^64.

    >>> words([1, -1]).tolist()
    [1, 18446744073709551615]
    """
    found = np.asarray(values)
    if found.dtype == np.uint64:
        return found
    return np.asarray(found.astype(np.int64, casting="safe" if found.size else "unsafe")).view(
        np.uint64
    )


@dataclasses.dataclass(frozen=True, eq=False)
class Shares:
    """One node's part of secret numbers: the summands i and i+1."""

    own: Words
    next: Words

    def __add__(self, other: Shares) -> Shares:
        return Shares(self.own + other.own, self.next + other.next)

    def __sub__(self, other: Shares) -> Shares:
        return Shares(self.own - other.own, self.next - other.next)

    def __neg__(self) -> Shares:
        zero = np.uint64(0)
        return Shares(zero - self.own, zero - self.next)

    def times(self, factor: int | npt.ArrayLike) -> Shares:
        """Return a public multiple."""
        public = words(factor)
        return Shares(self.own * public, self.next * public)

    def __getitem__(self, where: Any) -> Shares:
        return Shares(self.own[where], self.next[where])

    def __len__(self) -> int:
        return len(self.own)

    def reshape(self, *shape: int) -> Shares:
        """Return the same shares in another shape."""
        return Shares(self.own.reshape(shape), self.next.reshape(shape))

    def sum(self, axis: int = 0) -> Shares:
        """Return sums along an axis."""
        return Shares(
            self.own.sum(axis=axis, dtype=np.uint64), self.next.sum(axis=axis, dtype=np.uint64)
        )


@dataclasses.dataclass(frozen=True, eq=False)
class BitShares:
    """One node's part of secret bits, 64 to a word; `size` bits count."""

    own: Words
    next: Words
    size: int

    def __getitem__(self, where: Any) -> BitShares:
        return BitShares(self.own[where], self.next[where], self.size)

    def __xor__(self, other: BitShares) -> BitShares:
        return BitShares(self.own ^ other.own, self.next ^ other.next, self.size)


def stack(parts: Sequence[Shares]) -> Shares:
    """Return shares as rows of one, so that one round serves them all."""
    return Shares(np.stack([part.own for part in parts]), np.stack([part.next for part in parts]))


def split(values: npt.ArrayLike, *, rng: Randomness) -> tuple[Shares, Shares, Shares]:
    """Return the shares of the three nodes of numbers that the caller knows.

    >>> parts = split([5, -7], rng=Randomness.secure())
    >>> (parts[0].own + parts[1].own + parts[2].own).view(np.int64).tolist()
    [5, -7]
    """
    secret = words(values)
    first = rng.words(secret.size).reshape(secret.shape)
    second = rng.words(secret.size).reshape(secret.shape)
    third = secret - first - second
    return Shares(first, second), Shares(second, third), Shares(third, first)
