"""How long a server takes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from discreet.attacks._base import Attack, Attacked, AttackReport
from discreet.registry import parameter

__all__ = ["Timing"]


@dataclasses.dataclass(frozen=True)
class Timing(Attack):
    """Correlate how long answers took with where the wanted rows are.

    Examples
    --------
    >>> Timing().run([0.1 * n for n in range(20)], range(20)).succeeded
    True
    >>> Timing().run([0.1, 0.3, 0.2, 0.2, 0.3, 0.1] * 4, range(24)).succeeded
    False
    """

    name: ClassVar[str] = "timing"
    reference: ClassVar[str] = "Kocher (1996), Timing attacks, CRYPTO"
    attacks: ClassVar[Attacked] = "view"

    level: float = parameter(
        0.001, help="probability of a dependence by chance from which it counts", above=0, below=1
    )

    def run(self, seconds: Sequence[float], places: Sequence[int]) -> AttackReport:
        """Conclude from the rank correlation whether times depend on places."""
        from scipy.stats import spearmanr

        found = spearmanr(places, seconds)
        size = float(found.statistic)
        return AttackReport(self.name, len(seconds), 0, size, size, bool(found.pvalue < self.level))

    def control(self) -> AttackReport:
        """Attack a server that reads its table up to the wanted row."""
        drawn = np.random.default_rng(1)
        places = drawn.integers(0, 10_000, 200)
        return self.run((places * 1e-6 + drawn.exponential(1e-3, 200)).tolist(), places.tolist())
