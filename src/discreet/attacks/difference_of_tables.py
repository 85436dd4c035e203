"""The difference of tables."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

from discreet.attacks._publications import Printed, SumsAttack

__all__ = ["DifferenceOfTables"]


@dataclasses.dataclass(frozen=True)
class DifferenceOfTables(SumsAttack):
    """Subtract a cell of one table from a cell of another whose groupings do not nest.

    Examples
    --------
    >>> DifferenceOfTables().control().succeeded
    True
    """

    name: ClassVar[str] = "difference-of-tables"
    reference: ClassVar[str] = "Hundepool et al., Statistical Disclosure Control, 2012, 4.2"

    def example(self) -> tuple[list[Printed], Any, float]:
        """Return firms by region, and again without the smallest firm."""
        firms = {f"firm {n}": 10.0 * n for n in range(1, 7)}
        large = {name: value for name, value in firms.items() if name != "firm 1"}
        both = [Printed(frozenset(some), sum(some.values())) for some in (firms, large)]
        return both, "firm 1", 10.0
