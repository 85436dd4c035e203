"""dBitFlip: a histogram from a few randomised bits per respondent (as Microsoft does)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np

from discreet.dp.local._base import (
    Array,
    Estimate,
    LocalMechanism,
    malformed,
    place_of,
    require_bits,
    require_places,
)
from discreet.dp.local._chances import UNIT, coin, loss, truth
from discreet.dp.local.k_ary_randomized_response import require_domain
from discreet.errors import InputError
from discreet.randomness import Randomness
from discreet.registry import parameter

__all__ = ["DBitFlip"]


@dataclasses.dataclass(frozen=True)
class DBitFlip(LocalMechanism):
    """Send d randomly chosen buckets, each with a randomised bit.

    A report is the d bucket numbers followed by their d bits.

    Examples
    --------
    >>> mechanism = DBitFlip(("a", "b", "c", "d"), d=2, epsilon=2.0)
    >>> mechanism.encode(["a", "c"], rng=Randomness.seeded(1)).shape
    (2, 4)
    """

    name: ClassVar[str] = "d-bit-flip"
    reference: ClassVar[str] = "Ding, Kulkarni, Yekhanin, NeurIPS 2017"
    domain: tuple[str, ...] = parameter(help="the buckets")
    d: int = parameter(4, help="bits each respondent sends", low=1)
    epsilon: float = parameter(1.0, help="privacy of one report", above=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_domain(self.domain)
        if self.d > len(self.domain):
            raise InputError(
                f"d = {self.d} bits cannot be drawn from {len(self.domain)} buckets",
                code="parameter-range",
                hint=f"write d={len(self.domain)} or less",
                parameter="d",
            )

        truth(self.epsilon / self._differing)

    @property
    def _differing(self) -> int:
        """How many of the bits sent can depend on which of two answers is true."""
        return min(self.d, 2)

    @property
    def _truth(self) -> int:
        return truth(self.epsilon / self._differing)

    @classmethod
    def examples(cls, **offered: Any) -> tuple[Self, ...]:
        """Return one that sends some of the buckets, and one that sends all."""
        domain = offered["domain"]
        return tuple(cls(domain, d) for d in (min(2, len(domain)), len(domain)))

    @property
    def privacy(self) -> float:
        """Return epsilon."""
        p = self._truth
        return loss(p**self._differing, (UNIT - p) ** self._differing)

    def encode(self, answers: Sequence[Any], *, rng: Randomness) -> Array:
        """Randomise answers."""
        true = place_of(answers, self.domain)
        n, k = len(true), len(self.domain)
        order = np.argsort(rng.words(n * k).reshape(n, k), axis=1)[:, : self.d]
        p = np.uint64(self._truth)
        chance = np.where(order == true[:, None], p, np.uint64(UNIT) - p)
        bits = coin(chance.ravel(), chance.size, rng).reshape(chance.shape)
        return np.hstack([order, bits]).astype(np.int32)

    def _columns(self) -> int:
        return 2 * self.d

    def estimate(self, reports: Array) -> Estimate:
        """Estimate the share of every bucket from the reports in which it was drawn."""
        given, k = self.check(reports), len(self.domain)
        buckets = require_places(given[:, : self.d], k)
        if (np.diff(np.sort(buckets, axis=1), axis=1) == 0).any():
            raise malformed("the buckets of a report differ")
        bits = require_bits(given[:, self.d :])
        asked = np.bincount(buckets.ravel(), minlength=k)
        ones = np.bincount(buckets.ravel()[bits.ravel() == 1], minlength=k)
        p = self._truth
        return self._shares(self.domain, ones, asked, (p, UNIT - p), len(given))
