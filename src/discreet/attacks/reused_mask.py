"""Two messages under one mask."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from discreet.attacks._base import Attack, Attacked, AttackReport

__all__ = ["ReusedMask"]


@dataclasses.dataclass(frozen=True)
class ReusedMask(Attack):
    """Subtract two masked messages of one sender: a mask that is used twice falls out.

    Whoever knows what the first message hid, because it was an earlier month that was published, or
    nothing at all, then reads the second.

    Examples
    --------
    >>> mask = np.array([2**60 + 5], dtype=np.uint64)
    >>> first, second = mask + np.uint64(100), mask + np.uint64(142)
    >>> ReusedMask().run(first, second, known=100, truth=142).succeeded
    True
    """

    name: ClassVar[str] = "reused-mask"
    reference: ClassVar[str] = "Beaver (1997), Commodity-based cryptography, STOC"
    attacks: ClassVar[Attacked] = "view"

    def run(
        self,
        first: npt.NDArray[np.uint64],
        second: npt.NDArray[np.uint64],
        known: int,
        truth: int,
    ) -> AttackReport:
        """Conclude what the second message hides in its first word."""
        found = float((second - first).view(np.int64).ravel()[0] + known)
        return AttackReport(self.name, 2, 0, found, found, found == truth)

    def control(self) -> AttackReport:
        """Attack a sender that draws its mask once."""
        mask = np.frombuffer(np.random.default_rng(1).bytes(8), dtype=np.uint64)
        return self.run(mask + np.uint64(7), mask + np.uint64(950), known=7, truth=950)
