"""Where keys are: salted digests that give fingerprint, range of the directory and three slots."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.protocols.retrieval.schemes._base import Shape

__all__ = ["Digests", "salt_of"]

_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def salt_of(table: str, part: str, version: int, attempt: int) -> bytes:
    """Return the salt of an attempt; everybody who builds the same table draws the same."""
    return hashlib.sha256(json.dumps([table, part, version, attempt]).encode()).digest()[:16]


@dataclasses.dataclass(frozen=True, eq=False)
class Digests:
    """256-bit salted digests of keys, as four words each."""

    words: npt.NDArray[np.uint64]

    @classmethod
    def of(cls, keys: Iterable[Any], salt: bytes) -> Digests:
        """Digest keys. Any: what JSON holds.

        >>> Digests.of([17, "17"], bytes(16)).fingerprints.size
        2
        """
        made = b"".join(
            hashlib.blake2b(json.dumps(key).encode(), key=salt, digest_size=32).digest()
            for key in keys
        )
        return cls(np.frombuffer(made, "<u8").reshape(-1, 4))

    @property
    def fingerprints(self) -> npt.NDArray[np.uint64]:
        """64 bits that stand for a key."""
        return self.words[:, 0]

    def ranges(self, many: int) -> npt.NDArray[np.int64]:
        """Return in which of many equal ranges each digest lies."""
        return _scaled(self.words[:, 1] >> _HALF, many)

    def slots(self, shape: Shape) -> npt.NDArray[np.int64]:
        """Return three slots for each key, one in each segment, all in one row of the block."""
        row = _scaled(self.words[:, 1] & _LOW, shape.rows) * shape.columns
        halves = (self.words[:, 2] >> _HALF, self.words[:, 2] & _LOW, self.words[:, 3] & _LOW)
        return np.stack(
            [
                row + part * shape.segment + _scaled(half, shape.segment)
                for part, half in enumerate(halves)
            ],
            axis=1,
        )


def _scaled(half: npt.NDArray[np.uint64], many: int) -> npt.NDArray[np.int64]:
    """Return 32-bit numbers scaled to 0 … many − 1."""
    return ((half * np.uint64(many)) >> _HALF).astype(np.int64)
