"""One of three nodes: products, bits and openings, each one round of messages."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from discreet.protocols.arithmetic.shares import BitShares, Shares, Words, words
from discreet.randomness import Randomness

__all__ = ["Node", "Ring"]

#: Words handled at a time: what a product touches then stays in the processor's cache.
_BLOCK = 1 << 14
_KEY = 32


class Ring(Protocol):
    """How a node reaches its two neighbours; each call is one round."""

    def back(self, label: str, body: bytes) -> bytes | bytearray:
        """Send to the node before, return as many bytes from the node after."""

    def forward(self, label: str, body: bytes) -> bytes | bytearray:
        """Send to the node after, return as many bytes from the node before."""


class Node:
    """What node `index` (0, 1 or 2) does with its shares.

    Products are masked by the difference of two streams, each known to two nodes (AES-CTR under
    keys agreed at the start), so that all masks add up to zero and no node can tell a message from
    uniform words.
    """

    def __init__(self, index: int, ring: Ring, *, rng: Randomness) -> None:
        self.index = index
        self._ring = ring
        key = rng.bytes(_KEY)
        after = bytes(ring.back("key", key))
        self._own, self._next = _stream(key), _stream(after)

    def _mask(self, size: int) -> tuple[Words, Words]:
        zeros = bytes(8 * size)
        return (
            np.frombuffer(self._own.update(zeros), dtype="<u8"),
            np.frombuffer(self._next.update(zeros), dtype="<u8"),
        )

    def constant(self, values: npt.ArrayLike) -> Shares:
        """Return shares of public numbers."""
        public = words(values)
        zero = np.zeros_like(public)
        return Shares(
            public if self.index == 0 else zero,
            public if self.index == 2 else zero,
        )

    def multiply(self, x: Shares, y: Shares, label: str = "product") -> Shares:
        """Return shares of the products; one word per product and node."""
        shape = np.broadcast_shapes(x.own.shape, y.own.shape)
        a, b, c, d = (
            np.broadcast_to(part, shape).reshape(-1) for part in (x.own, x.next, y.own, y.next)
        )
        own = np.empty(a.size, dtype=np.uint64)
        for start in range(0, a.size, _BLOCK):
            part = slice(start, start + _BLOCK)
            plus, minus = self._mask(a[part].size)
            own[part] = a[part] * (c[part] + d[part]) + b[part] * c[part] + plus - minus
        return Shares(own.reshape(shape), self._from_after(own, label).reshape(shape))

    def matrix_product(self, x: Shares, y: Shares, label: str = "product") -> Shares:
        """Return shares of the matrix product; one word per number of the result and node."""
        own = x.own @ (y.own + y.next) + x.next @ y.own
        plus, minus = (part.reshape(own.shape) for part in self._mask(own.size))
        own = own + plus - minus
        return Shares(own, self._from_after(own, label).reshape(own.shape))

    def both(self, x: BitShares, y: BitShares, label: str = "and") -> BitShares:
        """Return shares of the conjunctions."""
        shape = x.own.shape
        a, b, c, d = (part.reshape(-1) for part in (x.own, x.next, y.own, y.next))
        own = np.empty(a.size, dtype=np.uint64)
        for start in range(0, own.size, _BLOCK):
            part = slice(start, start + _BLOCK)
            plus, minus = self._mask(c[part].size)
            own[part] = (a[part] & (c[part] ^ d[part])) ^ (b[part] & c[part]) ^ plus ^ minus
        return BitShares(own.reshape(shape), self._from_after(own, label).reshape(shape), x.size)

    def either(self, x: BitShares, y: BitShares, label: str = "or") -> BitShares:
        """Return shares of the disjunctions."""
        return x ^ y ^ self.both(x, y, label)

    def inverted(self, x: BitShares) -> BitShares:
        """Return shares of the negations."""
        full = ~np.uint64(0)
        return BitShares(
            x.own ^ full if self.index == 0 else x.own,
            x.next ^ full if self.index == 2 else x.next,
            x.size,
        )

    def _from_after(self, own: Words, label: str) -> Words:
        return np.frombuffer(self._ring.back(label, _bytes(own)), dtype="<u8")

    def truncate(self, x: Shares, bits: int, label: str = "truncate") -> Shares:
        """Return x / 2^bits, off by one unit at most.

        One node cuts the sum of its two summands, the others cut the third (Mohassel and Rindal 2018).
        With a chance of |x| / 2^63 the result is wrong altogether: keep numbers small.
        """
        shape, shift = x.own.shape, np.int64(bits)
        plus, minus = (part.reshape(shape) for part in self._mask(x.own.size))

        def cut(values: Words) -> Words:
            return np.asarray(values.view(np.int64) >> shift).view(np.uint64)

        zero = np.zeros(shape, dtype=np.uint64)
        after = cut(x.own + x.next) - plus if self.index == 0 else zero
        before = np.frombuffer(self._ring.forward(label, _bytes(after)), dtype="<u8")
        if self.index == 0:
            return Shares(plus, after)
        if self.index == 1:
            return Shares(before.reshape(shape).astype(np.uint64), zero - cut(zero - x.next))
        return Shares(zero - cut(zero - x.own), minus)

    def open(self, x: Shares, label: str) -> npt.NDArray[np.int64]:
        """Return what the shares hide; all three nodes learn it."""
        missing = np.frombuffer(self._ring.forward(label, _bytes(x.own)), dtype="<u8")
        found = x.own + x.next + missing.reshape(x.own.shape)
        return np.asarray(found).view(np.int64)

    def open_bits(self, x: BitShares, label: str) -> Words:
        """Return the words of bits that the shares hide; all three nodes learn them."""
        missing = np.frombuffer(self._ring.forward(label, _bytes(x.own)), dtype="<u8")
        return np.asarray(x.own ^ x.next ^ missing.reshape(x.own.shape))


def _stream(key: bytes):  # type: ignore[no-untyped-def]  # cryptography names no public type for it
    return Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()


def _bytes(values: Words) -> bytes:
    return np.ascontiguousarray(values, dtype="<u8").tobytes()
