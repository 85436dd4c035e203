"""Controlled tabular adjustment."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np

from discreet.audit.rules import Rule
from discreet.audit.sensitivity import mark
from discreet.data.table import Floats, Table
from discreet.errors import InfeasibleError
from discreet.progress import Progress, silent
from discreet.randomness import Randomness
from discreet.registry import parameter
from discreet.tables.methods._adjustment import Adjusted, Adjustment
from discreet.tables.methods._base import (
    Protected,
    TableMethod,
    alike,
    changed,
    either_way,
    floor_of,
    is_total,
    is_whole,
    kept_cells,
    sensitive,
    with_levels,
)
from discreet.tables.methods._keys import draws, read_key

__all__ = ["ControlledTabularAdjustment"]


@dataclasses.dataclass(frozen=True)
class ControlledTabularAdjustment(TableMethod):
    """Moves every sensitive cell by at least its protection level and keeps totals adding up.

    Which way each sensitive cell goes is drawn with a secret key, and how far a magnitude moves at
    least: between one and three times its protection level, so that somebody who knows this, and which
    way it went, is left with an interval of more than one level. Every count below a minimum
    frequency n goes to 0 or to n at least, since the nearer one would tell the count. The prices of
    moving other cells are drawn as well. A distance and a choice that anybody can repeat would leave
    few values. Of all additive tables that keep
    these distances the closest is taken: by mixed integer programming where it ends in time, else by
    fixing which way cells go and improving group by group. Zeros stay zero, and nothing known to
    be positive turns negative.

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
    >>> bool(3 <= moved[1] <= 10 and moved.sum() == 2 * moved[1]), float(moved[0])
    (True, 0.0)
    """

    name: ClassVar[str] = "controlled-tabular-adjustment"
    reference: ClassVar[str] = "Dandekar and Cox (2002); Castro (2006), EJOR 171"
    risk: ClassVar[str] = "distance"
    is_random: ClassVar[bool] = True
    #: Up to this many sensitive cells one integer program is tried first.
    exact_up_to: ClassVar[int] = 400

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
    key: str | None = parameter(
        None,
        help="file with the secret key: the same key adjusts the same table alike",
        file="secret",
    )

    def mark(self, table: Table, rules: Sequence[Rule]) -> Table:
        """Return the table with its sensitive cells marked, small counts with the same ends."""
        return alike(mark(table, rules), rules, lowest=0)

    def hide(self, table: Table, *, rng: Randomness, progress: Progress = silent) -> Protected:
        """Return the closest table found."""
        table.require_additive()
        table = with_levels(table, self.name)
        integer = is_whole(table) if self.integer is None else self.integer
        key = read_key(self.key, rng)
        found = self._adjusted(table, key, integer=integer, progress=progress)
        value = _tidy(table.value + found.change, integer)
        gap = 1 - found.bound / found.objective if found.objective > 0 else 0.0
        return Protected(
            table,
            value,
            changed(table),
            grid=1.0 if integer else None,
            facts={"integer": integer},
            # Over a single changed cell the objective would be its change; that a table is the
            # closest, or nearly, would exclude others.
            confidential={
                "objective": found.objective,
                "bound": found.bound,
                "gap": gap,
                "optimal": found.optimal,
            },
        )

    def _adjusted(self, table: Table, key: bytes, *, integer: bool, progress: Progress) -> Adjusted:
        """Return the closest table with drawn distances; with the levels where there is none."""
        assert table.lower is not None
        assert table.upper is not None
        lower, upper = either_way(table.lower, table.upper)
        if integer:
            lower, upper = np.ceil(lower - 1e-9), np.ceil(upper - 1e-9)
        # Counts go to the ends that all of them share.
        counts = table.statistic == "count"
        extra = np.zeros(len(table)) if counts else draws(table, key, b"discreet move")
        problem = Adjustment(
            table=table,
            equations=table.equations.tocsc(),
            sensitive=np.flatnonzero(sensitive(table)),
            lower=_farther(lower, extra, integer),
            upper=_farther(upper, extra, integer),
            weight=self._weight(table) * (1 + draws(table, key, b"discreet weight", of="codes")),
            room=self._room(table),
            integer=integer,
            time_limit=self.time_limit,
            exact_up_to=self.exact_up_to,
        )
        squared = self.distance == "squared"
        # A way that the search chooses anybody can find out by searching.
        drawn = dataclasses.replace(problem, room=_one_way(problem, table, key))
        nearer = dataclasses.replace(problem, lower=lower, upper=upper)
        for one in (drawn, problem):
            try:
                return one.solve(squared=squared, progress=progress)
            except InfeasibleError:
                continue
        return nearer.solve(squared=squared, progress=progress)

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
        fixed = ((size == 0) & ~sensitive(table)) | kept_cells(table)
        if self.totals == "fixed":
            fixed |= is_total(table)
        elif self.totals == "grand":
            fixed |= (table.codes == 0).all(axis=1)
        fall[fixed] = 0.0
        rise[fixed] = 0.0
        return fall, rise


def _one_way(problem: Adjustment, table: Table, key: bytes) -> tuple[Floats, Floats]:
    """Return how far cells may fall and rise where single cells go the way that is drawn.

    Up with the probability with which it leaves their expectation as it is. Totals follow.
    """
    fall, rise = (side.copy() for side in problem.room)
    cells = problem.sensitive[~is_total(table)[problem.sensitive]]
    can_fall = fall[cells] >= problem.lower[cells]
    can_rise = rise[cells] >= problem.upper[cells]
    chance = problem.lower[cells] / (problem.lower[cells] + problem.upper[cells])
    up = draws(table, key, b"discreet way")[cells] < chance
    fall[cells[can_rise & (up | ~can_fall)]] = 0.0
    rise[cells[can_fall & ~up]] = 0.0
    return fall, rise


def _farther(level: Floats, drawn: Floats, integer: bool) -> Floats:
    """Return a distance between one and three levels; of whole numbers up to one more."""
    if integer:
        return np.asarray(level + np.floor(drawn * (2 * level + 1)) * (level > 0))
    return np.asarray(level * (1 + 2 * drawn))


def _tidy(value: Floats, integer: bool) -> Floats:
    """Return the values without the solver's rounding errors."""
    if integer:
        return np.asarray(np.round(value))
    return np.where(np.abs(value) < 1e-9, 0.0, np.round(value, 9))
