"""The homogeneity attack."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from discreet.attacks._base import GatewayAttack, Interrogation, Victim
from discreet.registry import parameter

__all__ = ["Homogeneity"]


@dataclasses.dataclass(frozen=True)
class Homogeneity(GatewayAttack):
    """Ask for the mean of the victim's group: at an end of what is possible, all are alike.

    No size of the group helps: a mean of zeros and ones that is zero says so of every member.

    Examples
    --------
    >>> Homogeneity().control().succeeded
    True
    """

    name: ClassVar[str] = "homogeneity"
    reference: ClassVar[str] = (
        "Machanavajjhala, Gehrke, Kifer and Venkitasubramaniam (2007), l-diversity"
    )

    ends: tuple[float, float] = parameter((0.0, 1.0), help="smallest and largest possible value")

    def conclude(self, interrogation: Interrogation, victim: Victim) -> tuple[float, float] | None:
        """Return the mean of a group that must be all alike."""
        for condition in (victim.group, victim.condition):
            for function in ("AVG", "SUM"):
                ends = interrogation.value(
                    f"SELECT {function}({victim.column}) FROM {victim.relation} "  # noqa: S608 - the attacker writes SQL
                    f"WHERE {condition}"
                )
                if ends is None:
                    continue
                alike = ends[0] == ends[1] and (
                    condition == victim.condition
                    or ends[0] == self.ends[0]
                    or (function == "AVG" and ends[0] == self.ends[1])
                )
                if alike or condition == victim.condition:
                    return ends
        return None
