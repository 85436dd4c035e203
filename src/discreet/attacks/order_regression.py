"""The attack that learns the order of a permuted column."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np

from discreet.attacks._releases import Floats, Permuted, ReleaseAttack
from discreet.registry import parameter

__all__ = ["OrderRegression"]


@dataclasses.dataclass(frozen=True)
class OrderRegression(ReleaseAttack):
    """Learn the permuted column from all released ones, and order each group by what is learned.

    A regression on the permuted rows finds what groups have in common. The values are then given
    out in the order it predicts, and it is repeated on these until nothing changes. It finds sums
    of columns (total − bonus), which no single column orders.

    Examples
    --------
    >>> OrderRegression().control().share
    1.0
    """

    name: ClassVar[str] = "order-regression"
    reference: ClassVar[str] = "Kifer (2009), Attacks on privacy and deFinetti's theorem"

    rounds: int = parameter(30, help="how often it learns from its own guesses", low=1)

    def guesses(self, released: Permuted) -> Floats:
        """Learn, order, and learn from the order."""
        columns = [(c - c.mean()) / (c.std() or 1.0) for c in released.columns.values()]
        features = np.column_stack([np.ones(len(released.values)), *columns])
        guess = released.means(released.values)
        for _ in range(self.rounds):
            learned = np.linalg.lstsq(features, guess, rcond=None)[0]
            again = released.ordered(features @ learned)
            if np.array_equal(again, guess):
                break
            guess = again
        return guess
