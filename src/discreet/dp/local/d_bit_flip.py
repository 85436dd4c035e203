"""dBitFlip: a histogram from a few randomised bits per respondent (as Microsoft does)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from discreet.dp.local._base import (
    Array,
    Estimate,
    LocalMechanism,
    coin,
    odds,
    place_of,
    require_reports,
)
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

    @property
    def privacy(self) -> float:
        """Return epsilon."""
        return self.epsilon

    def encode(self, answers: Sequence[Any], *, rng: Randomness) -> Array:
        """Randomise answers."""
        true = place_of(answers, self.domain)
        n, k = len(true), len(self.domain)
        order = np.argsort(rng.words(n * k).reshape(n, k), axis=1)[:, : self.d]
        p = odds(self.epsilon / 2)
        chance = np.where(order == true[:, None], p, 1 - p)
        bits = coin(chance.ravel(), chance.size, rng).reshape(chance.shape)
        return np.hstack([order, bits]).astype(np.int32)

    def estimate(self, reports: Array) -> Estimate:
        """Estimate the share of every bucket."""
        n = require_reports(reports)
        k, p = len(self.domain), odds(self.epsilon / 2)
        buckets = reports[:, : self.d].ravel()
        debiased = (reports[:, self.d :].ravel() - (1 - p)) / (2 * p - 1)
        scale = k / (n * self.d)
        shares = scale * np.bincount(buckets, weights=debiased, minlength=k)
        # A respondent's part of the estimate is independent of the others': its variance is measured.
        squares = scale * (k / self.d) * np.bincount(buckets, weights=debiased**2, minlength=k)
        return self._shares(self.domain, shares, (squares - shares**2) / n, n)
