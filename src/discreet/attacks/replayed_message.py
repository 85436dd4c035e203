"""A message that is sent again."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import ClassVar

from discreet.attacks._base import Attack, Attacked, AttackReport
from discreet.errors import DiscreetError

__all__ = ["ReplayedMessage"]


@dataclasses.dataclass(frozen=True)
class ReplayedMessage(Attack):
    """Send the bytes of an earlier message again, in its own session or in another.

    Where they count twice, a sum counts an owner twice, and the difference to the true sum is its
    part.

    Examples
    --------
    >>> ReplayedMessage().control().succeeded
    True
    """

    name: ClassVar[str] = "replayed-message"
    reference: ClassVar[str] = "Syverson (1994), A taxonomy of replay attacks, CSFW"
    attacks: ClassVar[Attacked] = "view"

    def run(self, deliver: Callable[[bytes], bool], message: bytes) -> AttackReport:
        """Deliver a message twice; the receiver says whether it took it."""
        taken = []
        for _ in range(2):
            try:
                taken.append(bool(deliver(message)))
            except (DiscreetError, OSError):
                taken.append(False)
        return AttackReport(self.name, 2, taken.count(False), None, None, succeeded=all(taken))

    def control(self) -> AttackReport:
        """Attack an aggregator that adds whatever arrives."""
        added: list[int] = []

        def deliver(message: bytes) -> bool:
            added.append(int.from_bytes(message, "big"))
            return True

        return self.run(deliver, (950).to_bytes(8, "big"))
