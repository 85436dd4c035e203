"""An owner subtracts its own part."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import ClassVar

from discreet.attacks._base import Attack, Attacked, AttackReport
from discreet.registry import parameter

__all__ = ["OwnPart"]


@dataclasses.dataclass(frozen=True)
class OwnPart(Attack):
    """Take one's own contributions off the opened sum of a cell, and know what one other has.

    An owner of a joint table is an insider. What is left after its own records are taken off must
    meet the rules too.

    Examples
    --------
    >>> OwnPart().run(total=950.0, count=3, own=[20.0, 30.0], truth=900.0).succeeded
    True
    >>> OwnPart().run(total=None, count=None, own=[20.0, 30.0], truth=900.0).succeeded
    False
    """

    name: ClassVar[str] = "own-part"
    reference: ClassVar[str] = "Cox (1981), JASA 76; Hundepool et al. (2012), §4.2"
    attacks: ClassVar[Attacked] = "view"

    percent: float = parameter(10.0, help="how near to the value is near enough", above=0, high=50)

    def run(
        self, total: float | None, count: int | None, own: Sequence[float], truth: float
    ) -> AttackReport:
        """Conclude the largest contribution of the others; the truth only says whether it is right."""
        left = None if total is None else float(total) - float(sum(own))
        if left is None or (count is not None and count - len(own) < 1):
            return AttackReport(self.name, 1, int(total is None), None, None, succeeded=False)
        near = abs(left - truth) <= self.percent / 100 * abs(truth)
        return AttackReport(self.name, 1, 0, left, left, near)

    def control(self) -> AttackReport:
        """Attack a federated GROUP BY that judges the total alone: three contributors are enough."""
        return self.run(total=1_000.0 + 20.0 + 30.0, count=3, own=[20.0, 30.0], truth=1_000.0)
