"""Controlled tabular adjustment."""

from __future__ import annotations

import dataclasses
from typing import ClassVar, Literal

import numpy as np

from discreet.data.table import Floats, Table
from discreet.progress import Progress, silent
from discreet.randomness import Randomness
from discreet.registry import parameter
from discreet.tables.methods._adjustment import Adjustment
from discreet.tables.methods._base import (
    Protected,
    TableMethod,
    changed,
    floor_of,
    is_total,
    is_whole,
    sensitive,
    told_gap,
    with_levels,
)

__all__ = ["ControlledTabularAdjustment"]


@dataclasses.dataclass(frozen=True)
class ControlledTabularAdjustment(TableMethod):
    """Moves every sensitive cell by at least its protection level and keeps totals adding up.

    Of all additive tables in which each sensitive cell lies at or outside the ends of its
    protection interval the closest to the truth is taken: by mixed integer programming where it
    ends in time (the facts then say that it is optimal), else by fixing which way cells go and
    improving group by group. Zeros stay zero, and nothing known to be positive turns negative.

    Examples
    --------
    >>> import pandas as pd
    >>> from discreet.data.table import Table
    >>> cells = pd.DataFrame(
    ...     {"sector": ["Total", "IT", "Fin", "HC"], "value": [60.0, 10, 20, 30], "p": [0, 1, 0, 0]}
    ... )
    >>> cells["level"] = 3.0
    >>> table = Table.from_cells(
    ...     cells, by=["sector"], value="value", primary="p", lower="level", upper="level"
    ... )
    >>> adjusted = ControlledTabularAdjustment(totals="fixed").hide(table, rng=Randomness.seeded(1))
    >>> moved = abs(adjusted.value - table.value)
    >>> float(moved[1]), float(moved.sum()), float(moved[0])
    (3.0, 6.0, 0.0)
    """

    name: ClassVar[str] = "controlled-tabular-adjustment"
    reference: ClassVar[str] = "Dandekar and Cox (2002); Castro (2006), EJOR 171"
    risk: ClassVar[str] = "distance"

    distance: Literal["absolute", "squared"] = parameter(
        "absolute", help="what is minimised: the sum of absolute or of squared changes"
    )
    weights: Literal["equal", "cost", "inverse"] = parameter(
        "equal", help="of the changes: equal, the cells' costs, or one over the value"
    )
    totals: Literal["free", "grand", "fixed"] = parameter(
        "free", help="what stays as it is: nothing, the grand total, or every total"
    )
    integer: bool | None = parameter(
        None, help="publish whole numbers; by default where the table has only whole numbers"
    )
    time_limit: float = parameter(30.0, help="seconds for the search", above=0)

    def hide(self, table: Table, *, rng: Randomness, progress: Progress = silent) -> Protected:
        """Return the closest table found."""
        table.require_additive()
        table = with_levels(table, self.name)
        integer = is_whole(table) if self.integer is None else self.integer
        assert table.lower is not None  # the contract of `hide`
        assert table.upper is not None
        # What cannot fall, such as a zero, is not protected by a fall of nothing.
        lower = np.where(table.lower > 0, table.lower, table.upper)
        found = Adjustment(
            table=table,
            equations=table.equations.tocsc(),
            sensitive=np.flatnonzero(sensitive(table)),
            lower=np.ceil(lower - 1e-9) if integer else lower,
            upper=np.ceil(table.upper - 1e-9) if integer else table.upper,
            weight=self._weight(table),
            room=self._room(table),
            integer=integer,
            time_limit=self.time_limit,
        ).solve(squared=self.distance == "squared", progress=progress)
        value = _tidy(table.value + found.change, integer)
        gap = 1 - found.bound / found.objective if found.objective > 0 else 0.0
        facts = {"optimal": found.optimal, "gap_at_most": told_gap(gap), "integer": integer}
        return Protected(
            table,
            value,
            changed(table),
            grid=1.0 if integer else None,
            facts=facts,
            # Over a single changed cell the objective would be its change.
            confidential={"objective": found.objective, "bound": found.bound, "gap": gap},
        )

    def _weight(self, table: Table) -> Floats:
        if self.weights == "cost" and table.cost is not None:
            return np.maximum(table.cost, 1e-9)
        if self.weights == "inverse":
            return 1 / np.maximum(np.abs(table.value), 1.0)
        return np.ones(len(table))

    def _room(self, table: Table) -> tuple[Floats, Floats]:
        """Return how far each cell may fall and rise."""
        size = np.abs(table.value)
        fall = np.full(len(table), np.inf) if floor_of(table) < 0 else table.value.copy()
        rise = np.full(len(table), np.inf)
        fixed = (size == 0) & ~sensitive(table)
        if self.totals == "fixed":
            fixed |= is_total(table)
        elif self.totals == "grand":
            fixed |= (table.codes == 0).all(axis=1)
        fall[fixed] = 0.0
        rise[fixed] = 0.0
        return fall, rise


def _tidy(value: Floats, integer: bool) -> Floats:
    """Return the values without the solver's rounding errors."""
    if integer:
        return np.asarray(np.round(value))
    return np.where(np.abs(value) < 1e-9, 0.0, np.round(value, 9))
