"""The outcome of a suppression: which cells are withheld, what that costs, what is proven."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from discreet.audit.intervals import Audit
from discreet.report import Report

__all__ = ["Pattern"]


@dataclasses.dataclass(frozen=True)
class Pattern(Report):
    """Which cells of a table are withheld so that no sensitive one can be inferred.

    `status` has an entry of `Status` for every cell. `cost` and `bound` are in terms of the
    objective and of secondaries only; `gap` is how much less than `cost` might be possible, as a
    part of it, and `optimal` that nothing cheaper is.
    """

    objective: str
    effort: str
    attacker: str
    primaries: int
    secondaries: int
    #: Sum of the absolute values of the secondaries.
    suppressed_value: float
    cost: float
    bound: float | None
    optimal: bool
    #: Linear-programming pivots: work in a unit that is the same on every machine.
    work: int
    audit: Audit = dataclasses.field(repr=False)
    status: npt.NDArray[np.int8] = dataclasses.field(repr=False)

    @property
    def gap(self) -> float | None:
        """The part of the cost that might be saved at most; none where nothing is proven."""
        if self.bound is None:
            return None
        return 0.0 if self.cost <= 0 else max(0.0, (self.cost - self.bound) / self.cost)

    @property
    def withheld(self) -> npt.NDArray[np.bool_]:
        """Which cells are not published."""
        return self.status > 0
