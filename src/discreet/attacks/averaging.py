"""The averaging attack."""

from __future__ import annotations

import dataclasses
import statistics
from typing import ClassVar

from discreet.attacks._base import GatewayAttack, Interrogation, Victim
from discreet.registry import parameter

__all__ = ["Averaging"]


@dataclasses.dataclass(frozen=True)
class Averaging(GatewayAttack):
    """Ask the same question again and again, spelled differently, and average the noise away.

    Examples
    --------
    >>> Averaging(times=3).control().succeeded
    True
    """

    name: ClassVar[str] = "averaging"
    reference: ClassVar[str] = (
        "Dinur and Nissim (2003), Revealing information while preserving privacy"
    )

    times: int = parameter(100, help="how often it is asked", low=1)

    def conclude(self, interrogation: Interrogation, victim: Victim) -> tuple[float, float] | None:
        """Ask in several spellings that mean the same, and intersect or average."""
        start = f"SELECT SUM({victim.column}) AS a{{n}} FROM {victim.relation} WHERE "  # noqa: S608 - the attacker writes SQL
        spellings = (
            f"{victim.condition}",
            f"NOT (NOT ({victim.condition}))",
            f"({victim.condition}) AND ({victim.condition})",
            f"({victim.condition}) OR ({victim.condition})",
            f"({victim.condition}) AND {{n}} = {{n}}",
        )
        found = []
        for number in range(self.times):
            sql = (start + spellings[number % len(spellings)]).format(n=number)
            ends = interrogation.value(sql)
            if ends is not None:
                found.append(ends)
        if not found:
            return None
        if all(low < high for low, high in found):
            return max(low for low, _ in found), min(high for _, high in found)
        mean = statistics.fmean((low + high) / 2 for low, high in found)
        return mean, mean
