"""The outcome of a suppression: which cells are withheld, what that costs, what is proven."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from discreet.audit.intervals import Audit, audit_table
from discreet.data.table import Status, Table
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
    #: Whether it excludes no count also for whoever has the program; none where that is not judged.
    deniable: bool | None = None

    @property
    def gap(self) -> float | None:
        """The part of the cost that might be saved at most; none where nothing is proven."""
        if self.bound is None:
            return None
        return 0.0 if self.cost <= 0 else max(0.0, (self.cost - self.bound) / self.cost)

    def widened(self, table: Table, withheld: npt.NDArray[np.bool_]) -> Pattern:
        """Return the pattern with more cells withheld, which is as safe: audited again."""
        if not (withheld & ~self.withheld).any():
            return self
        status = np.where(withheld & (self.status == 0), np.int8(Status.SECONDARY), self.status)
        secondary = status == Status.SECONDARY
        audit = audit_table(table, published=status, attacker=self.attacker)
        return dataclasses.replace(
            self,
            secondaries=int(secondary.sum()),
            suppressed_value=float(np.abs(table.value[secondary]).sum()),
            bound=None,
            optimal=False,
            audit=audit,
            status=status,
        )

    @property
    def withheld(self) -> npt.NDArray[np.bool_]:
        """Which cells are not published."""
        return self.status > 0
