"""Spending across kinds."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import ClassVar

from discreet.attacks._base import AttackReport
from discreet.attacks._publications import PublicationAttack
from discreet.dp.grant import Grant
from discreet.registry import parameter

__all__ = ["SpendingAcrossKinds"]


@dataclasses.dataclass(frozen=True)
class SpendingAcrossKinds(PublicationAttack):
    """Take a table, a file, a model and answers, each within its ε, for one release with their sum.

    Examples
    --------
    >>> SpendingAcrossKinds().control().succeeded
    True
    >>> SpendingAcrossKinds(granted=1.0).run([{"pure 0.5": 1}, {"pure 0.25": 1}]).upper
    0.75
    """

    name: ClassVar[str] = "spending-across-kinds"
    reference: ClassVar[str] = "Dwork and Roth (2014), Algorithmic foundations of DP, 3.5"

    granted: float = parameter(1.0, help="ε that everything together may spend", low=0.01)

    def run(self, spent: Sequence[Mapping[str, int]]) -> AttackReport:
        """Add up the privacy events of releases; it succeeds if they spend more than was granted."""
        together: Counter[str] = Counter()
        for events in spent:
            together.update(events)
        epsilon = Grant(self.granted).spent(together) if together else 0.0
        over = epsilon > self.granted + 1e-9
        return AttackReport(self.name, len(spent), 0, epsilon, epsilon, succeeded=over)

    def control(self) -> AttackReport:
        """Attack four releases that each keep the whole grant, as if there were no other."""
        return self.run([{f"pure {self.granted:g}": 1} for _ in range(4)])
