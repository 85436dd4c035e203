"""Fragments linked by the order of their rows."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from discreet.attacks._base import Attack, Attacked, AttackReport
from discreet.registry import parameter

__all__ = ["RecordOrder"]


@dataclasses.dataclass(frozen=True)
class RecordOrder(Attack):
    """Put the first row of one fragment beside the first of another, and so on.

    Two clouds that hold other columns of the same records in the same order need no key to join
    them. In orders of their own about one row falls beside its other half by chance.

    Examples
    --------
    >>> RecordOrder().run(np.arange(100), np.arange(100)).succeeded
    True
    """

    name: ClassVar[str] = "record-order"
    reference: ClassVar[str] = "Aggarwal et al. (2005), Two can keep a secret, CIDR"
    attacks: ClassVar[Attacked] = "files"

    share: float = parameter(0.1, help="share of the records that is many", above=0, below=1)

    def run(self, first: npt.NDArray[np.int64], second: npt.NDArray[np.int64]) -> AttackReport:
        """Link rows by their place; the true record of each row only says how many are right."""
        right = float((np.asarray(first) == np.asarray(second)).mean()) if len(first) else 0.0
        return AttackReport(self.name, len(first), 0, right, right, right > self.share)

    def control(self) -> AttackReport:
        """Attack fragments that were written as the records came."""
        return self.run(np.arange(200), np.arange(200))
