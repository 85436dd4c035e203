"""What protection costs: how much of a table is withheld or changed. For the curator."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from discreet.data.table import Status
from discreet.report import Report
from discreet.tables.methods._base import Protected

__all__ = ["TableLoss", "measure_loss"]


@dataclasses.dataclass(frozen=True)
class TableLoss(Report):
    """What a release loses against the true table; exact sums, so not for publication.

    `public` leaves out what a single withheld value could be computed from.
    """

    cells: int
    sensitive: int
    secondaries: int
    #: Cells that are not published, or as an interval.
    withheld: int
    #: Cells whose published value differs from the true one.
    changed: int
    #: Sum of the values of the secondary cells, in size.
    suppressed_value: float
    #: The same weighted by the cells' costs; equal to their number without costs.
    suppressed_cost: float
    #: Sum of the distances between published and true values.
    distance: float
    weighted_distance: float
    largest_distance: float
    #: Distance over the sum of the values, of the cells that are published.
    relative_distance: float
    #: Largest gap between a published total and the sum of its published parts.
    additivity_gap: float
    #: Detail given up by recoding: cells of the table before, less cells after.
    merged: int = 0

    def public(self) -> dict[str, Any]:
        """Return what may be published of it: what can be counted in the published cells anyway.

        How many withheld cells are sensitive, or how many values happen to be unchanged, narrows
        down which.
        """
        return {name: getattr(self, name) for name in ("cells", "withheld", "merged")}


def measure_loss(protected: Protected, *, before: int | None = None) -> TableLoss:
    """Compare what is published with the truth."""
    table, value = protected.table, protected.value
    shown = ~protected.withheld
    secondary = protected.status == Status.SECONDARY
    size = np.abs(table.value)
    cost = np.ones(len(table)) if table.cost is None else table.cost
    gap = np.abs(value - table.value)[shown]
    whole = np.abs(protected.table.equations @ np.where(shown, value, 0.0))
    # An equation says something of the published numbers only where all of them are published.
    complete = (abs(table.equations) @ (~shown).astype(float)) == 0
    total = float(size[shown].sum())
    return TableLoss(
        cells=len(table),
        sensitive=int((table.status == Status.PRIMARY).sum()) if table.status is not None else 0,
        secondaries=int(secondary.sum()),
        withheld=int((~shown).sum()),
        changed=int((gap > 1e-9 * np.maximum(1.0, size[shown])).sum()),
        suppressed_value=float(size[secondary].sum()),
        suppressed_cost=float(cost[secondary].sum()),
        distance=float(gap.sum()),
        weighted_distance=float((cost[shown] * gap).sum()),
        largest_distance=float(gap.max(initial=0.0)),
        relative_distance=float(gap.sum()) / total if total else 0.0,
        additivity_gap=float(whole[complete].max(initial=0.0)),
        merged=0 if before is None else before - len(table),
    )
