"""The weights attack."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from discreet.attacks._base import GatewayAttack, Interrogation, Victim
from discreet.registry import parameter

__all__ = ["Weights"]


@dataclasses.dataclass(frozen=True)
class Weights(GatewayAttack):
    """Weigh the victim a little more in a sum, and read the value from how far its ends move.

    Against intervals over hidden vectors each end moves by the victim's value in one of them, and
    another weight of the others makes it another vector.

    Examples
    --------
    >>> Weights().control().succeeded
    True
    """

    name: ClassVar[str] = "weights"
    reference: ClassVar[str] = (
        "Gopal, Garfinkel and Goes (2002), Confidentiality via camouflage, on what hulls reveal"
    )

    times: int = parameter(8, help="weights of the others that are tried", low=1)

    def conclude(self, interrogation: Interrogation, victim: Victim) -> tuple[float, float] | None:
        """Return what all readings together leave of the value."""
        found: list[tuple[float, float]] = []
        for number in range(self.times):
            other = 1 + number // 2
            sign = 1 if number % 2 else -1
            ends = [self._sum(interrogation, victim, sign * other, own) for own in (1, 2)]
            if ends[0] is None or ends[1] is None:
                continue
            moved = [ends[1][side] - ends[0][side] for side in (0, 1)]
            found.append((min(moved), max(moved)))
        if not found:
            return None
        low, high = max(low for low, _ in found), min(high for _, high in found)
        if low > high:  # readings of different vectors: the value lies among them
            low, high = high, low
        return low, high

    @staticmethod
    def _sum(
        interrogation: Interrogation, victim: Victim, others: int, own: int
    ) -> tuple[float, float] | None:
        weight = (
            f"CASE WHEN {victim.condition} THEN {own} WHEN {victim.other} THEN {others} ELSE 1 END"
        )
        return interrogation.value(
            f"SELECT SUM({victim.column} * {weight}) FROM {victim.relation}"  # noqa: S608 - the attacker writes SQL
        )
