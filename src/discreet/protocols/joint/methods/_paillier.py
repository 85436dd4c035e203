"""Paillier's encryption: sums of encrypted numbers can be formed without the key.

Primes come from `cryptography`. Powers are taken by gmpy2 where the extra `paillier` is installed, and
by Python otherwise, five to ten times as slowly; neither hides from the same machine how long it took.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterable, Sequence

from cryptography.hazmat.primitives.asymmetric import rsa

from discreet.randomness import Randomness

try:
    from gmpy2 import powmod
except ImportError:
    powmod = pow

__all__ = ["KEY_BITS", "PaillierKey", "PublicKey", "new_key"]

#: Length of the modulus: 128 bits of security until 2030 and beyond (NIST SP 800-57).
KEY_BITS = 3072


def _below(limit: int, rng: Randomness) -> int:
    """Return a number from 1 to below a limit; 64 bits more than it has are as good as uniform."""
    return int.from_bytes(rng.bytes(limit.bit_length() // 8 + 9), "big") % (limit - 1) + 1


@dataclasses.dataclass(frozen=True)
class PublicKey:
    """Encrypts, and computes with what is encrypted; modulo the square of n."""

    n: int

    @property
    def square(self) -> int:
        """What encrypted numbers are reduced by."""
        return self.n * self.n

    def weighted(self, encrypted: Iterable[int], weights: Iterable[int]) -> tuple[int, int]:
        """Return Σ w·m of positive and of negative weights; the second is to be taken off."""
        square, positive, negative = self.square, 1, 1
        for one, weight in zip(encrypted, weights, strict=True):
            if weight > 0:
                positive = positive * powmod(one, weight, square) % square
            elif weight < 0:
                negative = negative * powmod(one, -weight, square) % square
        return int(positive), int(negative)

    def total(self, parts: Sequence[tuple[int, int]], rng: Randomness) -> int:
        """Return the sum of weighted parts encrypted anew: as uniform as any encryption of it."""
        square = self.square
        positive, negative = (math.prod(side) % square for side in zip(*parts, strict=True))
        fresh = powmod(_below(self.n, rng), self.n, square)
        return int(positive * pow(negative, -1, square) * fresh % square)


@dataclasses.dataclass(frozen=True)
class PaillierKey:
    """The two primes; whoever has them decrypts."""

    p: int = dataclasses.field(repr=False)
    q: int = dataclasses.field(repr=False)

    @property
    def public(self) -> PublicKey:
        """What the other party gets."""
        return PublicKey(self.p * self.q)

    def encrypt(self, number: int, rng: Randomness) -> int:
        """Return a number, negative ones too, encrypted.

        (1 + mn)·rⁿ with r uniform. Modulo p² the nth powers are the pth powers of 1, …, p − 1, each
        once, so that two short powers do for one long one.
        """
        found = [powmod(_below(one, rng), one, one * one) for one in (self.p, self.q)]
        n = self.p * self.q
        return int((1 + number % n * n) * self._joined(found[0], found[1]) % (n * n))

    def _joined(self, a: int, b: int) -> int:
        """Return the number that is a modulo p² and b modulo q²."""
        first, second = self.p**2, self.q**2
        return int(a + (b - a) * pow(first, -1, second) % second * first)

    def decrypt(self, encrypted: int) -> int:
        """Return the number between −n/2 and n/2.

        Modulo p² the power p − 1 leaves 1 − mqp of (1 + mn)·rⁿ; so m is found modulo p, and modulo q.
        """
        n = self.p * self.q
        parts = []
        for one, other in ((self.p, self.q), (self.q, self.p)):
            raised = int(powmod(encrypted % one**2, one - 1, one**2))
            parts.append((raised - 1) // one * pow(-other, -1, one) % one)
        found = parts[0] + (parts[1] - parts[0]) * pow(self.p, -1, self.q) % self.q * self.p
        return found - n if found > n // 2 else found


@functools.lru_cache(maxsize=1)
def new_key() -> PaillierKey:
    """Return this process's key: one key serves any number of computations, and takes long to make."""
    numbers = rsa.generate_private_key(65537, KEY_BITS).private_numbers()
    return PaillierKey(numbers.p, numbers.q)
