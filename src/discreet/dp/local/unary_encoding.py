"""Unary encoding: one bit per possible answer, each flipped on its own."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np

from discreet.dp.local._base import Array, Estimate, LocalMechanism, place_of, require_bits
from discreet.dp.local._chances import UNIT, coin, loss, truth
from discreet.dp.local.k_ary_randomized_response import require_domain
from discreet.randomness import Randomness
from discreet.registry import parameter

__all__ = ["UnaryEncoding"]


@dataclasses.dataclass(frozen=True)
class UnaryEncoding(LocalMechanism):
    """Send one randomised bit per possible answer: symmetric (RAPPOR) or optimised.

    Examples
    --------
    >>> mechanism = UnaryEncoding(("a", "b", "c"), epsilon=1.0)
    >>> mechanism.encode(["a", "c"], rng=Randomness.seeded(1)).shape
    (2, 3)
    """

    name: ClassVar[str] = "unary-encoding"
    reference: ClassVar[str] = "Wang, Blocki, Li, Jha, USENIX Security 2017"
    domain: tuple[str, ...] = parameter(help="every possible answer")
    epsilon: float = parameter(1.0, help="privacy of one report", above=0)
    form: Literal["symmetric", "optimized"] = parameter("optimized", help="how bits are flipped")

    def __post_init__(self) -> None:
        super().__post_init__()
        require_domain(self.domain)

        self._chances()

    @property
    def privacy(self) -> float:
        """Return epsilon: two answers differ in two bits."""
        p, q = self._chances()
        return loss(p * (UNIT - q), q * (UNIT - p))

    def _chances(self) -> tuple[int, int]:
        """Return the chance of a one, over 2**62, in the bit of the answer and in the others."""
        if self.form == "symmetric":
            p = truth(self.epsilon / 2)
            return p, UNIT - p
        return UNIT // 2, UNIT - truth(self.epsilon)

    def encode(self, answers: Sequence[Any], *, rng: Randomness) -> Array:
        """Randomise answers; a report is a row of bits."""
        true = place_of(answers, self.domain)
        p, q = self._chances()
        chance = np.full((len(true), len(self.domain)), q, dtype=np.uint64)
        chance[np.arange(len(true)), true] = p
        return coin(chance.ravel(), chance.size, rng).reshape(chance.shape)

    def _columns(self) -> int:
        return len(self.domain)

    def estimate(self, reports: Array) -> Estimate:
        """Estimate the share of every answer."""
        given = require_bits(self.check(reports))
        ones, n = given.sum(axis=0), len(given)
        return self._shares(self.domain, ones, np.array([n]), self._chances(), n)
