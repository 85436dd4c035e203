"""The general tracker."""

from __future__ import annotations

import dataclasses
from typing import ClassVar, Literal

from discreet.attacks._base import GatewayAttack, Interrogation, Victim, combination
from discreet.registry import parameter

__all__ = ["Tracker"]


@dataclasses.dataclass(frozen=True)
class Tracker(GatewayAttack):
    """Pad the victim with a tracker, so that no query set is small, and take the padding off.

    The general tracker T gives q(C) = q(C or T) + q(C or not T) − q(T) − q(not T); the individual
    tracker for C = A and B gives q(C) = q(A) − q(A and not B).

    Examples
    --------
    >>> Tracker().control().succeeded
    True
    """

    name: ClassVar[str] = "tracker"
    reference: ClassVar[str] = "Denning, Denning and Schwartz (1979), The tracker"

    kind: Literal["general", "individual"] = parameter("general", help="which tracker")

    def conclude(self, interrogation: Interrogation, victim: Victim) -> tuple[float, float] | None:
        """Ask with the tracker and without."""
        who, tracker = f"({victim.condition})", f"({victim.other})"
        if self.kind == "individual":
            parts = [(1, victim.group), (-1, f"({victim.group}) AND NOT {who}")]
        else:
            parts = [
                (1, f"{who} OR {tracker}"),
                (1, f"{who} OR NOT {tracker}"),
                (-1, tracker),
                (-1, f"NOT {tracker}"),
            ]
        return combination([(sign, interrogation.sum(victim, what)) for sign, what in parts])
