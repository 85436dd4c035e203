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
    >>> from discreet.attacks import RawDatabase, Victim
    >>> from discreet.demo import salaries
    >>> who = "sector = 'Fin' AND region = 'TGN'"
    >>> victim = Victim("people", "salary", who, "region = 'TGN'", "sector = 'IT'")
    >>> Difference().run(RawDatabase(salaries()), victim, truth=150_000).succeeded
    True
    """

    name: ClassVar[str] = "difference"
    reference: ClassVar[str] = "Denning (1982), Cryptography and Data Security, chapter 6"

    def conclude(self, interrogation: Interrogation, victim: Victim) -> tuple[float, float] | None:
        """Ask twice."""
        total = f"SELECT SUM({victim.column}) FROM {victim.relation} WHERE {victim.group}"  # noqa: S608 - the attacker writes SQL
        return combination(
            [
                (1, interrogation.value(total)),
                (-1, interrogation.value(f"{total} AND NOT ({victim.condition})")),
            ]
        )
