"""A server that spoils a part of its answer and watches who notices."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable
from typing import Any, ClassVar

from discreet.attacks._base import Attack, Attacked, AttackReport
from discreet.attacks._lies import Change
from discreet.registry import parameter

__all__ = ["SelectiveFailure"]

#: A user looks one of two keys up; what the servers saw of it comes back.
Watched = Callable[[int, Change], Hashable]


@dataclasses.dataclass(frozen=True)
class SelectiveFailure(Attack):
    """Spoil each part of an answer in turn: whoever reacts to it has looked at that part.

    The servers see the messages that follow. If they differ between two keys for any part that is
    spoiled, the reaction tells the keys apart.

    Examples
    --------
    >>> def asks_again(key, change):
    ...     return 2 if change(b"ab")[key] != b"ab"[key] else 1
    >>> SelectiveFailure(parts=2).run(asks_again).succeeded
    True
    """

    name: ClassVar[str] = "selective-failure"
    reference: ClassVar[str] = (
        "Colombo, Nikitin, Corrigan-Gibbs, Wu and Ford (2023), Authenticated PIR, USENIX Security"
    )
    attacks: ClassVar[Attacked] = "view"

    parts: int = parameter(8, help="into how many parts an answer is divided", low=2)

    def run(self, look_up: Watched) -> AttackReport:
        """Spoil parts of the answers to two keys, 0 and 1, and compare what the servers see."""
        differing = 0
        for part in range(self.parts):
            differing += len({look_up(key, self._spoil(part)) for key in (0, 1)}) > 1
        share = differing / self.parts
        return AttackReport(self.name, 2 * self.parts, 0, share, share, differing > 0)

    def _spoil(self, part: int) -> Change:
        def change(body: bytes) -> bytes:
            first, end = (len(body) * n // self.parts for n in (part, part + 1))
            return body[:first] + bytes(one ^ 0x80 for one in body[first:end]) + body[end:]

        return change

    def control(self) -> AttackReport:
        """Attack a user who asks again when the wanted row is not what was signed."""
        rows = bytes(range(16))

        def messages(key: int, change: Change) -> Any:
            return 1 + (change(rows)[15 * key] != rows[15 * key])

        return self.run(messages)
