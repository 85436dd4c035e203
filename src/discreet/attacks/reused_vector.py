"""Two questions of private retrieval under one random vector."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np

from discreet.attacks._base import Attack, Attacked, AttackReport

__all__ = ["ReusedVector"]


@dataclasses.dataclass(frozen=True)
class ReusedVector(Attack):
    r"""Add two questions that one server got: a random vector that is used twice falls out.

    The two wanted rows are left. Whoever knows one of them, for it is asked for every day or was the
    attacker's own suggestion, reads the other.

    Examples
    --------
    >>> ReusedVector().run(b"\x0f\x33", b"\x0b\x32", known=2, truth=8).succeeded
    True
    """

    name: ClassVar[str] = "reused-vector"
    reference: ClassVar[str] = "Chor, Goldreich, Kushilevitz and Sudan (1995), FOCS"
    attacks: ClassVar[Attacked] = "view"

    def run(self, first: bytes, second: bytes, known: int, truth: int) -> AttackReport:
        """Conclude the row of the second question from that of the first."""
        total = np.frombuffer(first, np.uint8) ^ np.frombuffer(second, np.uint8)
        left = set(np.flatnonzero(np.unpackbits(total, bitorder="little")).tolist()) - {known}
        place = float(left.pop()) if len(left) == 1 else None
        return AttackReport(self.name, 2, 0, place, place, place == truth)

    def control(self) -> AttackReport:
        """Attack a user who draws one vector for all look-ups."""
        drawn = np.frombuffer(np.random.default_rng(1).bytes(64), np.uint8)
        questions = []
        for row in (77, 300):
            bits = drawn.copy()
            bits[row >> 3] ^= np.uint8(1 << (row & 7))
            questions.append(bits.tobytes())
        return self.run(questions[0], questions[1], known=77, truth=300)
