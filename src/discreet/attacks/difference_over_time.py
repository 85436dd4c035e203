"""The difference over time."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

from discreet.attacks._publications import Printed, SumsAttack

__all__ = ["DifferenceOverTime"]


@dataclasses.dataclass(frozen=True)
class DifferenceOverTime(SumsAttack):
    """Subtract the same table before somebody came from the one after.

    Examples
    --------
    >>> DifferenceOverTime().control().succeeded
    True
    """

    name: ClassVar[str] = "difference-over-time"
    reference: ClassVar[str] = "Byun, Sohn, Bertino and Li (2006), SDM workshop"

    def example(self) -> tuple[list[Printed], Any, float]:
        """Return a total before and after one person came."""
        before = {f"person {n}": 1000.0 + n for n in range(20)}
        after = {**before, "newcomer": 777.0}
        totals = [Printed(frozenset(some), sum(some.values())) for some in (before, after)]
        return totals, "newcomer", 777.0
