"""Two encrypted questions under one secret."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np

from discreet.attacks._base import Attack, Attacked, AttackReport
from discreet.registry import parameter

__all__ = ["ReusedSecret"]


@dataclasses.dataclass(frozen=True)
class ReusedSecret(Attack):
    """Subtract two questions encrypted by learning with errors: a secret used twice falls out.

    What is left is small noise, and the scale at the column that the second question selects.

    Examples
    --------
    >>> first = np.array([5, 2**32 - 3, 7], dtype=np.uint32)
    >>> second = first + np.array([2, 2**24, 1], dtype=np.uint32)
    >>> ReusedSecret().run(first.tobytes(), second.tobytes(), truth=1).succeeded
    True
    """

    name: ClassVar[str] = "reused-secret"
    reference: ClassVar[str] = "Regev (2005), On lattices, learning with errors, STOC"
    attacks: ClassVar[Attacked] = "view"

    scale: int = parameter(1 << 24, help="what encrypts a one", low=2, high=1 << 31)

    def run(self, first: bytes, second: bytes, truth: int) -> AttackReport:
        """Conclude the column of the second question, if all others differ by noise alone."""
        rest = (np.frombuffer(second, np.uint32) - np.frombuffer(first, np.uint32)).view(np.int32)
        ones = np.rint(rest / self.scale)
        noise = np.abs(rest - ones * self.scale).max()
        selected = np.flatnonzero(ones > 0)
        # Fresh secrets leave uniform words, which are this near to a multiple once in a thousand.
        is_small = noise < self.scale / 1024
        place = float(selected[0]) if is_small and selected.size == 1 else None
        return AttackReport(self.name, 2, 0, place, place, place == truth)

    def control(self) -> AttackReport:
        """Attack a user who draws fresh noise and one secret for all look-ups."""
        drawn = np.random.default_rng(1)
        masks = drawn.integers(0, 1 << 32, 256, dtype=np.uint64)
        questions = []
        for column in (9, 200):
            noise = np.rint(drawn.normal(0, min(6.4, self.scale / 2**14), 256)).astype(np.int64)
            words = masks + noise.view(np.uint64)
            words[column] += np.uint64(self.scale)
            questions.append(words.astype(np.uint32).tobytes())
        return self.run(questions[0], questions[1], truth=200)
