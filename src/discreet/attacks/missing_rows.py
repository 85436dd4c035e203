"""The missing rows."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

from discreet.attacks._publications import Printed, SumsAttack

__all__ = ["MissingRows"]


@dataclasses.dataclass(frozen=True)
class MissingRows(SumsAttack):
    """Subtract the sums of a released file from a table's total: the suppressed records remain.

    Examples
    --------
    >>> MissingRows().control().succeeded
    True
    """

    name: ClassVar[str] = "missing-rows"
    reference: ClassVar[str] = "Sweeney (2002), IJUFKS 10, complementary releases"

    def example(self) -> tuple[list[Printed], Any, float]:
        """Return a total, and the classes of a file that leaves one person out."""
        costs = {f"patient {n}": 100.0 * n for n in range(1, 12)}
        names = list(costs)
        classes = [frozenset(names[:5]), frozenset(names[5:10])]
        file = [Printed(inside, sum(costs[name] for name in inside)) for inside in classes]
        return [Printed(frozenset(costs), sum(costs.values())), *file], "patient 11", 1100.0
