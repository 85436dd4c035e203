"""The one source of randomness: cryptographic, keyed from the operating system.

A release that an attacker can predict protects nobody, so the default source is AES-256 in
counter mode under a key that the operating system draws and nobody sees. `Randomness.seeded`
runs the same generator under a key made from a number: for tests and documentation.
`Randomness.keyed` runs it under a secret of the curator, so that the same demand on the same data
gives the same release again. Reports say which of them was used, and a release refuses the seeded
one.

Differential-privacy noise does not come from here; it comes from OpenDP.
"""

from __future__ import annotations

import hashlib
import os
import threading

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from discreet.errors import RefusedError

__all__ = ["Randomness"]

# One request to the cipher at a time stays below this many bytes.
_CHUNK = 1 << 26


class Randomness:
    """A stream of random numbers, secure by default.

    Examples
    --------
    >>> rng = Randomness.seeded(1)
    >>> rng.integers(1, 7, 5).tolist() == Randomness.seeded(1).integers(1, 7, 5).tolist()
    True
    >>> sorted(rng.permutation(4).tolist())
    [0, 1, 2, 3]
    >>> rng
    Randomness(seeded)
    >>> Randomness.secure()
    Randomness(secure)
    """

    def __init__(self, key: bytes, *, secure: bool, keyed: bool = False) -> None:
        # The key goes into the cipher and is not kept: it must not be found in a dump or a pickle.
        self._stream = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
        self._lock = threading.Lock()
        self._process = os.getpid()
        self.is_secure = secure
        self.is_keyed = keyed

    @classmethod
    def secure(cls) -> Randomness:
        """Return a generator keyed by the operating system."""
        return cls(os.urandom(32), secure=True)

    @classmethod
    def seeded(cls, seed: int) -> Randomness:
        """Return a reproducible generator for tests and documentation; releases refuse it."""
        return cls(hashlib.sha256(b"discreet seeded %d" % seed).digest(), secure=False)

    @classmethod
    def keyed(cls, secret: bytes, purpose: bytes) -> Randomness:
        """Return the generator that a secret and a purpose determine (HKDF with SHA-256).

        The purpose names the demand and the data. Two releases that drew the same numbers for
        different data would let their noise cancel.

        >>> again = [Randomness.keyed(b"secret", b"table 1").bytes(4) for _ in range(2)]
        >>> again[0] == again[1] != Randomness.keyed(b"secret", b"table 2").bytes(4)
        True
        """
        derived = HKDF(SHA256(), 32, salt=b"discreet keyed randomness", info=purpose)
        return cls(derived.derive(secret), secure=True, keyed=True)

    def __repr__(self) -> str:
        return f"Randomness({self.kind})"

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("a random source is not copied or stored; make a new one where it is used")

    @property
    def kind(self) -> str:
        """`secure`, `keyed` or `seeded`: what a report says about the source."""
        return "keyed" if self.is_keyed else "secure" if self.is_secure else "seeded"

    def require_secure(self) -> None:
        """Refuse a seeded source, as everything that leaves the house must."""
        if not self.is_secure:
            raise RefusedError(
                "a seeded random source can be replayed, so it is refused for a release",
                code="seeded-randomness",
                hint="leave out rng, or pass rng=Randomness.secure()",
            )

    def spawn(self) -> Randomness:
        """Return an independent generator keyed from this one, for another thread."""
        return Randomness(self.bytes(32), secure=self.is_secure, keyed=self.is_keyed)

    def bytes(self, size: int) -> bytes:
        """Return random bytes."""
        if self.is_secure and self._process != os.getpid():
            self._start_anew()
        with self._lock:
            if size <= _CHUNK:
                return self._stream.update(bytes(size))
            parts = [min(_CHUNK, size - start) for start in range(0, size, _CHUNK)]
            return b"".join(self._stream.update(bytes(part)) for part in parts)

    def _start_anew(self) -> None:
        # A forked process has a copy of the stream: both would draw the same numbers.
        self._stream = Cipher(algorithms.AES(os.urandom(32)), modes.CTR(bytes(16))).encryptor()
        self._lock = threading.Lock()  # another thread may have held it while forking
        self._process = os.getpid()

    def words(self, size: int) -> npt.NDArray[np.uint64]:
        """Return uniform 64-bit words."""
        return np.frombuffer(self.bytes(8 * size), dtype="<u8").astype(np.uint64, copy=False)

    def uniform(self, size: int, low: float = 0.0, high: float = 1.0) -> npt.NDArray[np.float64]:
        """Return uniform numbers in the open interval (low, high).

        The middle of each of 2**52 equal steps, so that neither end is ever drawn and
        the inverse of a distribution function stays finite.
        """
        unit = ((self.words(size) >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
        return unit if (low, high) == (0.0, 1.0) else low + (high - low) * unit

    def normal(
        self, size: int, mean: float = 0.0, deviation: float = 1.0
    ) -> npt.NDArray[np.float64]:
        """Return normal numbers, two from each pair of uniforms (Box and Muller)."""
        pairs = (size + 1) // 2
        unit = self.uniform(2 * pairs)
        radius = np.sqrt(-2.0 * np.log(unit[:pairs]))
        angle = (2.0 * np.pi) * unit[pairs:]
        drawn = np.empty(2 * pairs)
        np.multiply(radius, np.cos(angle), out=drawn[:pairs])
        np.multiply(radius, np.sin(angle), out=drawn[pairs:])
        return mean + deviation * drawn[:size]

    def exponential(self, size: int, scale: float = 1.0) -> npt.NDArray[np.float64]:
        """Return exponential numbers."""
        return -scale * np.log(self.uniform(size))

    def integers(self, low: int, high: int, size: int) -> npt.NDArray[np.int64]:
        """Return integers from low up to but not including high, without bias."""
        span = high - low
        if span <= 0:
            raise ValueError(f"the interval [{low}, {high}) holds no integer")
        # Words at or above the largest multiple of the span would favour small remainders.
        limit = (1 << 64) - (1 << 64) % span
        drawn = self.words(size)
        if limit < 1 << 64:
            while (bad := np.flatnonzero(drawn >= np.uint64(limit))).size:
                drawn = drawn.copy()
                drawn[bad] = self.words(bad.size)
        return (drawn % np.uint64(span)).astype(np.int64) + low

    def bernoulli(
        self, probability: float | npt.NDArray[np.float64], size: int
    ) -> npt.NDArray[np.bool_]:
        """Return independent coins that fall true with the given probability."""
        return self.uniform(size) < probability

    def permutation(self, size: int) -> npt.NDArray[np.int64]:
        """Return the numbers 0 … size−1 in uniformly random order."""
        return np.argsort(self.words(size), kind="stable").astype(np.int64, copy=False)

    def sample(self, population: int, size: int) -> npt.NDArray[np.int64]:
        """Return distinct numbers below population, each subset equally likely."""
        if not 0 <= size <= population:
            raise ValueError(f"cannot draw {size} distinct numbers from {population}")
        return self.permutation(population)[:size]
