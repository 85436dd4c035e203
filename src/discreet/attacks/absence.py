"""Whoever never submits a search is its author."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from discreet.attacks._base import Attack, Attacked, AttackReport

__all__ = ["Absence"]


@dataclasses.dataclass(frozen=True)
class Absence(Attack):
    """Name the member of a group who submitted the fewest of some linked searches.

    Members who submit for all others but never for themselves are named by it.

    Examples
    --------
    >>> Absence().run([0, 1, 3, 1, 0, 3], members=4, truth=2).succeeded
    True
    """

    name: ClassVar[str] = "absence"
    reference: ClassVar[str] = (
        "Swanson and Stinson (2011), Extended combinatorial constructions for peer-to-peer "
        "user-private information retrieval"
    )
    attacks: ClassVar[Attacked] = "view"

    def run(self, submitters: Sequence[int], members: int, truth: int) -> AttackReport:
        """Conclude the author; nobody where two submitted equally few."""
        counts = np.bincount(submitters, minlength=members)
        least = np.flatnonzero(counts == counts.min())
        named = float(least[0]) if least.size == 1 else None
        return AttackReport(self.name, len(submitters), 0, named, named, named == truth)

    def control(self) -> AttackReport:
        """Attack a group of seven in which the author's searches are submitted by the others."""
        drawn = np.random.default_rng(1).integers(0, 6, 300)
        return self.run((drawn + (drawn >= 2)).tolist(), members=7, truth=2)
