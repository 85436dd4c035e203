"""Collusion of several users."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from discreet.attacks._base import GatewayAttack, Interrogation, Victim, combination
from discreet.registry import parameter

__all__ = ["Collusion"]


@dataclasses.dataclass(frozen=True)
class Collusion(GatewayAttack):
    """Let several users each ask one harmless part, and put the parts together.

    Examples
    --------
    >>> Collusion().control().succeeded
    True
    """

    name: ClassVar[str] = "collusion"
    reference: ClassVar[str] = "Domingo-Ferrer (2007), A three-dimensional conceptual framework"

    users: int = parameter(5, help="how many collude", low=2)

    def conclude(self, interrogation: Interrogation, victim: Victim) -> tuple[float, float] | None:
        """Ask for the whole, and for the rest in two halves, each as somebody else."""
        rest = f"NOT ({victim.condition})"
        inside, outside = f"({victim.other}) AND {rest}", f"NOT ({victim.other}) AND {rest}"
        parts = [
            (1, f"({victim.group}) OR NOT ({victim.group})"),
            (-1, inside),
            (-1, outside),
        ]
        found = [
            (sign, interrogation.sum(victim, what, user=f"colluder{n % self.users}"))
            for n, (sign, what) in enumerate(parts)
        ]
        return combination(found)
