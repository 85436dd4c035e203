"""The dependence attack."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from discreet.attacks._base import GatewayAttack, Interrogation, Victim, combination
from discreet.registry import parameter

__all__ = ["Dependence"]


@dataclasses.dataclass(frozen=True)
class Dependence(GatewayAttack):
    """Ask for a group through columns that add up, and for all but the victim directly.

    With total = salary + bonus, SUM(total) and SUM(bonus) of a group give its SUM(salary), which
    a guard that looks at each column alone does not know of.

    Examples
    --------
    >>> Dependence().control().succeeded
    True
    """

    name: ClassVar[str] = "dependence"
    reference: ClassVar[str] = (
        "Chin and Ozsoyoglu (1982), Auditing and inference control in statistical databases"
    )

    total: str | None = parameter(None, help="column that is a sum; the victim's if left out")
    others: tuple[str, ...] = parameter((), help="what it is a sum of, beside the victim's column")
    factor: float = parameter(1.0, help="what one of the victim's column adds to it", above=0)

    def conclude(self, interrogation: Interrogation, victim: Victim) -> tuple[float, float] | None:
        """Take the others and the rest of the group off the total."""
        group, rest = victim.group, f"({victim.group}) AND NOT ({victim.condition})"
        parts = [(1, interrogation.sum(victim, group, column=self.total))]
        parts += [(-1, interrogation.sum(victim, group, column=other)) for other in self.others]
        whole = combination(parts)
        if whole is None:
            return None
        scaled = whole[0] / self.factor, whole[1] / self.factor
        return combination([(1, scaled), (-1, interrogation.sum(victim, rest))])
