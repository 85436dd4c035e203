"""The difference attack."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from discreet.attacks._base import GatewayAttack, Interrogation, Victim, combination

__all__ = ["Difference"]


@dataclasses.dataclass(frozen=True)
class Difference(GatewayAttack):
    """Ask for the sum of a group with and without the victim, and subtract.

    Examples
    --------
    >>> Difference().control().succeeded
    True
    """

    name: ClassVar[str] = "difference"
    reference: ClassVar[str] = "Denning (1982), Cryptography and Data Security, chapter 6"

    def conclude(self, interrogation: Interrogation, victim: Victim) -> tuple[float, float] | None:
        """Ask twice."""
        rest = f"{victim.group} AND NOT ({victim.condition})"
        return combination(
            [
                (1, interrogation.sum(victim, victim.group)),
                (-1, interrogation.sum(victim, rest)),
            ]
        )
