"""Searches of one author in different spaces."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from typing import ClassVar

from discreet.attacks._base import Attack, Attacked, AttackReport

__all__ = ["LinkedSpaces"]


@dataclasses.dataclass(frozen=True)
class LinkedSpaces(Attack):
    """Intersect the users of the spaces in which colluding peers read linked searches.

    Two spaces of a projective plane share one user: the author, if the searches are linked by their
    topic and each was posted into another space.

    Examples
    --------
    >>> LinkedSpaces().run([{0, 1, 2}, {0, 3, 4}], colluding={1, 3}, truth=0).succeeded
    True
    >>> LinkedSpaces().run([{0, 1, 2}, {0, 1, 2}], colluding={1}, truth=0).succeeded
    False
    """

    name: ClassVar[str] = "linked-spaces"
    reference: ClassVar[str] = (
        "Swanson and Stinson (2011), Extended combinatorial constructions for peer-to-peer "
        "user-private information retrieval"
    )
    attacks: ClassVar[Attacked] = "view"

    def run(
        self, spaces: Sequence[Collection[int]], colluding: Collection[int], truth: int
    ) -> AttackReport:
        """Conclude the author of linked searches.

        Parameters
        ----------
        spaces
            The users of the space in which each of the searches was posted.
        colluding
            Users who put together what they read; they did not write the searches.
        truth
            The author; only says whether the conclusion is right.
        """
        read = [set(space) for space in spaces if not set(colluding).isdisjoint(space)]
        left = set.intersection(*read) - set(colluding) if read else set()
        named = float(min(left)) if len(left) == 1 else None
        return AttackReport(self.name, len(read), 0, named, named, named == truth)

    def control(self) -> AttackReport:
        """Attack an author who posts two linked searches into two spaces of the Fano plane."""
        return self.run([(0, 1, 2), (0, 3, 4)], colluding={2, 4}, truth=0)
