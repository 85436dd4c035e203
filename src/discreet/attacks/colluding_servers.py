"""Servers of private retrieval that put their questions together."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from discreet.attacks._base import Attack, Attacked, AttackReport

__all__ = ["ColludingServers"]


@dataclasses.dataclass(frozen=True)
class ColludingServers(Attack):
    r"""Add the bits that several servers of a private look-up got; all of them show the row.

    Examples
    --------
    >>> ColludingServers().run([b"\x0f", b"\x0b"], truth=2).succeeded
    True
    >>> ColludingServers().run([b"\x0f"], truth=2).succeeded
    False
    """

    name: ClassVar[str] = "colluding-servers"
    reference: ClassVar[str] = "Chor, Goldreich, Kushilevitz and Sudan (1995), FOCS"
    attacks: ClassVar[Attacked] = "view"

    def run(self, views: Sequence[bytes], truth: int) -> AttackReport:
        """Conclude the row from selection bits; the truth only says whether that is right."""
        total = np.bitwise_xor.reduce([np.frombuffer(view, np.uint8) for view in views])
        found = np.flatnonzero(np.unpackbits(total, bitorder="little"))
        place = float(found[0]) if found.size == 1 else None
        return AttackReport(self.name, len(views), 0, place, place, place == truth)

    def control(self) -> AttackReport:
        """Attack two servers that tell each other everything."""
        first = np.random.default_rng(1).bytes(8)
        second = bytes([first[0] ^ 32]) + first[1:]
        return self.run([first, second], truth=5)
