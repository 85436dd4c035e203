"""Count-Mean-Sketch: frequencies over a domain too large to send bit by bit (as Apple does)."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet.dp.local._base import Array, Estimate, LocalMechanism, coin, odds, require_reports
from discreet.dp.local.k_ary_randomized_response import require_domain
from discreet.randomness import Randomness
from discreet.registry import parameter

__all__ = ["CountMeanSketch"]


@dataclasses.dataclass(frozen=True)
class CountMeanSketch(LocalMechanism):
    """Send one row of a sketch: a random hash function's bits, each randomised.

    A report is the number of the hash function and then its bits. Answers outside the domain can
    be encoded as well; they only add noise.

    Examples
    --------
    >>> mechanism = CountMeanSketch(("a", "b"), epsilon=4.0, width=64, functions=16)
    >>> reports = mechanism.encode(["a"] * 900 + ["b"] * 100, rng=Randomness.seeded(3))
    >>> estimate = mechanism.estimate(reports)
    >>> estimate.estimate[0] > estimate.estimate[1]
    True
    """

    name: ClassVar[str] = "count-mean-sketch"
    reference: ClassVar[str] = (
        "Apple Differential Privacy Team, Learning with Privacy at Scale (2017)"
    )
    domain: tuple[str, ...] = parameter(help="the answers to be counted")
    epsilon: float = parameter(4.0, help="privacy of one report", above=0)
    width: int = parameter(1024, help="bits of one row", low=2)
    functions: int = parameter(256, help="number of hash functions", low=1, high=65536)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_domain(self.domain)

    @property
    def privacy(self) -> float:
        """Return epsilon."""
        return self.epsilon

    def _hash(self, value: str) -> npt.NDArray[np.int64]:
        """Return the place of a value under every hash function."""
        raw = b"".join(
            hashlib.blake2b(
                value.encode(), digest_size=64, salt=block.to_bytes(8, "little")
            ).digest()
            for block in range(-(-self.functions // 8))
        )
        words = np.frombuffer(raw, dtype="<u8")[: self.functions]
        return (words % np.uint64(self.width)).astype(np.int64)

    def encode(self, answers: Sequence[Any], *, rng: Randomness) -> Array:
        """Randomise answers; a report is a function's number followed by the row's bits."""
        texts = [str(answer) for answer in answers]
        places = {text: self._hash(text) for text in set(texts)}
        chosen = rng.integers(0, self.functions, len(texts))
        hit = np.array([places[t][f] for t, f in zip(texts, chosen, strict=True)], dtype=np.int64)
        # One answer sets one bit among the row's: two bits differ between two answers.
        p = odds(self.epsilon / 2)
        chance = np.full((len(texts), self.width), 1 - p)
        chance[np.arange(len(texts)), hit] = p
        bits = coin(chance.ravel(), chance.size, rng).reshape(chance.shape)
        return np.column_stack([chosen, bits]).astype(np.int32)

    def estimate(self, reports: Array) -> Estimate:
        """Estimate the share of every answer of the domain."""
        n = require_reports(reports)
        p, m, k = odds(self.epsilon / 2), self.width, self.functions
        functions, bits = reports[:, 0], reports[:, 1:].astype(np.float64)
        # Each row of the sketch collects the debiased bits of the reports that used its function.
        sketch = np.zeros((k, m))
        np.add.at(sketch, functions, (bits - (1 - p)) / (2 * p - 1))
        used = np.arange(k)
        shares = np.array([sketch[used, self._hash(value)].sum() for value in self.domain]) / n
        shares = (shares - 1 / m) * m / (m - 1)
        noise = p * (1 - p) / (2 * p - 1) ** 2 / n * (m / (m - 1)) ** 2
        collisions = 1 / (m - 1) / n + 1 / (m * k)
        spread = np.clip(shares * (1 - shares), 0, None) / n
        return self._shares(self.domain, shares, noise + collisions + spread, n)
