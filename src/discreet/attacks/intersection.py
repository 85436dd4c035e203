"""Searches repeated with fresh decoys."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from typing import ClassVar

import numpy as np

from discreet.attacks._base import Attack, Attacked, AttackReport

__all__ = ["Intersection"]


@dataclasses.dataclass(frozen=True)
class Intersection(Attack):
    """Intersect what was searched for each time the same search was repeated.

    Examples
    --------
    >>> Intersection().run([{"flu", "gout"}, {"flu", "acne"}], truth="flu").succeeded
    True
    >>> Intersection().run([{"flu", "gout"}, {"flu", "gout"}], truth="flu").succeeded
    False
    """

    name: ClassVar[str] = "intersection"
    reference: ClassVar[str] = (
        "Domingo-Ferrer, Solanas and Castellà-Roca (2009), h(k)-private information retrieval"
    )
    attacks: ClassVar[Attacked] = "view"

    def run(self, searches: Sequence[Collection[str]], truth: str) -> AttackReport:
        """Conclude the term from repeated searches; the truth only says whether that is right."""
        common = set(searches[0]).intersection(*searches)
        left = float(len(common))
        return AttackReport(self.name, len(searches), 0, left, left, common == {truth})

    def control(self) -> AttackReport:
        """Attack seven fresh decoys of twenty thousand terms, repeated twice."""
        drawn = np.random.default_rng(1)
        searches = [{"0", *map(str, drawn.integers(1, 20_000, 7))} for _ in range(3)]
        return self.run(searches, truth="0")
