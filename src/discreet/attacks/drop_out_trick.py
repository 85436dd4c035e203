"""An aggregator that says of one owner both that it stayed and that it left."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

from discreet.attacks._base import Attack, Attacked, AttackReport

__all__ = ["DropOutTrick"]

_SECRET = b"a secret of 16 b"


@dataclasses.dataclass(frozen=True)
class DropOutTrick(Attack):
    """Ask some owners for one secret of a victim and the others for the other secret.

    The mask between owners and the own mask together open the victim's part. With a threshold of
    more than half of the owners the pieces suffice for one of the two at most.

    Examples
    --------
    >>> DropOutTrick().run({"stayed": [1, 2, 3], "left": [4, 5]}, threshold=2).succeeded
    True
    >>> DropOutTrick().run({"stayed": [1, 2, 3], "left": [4, 5]}, threshold=3).succeeded
    False
    """

    name: ClassVar[str] = "drop-out-trick"
    reference: ClassVar[str] = "Bonawitz et al. (2017), CCS, section 6"
    attacks: ClassVar[Attacked] = "view"

    def run(self, told: Mapping[str, list[int]], threshold: int) -> AttackReport:
        """Put together the pieces that owners hand out who were told one thing or the other."""
        from Crypto.Protocol.SecretSharing import Shamir

        owners = max(place for places in told.values() for place in places)
        found = 0
        for places in told.values():
            # Each owner holds a piece of both secrets, and hands out one of them.
            pieces = dict(Shamir.split(threshold, owners, _SECRET))
            handed = [(place, pieces[place]) for place in places]
            found += len(handed) >= threshold and Shamir.combine(handed) == _SECRET
        asked = sum(map(len, told.values()))
        return AttackReport(self.name, asked, 0, float(found), float(found), found == 2)

    def control(self) -> AttackReport:
        """Attack a sum of five owners of whom two may put a secret together."""
        return self.run({"stayed": [1, 2, 3], "left": [4, 5]}, threshold=2)
