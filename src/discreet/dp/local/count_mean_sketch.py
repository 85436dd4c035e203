"""Count-Mean-Sketch: frequencies over a domain too large to send bit by bit (as Apple does)."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from discreet.dp.local._base import (
    Array,
    Estimate,
    LocalMechanism,
    binomial_interval,
    require_bits,
    require_places,
)
from discreet.dp.local._chances import UNIT, coin, loss, truth
from discreet.dp.local.k_ary_randomized_response import require_domain
from discreet.randomness import Randomness
from discreet.registry import parameter

__all__ = ["CountMeanSketch"]


@dataclasses.dataclass(frozen=True)
class CountMeanSketch(LocalMechanism):
    """Send one row of a sketch: a random hash function's bits, each randomised.

    A report is the number of the hash function and then its bits. Answers outside the domain can
    be encoded as well; they only add noise. The hash functions belong to one collection: they are
    made from a public `salt`, drawn where none is given, which respondents and collector share.
    Two answers that collide in one collection do not in the next, and the interval allows for the
    collisions that so many functions can have.

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
    drawn: ClassVar[tuple[str, ...]] = ("salt",)
    domain: tuple[str, ...] = parameter(help="the answers to be counted")
    epsilon: float = parameter(4.0, help="privacy of one report", above=0)
    width: int = parameter(1024, help="bits of one row", low=2)
    functions: int = parameter(256, help="number of hash functions", low=1, high=65536)

    salt: str | None = parameter(
        None,
        help="public word the hash functions of this collection are made from; drawn if left out",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require_domain(self.domain)
        truth(self.epsilon / 2)
        if self.salt is None:
            object.__setattr__(self, "salt", Randomness.secure().bytes(8).hex())

    @property
    def _truth(self) -> int:
        # One answer sets one bit among the row's: two bits differ between two answers.
        return truth(self.epsilon / 2)

    @classmethod
    def examples(cls, **offered: Any) -> tuple[Self, ...]:
        """Return sketches so small that every report can be drawn many times."""
        return tuple(
            cls(offered["domain"], epsilon, width=4, functions=2) for epsilon in (1.0, 4.0)
        )

    @property
    def privacy(self) -> float:
        """Return epsilon."""
        return loss(self._truth**2, (UNIT - self._truth) ** 2)

    def _hash(self, value: str) -> npt.NDArray[np.int64]:
        """Return the place of a value under every hash function."""
        key = hashlib.blake2b(str(self.salt).encode(), digest_size=32).digest()
        raw = b"".join(
            hashlib.blake2b(
                value.encode(), digest_size=64, key=key, salt=block.to_bytes(8, "little")
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
        p = self._truth
        chance = np.full((len(texts), self.width), UNIT - p, dtype=np.uint64)
        chance[np.arange(len(texts)), hit] = p
        bits = coin(chance.ravel(), chance.size, rng).reshape(chance.shape)
        return np.column_stack([chosen, bits]).astype(np.int32)

    def _columns(self) -> int:
        return 1 + self.width

    def estimate(self, reports: Array) -> Estimate:
        """Estimate the share of every answer of the domain."""
        from scipy.stats import binom

        given = self.check(reports)
        functions = require_places(given[:, 0], self.functions)
        bits, n = require_bits(given[:, 1:]), len(given)
        sketch = np.zeros((self.functions, self.width), dtype=np.int64)
        np.add.at(sketch, functions, bits)
        used = np.arange(self.functions)
        ones = np.array([sketch[used, self._hash(value)].sum() for value in self.domain])
        p, q = self._truth / UNIT, 1 - self._truth / UNIT
        m, seen = self.width, ones / n
        # A bit is hit by the answer itself, or by another one that collides with it.
        hits = (seen - q) / (p - q)
        shares = (hits - 1 / m) * m / (m - 1)
        likely = np.clip(seen, q, p)
        noise = likely * (1 - likely) / n / (p - q) ** 2
        # Four in a hundred go to the coins, one to the collisions, which are worst when all other
        # respondents give one and the same answer.
        fewest, most = (
            float(binom.ppf(tail, self.functions, 1 / m)) / self.functions
            for tail in (0.005, 0.995)
        )
        low, high = binomial_interval(ones, np.array([n]), level=0.96)
        ends = [
            np.clip(((end - q) / (p - q) - collided) / max(1 - collided, 1e-9), 0, 1)
            for end, collided in ((low, most), (high, fewest))
        ]
        # What others may have: a share that collisions made large must not hide them.
        rest = 1 - ends[0]
        error = np.sqrt(noise + rest**2 / (m * self.functions)) * m / (m - 1)
        return self._estimate(self.domain, shares, ends, error, n)
