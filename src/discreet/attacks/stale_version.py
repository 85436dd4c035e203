"""A server that answers from an older version of the table."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar, Literal

from discreet.attacks._base import Attack, Attacked, AttackReport
from discreet.attacks._lies import NOTICED
from discreet.errors import RefusedError

__all__ = ["StaleVersion"]

Stale = Literal["answers", "everything"]


@dataclasses.dataclass(frozen=True)
class StaleVersion(Attack):
    """Answer from the table as it was: under the newest statement, or with the older statement too.

    A user who has never seen the newer version cannot know that there is one; the attack concerns
    users who have.

    Examples
    --------
    >>> StaleVersion().run(lambda stale: "Reus", stale="Reus").succeeded
    True
    """

    name: ClassVar[str] = "stale-version"
    reference: ClassVar[str] = (
        "Samuel, Mathewson, Cappos and Dingledine (2010), Survivable key compromise in software "
        "update systems, CCS"
    )
    attacks: ClassVar[Attacked] = "view"

    def run(self, look_up: Callable[[Stale], Any], stale: Any) -> AttackReport:
        """Offer an older version to a user who looks up a row that has changed.

        Parameters
        ----------
        look_up
            Looks the row up; it is told what the servers take from the older version.
        stale
            The older value. Any: of the table.
        """
        forms: tuple[Stale, ...] = ("answers", "everything")
        found = []
        for form in forms:
            try:
                found.append(look_up(form))
            except RefusedError:
                found.append(NOTICED)
        noticed = sum(one is NOTICED for one in found)
        fooled = float(sum(one is not NOTICED and one == stale for one in found))
        return AttackReport(self.name, len(forms), noticed, fooled, fooled, fooled > 0)

    def control(self) -> AttackReport:
        """Attack a user who does not look at versions."""
        table = {"answers": "old address", "everything": "old address", "": "new address"}
        return self.run(lambda form: table[form], stale="old address")
