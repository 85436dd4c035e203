"""Two joint runs, one record apart."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

from discreet.attacks._base import Attack, Attacked, AttackReport
from discreet.registry import parameter

__all__ = ["DifferenceOfRuns"]


@dataclasses.dataclass(frozen=True)
class DifferenceOfRuns(Attack):
    """Subtract what two joint runs opened: the same question before and after a record came.

    Each run meets its rules; together they tell the one record in which they differ.

    Examples
    --------
    >>> DifferenceOfRuns().run({"A": 900.0}, {"A": 1250.0}, truth=350.0).succeeded
    True
    >>> DifferenceOfRuns().run({"A": 900.0}, None, truth=350.0).succeeded
    False
    """

    name: ClassVar[str] = "difference-of-runs"
    reference: ClassVar[str] = "Denning (1980), Secure statistical databases with random samples"
    attacks: ClassVar[Attacked] = "view"

    percent: float = parameter(1.0, help="how near to the value is near enough", above=0, high=50)

    def run(
        self,
        first: Mapping[str, float] | None,
        second: Mapping[str, float] | None,
        truth: float,
    ) -> AttackReport:
        """Conclude the newcomer from the one cell that changed; none where a run was refused."""
        refused = int(first is None) + int(second is None)
        changed = {
            name: second[name] - value
            for name, value in (first or {}).items()
            if second is not None and second.get(name, value) != value
        }
        if refused or len(changed) != 1:
            return AttackReport(self.name, 2, refused, None, None, succeeded=False)
        (found,) = changed.values()
        near = abs(abs(found) - abs(truth)) <= self.percent / 100 * abs(truth)
        return AttackReport(self.name, 2, 0, found, found, near)

    def control(self) -> AttackReport:
        """Attack owners that judge every run by itself."""
        return self.run({"A": 4_200.0, "B": 910.0}, {"A": 4_200.0, "B": 1_860.0}, truth=950.0)
