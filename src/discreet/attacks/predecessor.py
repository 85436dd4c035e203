"""Who forwards most often is the author."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from discreet.attacks._base import Attack, Attacked, AttackReport

__all__ = ["Predecessor"]


@dataclasses.dataclass(frozen=True)
class Predecessor(Attack):
    """Count who forwarded a linked search to a colluding member, over paths formed again.

    Examples
    --------
    >>> Predecessor().run([4, 0, 4, 2, 4], members=6, truth=4).succeeded
    True
    """

    name: ClassVar[str] = "predecessor"
    reference: ClassVar[str] = (
        "Wright, Adler, Levine and Shields (2002), An analysis of the degradation of anonymous "
        "protocols, NDSS"
    )
    attacks: ClassVar[Attacked] = "view"

    def run(self, forwarders: Sequence[int], members: int, truth: int) -> AttackReport:
        """Conclude the author; nobody where two forwarded equally often."""
        counts = np.bincount(forwarders, minlength=members)
        most = np.flatnonzero(counts == counts.max())
        named = float(most[0]) if most.size == 1 else None
        return AttackReport(self.name, len(forwarders), 0, named, named, named == truth)

    def control(self) -> AttackReport:
        """Attack a crowd that forms a path anew for every search."""
        drawn = np.random.default_rng(1)
        forwarders = [4 if drawn.random() < 0.4 else int(drawn.integers(0, 20)) for _ in range(200)]
        return self.run(forwarders, members=20, truth=4)
