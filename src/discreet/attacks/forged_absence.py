"""A server that denies a row."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar

from discreet.attacks._base import Attack, Attacked, AttackReport
from discreet.attacks._lies import NOTICED, LookUp, believed

__all__ = ["ForgedAbsence"]


@dataclasses.dataclass(frozen=True)
class ForgedAbsence(Attack):
    """Answer with nothing, or as to a key that is not there; the user then takes a row for missing.

    Examples
    --------
    >>> ForgedAbsence().run(lambda change: change(b"150").strip(b"-") or None, [b"---"]).succeeded
    True
    """

    name: ClassVar[str] = "forged-absence"
    reference: ClassVar[str] = (
        "Laurie, Sisson, Arends and Blacka (2008), RFC 5155, authenticated denial of existence"
    )
    attacks: ClassVar[Attacked] = "view"

    def run(self, look_up: LookUp, captured: Sequence[bytes]) -> AttackReport:
        """Deny a row to a user who looks it up.

        Parameters
        ----------
        look_up
            Looks up a key that is there; every answer passes through the server's change.
        captured
            Answers to a key that is not there, in the order in which they are sent.
        """
        replayed = iter(captured)
        found: list[Any] = [
            believed(look_up, lambda body: bytes(len(body))),
            believed(look_up, lambda body: next(replayed, body)),
        ]
        noticed = sum(one is NOTICED for one in found)
        denied = float(sum(one is None for one in found))
        return AttackReport(self.name, len(found), noticed, denied, denied, denied > 0)

    def control(self) -> AttackReport:
        """Attack a user who takes an empty answer for an absent row."""
        return self.run(lambda change: change(b"150000").strip(b"\0") or None, [b""])
