"""Published intervals."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np
from scipy import sparse

from discreet.audit.solver import LinearProgram
from discreet.data.table import Floats, Status, Table
from discreet.errors import InfeasibleError
from discreet.progress import Progress, silent
from discreet.randomness import Randomness
from discreet.registry import parameter
from discreet.tables.methods._base import (
    Protected,
    TableMethod,
    floor_of,
    is_total,
    is_whole,
    round_up,
    sensitive,
    with_levels,
)

__all__ = ["Intervals"]


@dataclasses.dataclass(frozen=True)
class Intervals(TableMethod):
    """Publishes an interval in place of each sensitive value, and of the values that would narrow it.

    Partial suppression: instead of withholding cells wholly, each gets the narrowest interval with
    which every sensitive cell can still take both ends of its protection interval. For one
    sensitive cell after the other a linear program finds the cheapest widening. An interval is as
    wide as four times that, at least, and reaches from one round number to another: somebody who
    knows all of this knows that the value lies in the middle half, and no more.

    Examples
    --------
    >>> import pandas as pd
    >>> from discreet.data.table import Table
    >>> cells = pd.DataFrame(
    ...     {"sector": ["Total", "IT", "Fin", "HC"], "value": [63.0, 11, 21, 31], "p": [0, 1, 0, 0]}
    ... )
    >>> cells["level"] = 3.0
    >>> table = Table.from_cells(
    ...     cells, by=["sector"], value="value", primary="p", lower="level", upper="level"
    ... )
    >>> shown = Intervals().hide(table, rng=Randomness.seeded(1))
    >>> float(shown.lower[1]), float(shown.upper[1]), int(shown.withheld.sum())
    (0.0, 20.0, 2)
    """

    name: ClassVar[str] = "intervals"
    reference: ClassVar[str] = "Fischetti and Salazar-González (2003), Partial cell suppression"

    relative: bool = parameter(
        False, help="count widths in percent, so that large cells are widened before small ones"
    )

    def hide(self, table: Table, *, rng: Randomness, progress: Progress = silent) -> Protected:
        """Return values where they can stay, intervals elsewhere."""
        table.require_additive()
        table = with_levels(table, self.name)
        fall, rise = self._widths(table, progress)
        widened = (fall > 0) | (rise > 0)
        # Of whole numbers several must remain, however small the levels are.
        smallest = 2.0 if is_whole(table, strictly=True) else 1e-9
        lower, upper, steps = table.value.copy(), table.value.copy(), np.zeros(len(table))
        for cell in np.flatnonzero(widened):
            # Which multiple of the step is nearest does not tell where around it the value is; the
            # ends of what it needs, rounded outwards, would: of counts they leave one possibility.
            step = round_up(max(2 * fall[cell], 2 * rise[cell], smallest))
            middle = np.floor(table.value[cell] / step + 0.5) * step
            lower[cell], upper[cell], steps[cell] = middle - step, middle + step, step
        lower = np.maximum(lower, floor_of(table))
        status = np.where(widened, np.int8(Status.SECONDARY), np.int8(Status.SAFE))
        status[sensitive(table)] = Status.PRIMARY
        value = np.where(widened, np.nan, table.value)
        return Protected(
            table,
            value,
            status,
            lower,
            upper,
            prints_intervals=True,
            steps=steps,
        )

    def _widths(self, table: Table, progress: Progress) -> tuple[Floats, Floats]:
        """Return how far below and above its value each cell's interval must reach."""
        assert table.lower is not None
        assert table.upper is not None
        size = len(table)
        most = table.value if floor_of(table) == 0 else np.full(size, np.inf)
        # Zeros are known to be zero: they stay.
        room = np.where(table.value == 0, 0.0, most), np.where(table.value == 0, 0.0, np.inf)
        fall, rise = np.zeros(size), np.zeros(size)
        weight = self._weight(table)
        program = self._program(table, weight)
        cells = np.flatnonzero(sensitive(table))
        # The greatest need first: what it widens serves the others.
        cells = cells[np.argsort(-table.upper[cells], kind="stable")]
        everything = np.arange(size, dtype=np.int64)
        for number, cell in enumerate(cells):
            progress("widening intervals", number, len(cells))
            for move in (float(table.upper[cell]), -float(table.lower[cell])):
                low, high = -fall.copy(), rise.copy()
                low[cell] = high[cell] = move
                program.set_bounds(everything, low, high)
                extra_up, extra_down = room[1] - rise, np.maximum(room[0] - fall, 0.0)
                extra_up[cell] = extra_down[cell] = 0.0
                program.set_bounds(everything + size, np.zeros(size), extra_up)
                program.set_bounds(everything + 2 * size, np.zeros(size), extra_down)
                found = program.solve()
                if found.status != "optimal":
                    raise self._infeasible(table, int(cell))
                base, up, down = np.split(found.x, 3)
                change = base + up - down
                change[np.abs(change) < 1e-9 * max(1.0, abs(move))] = 0.0
                touched = np.flatnonzero((change != 0) & (fall == 0) & (rise == 0))
                fall, rise = np.maximum(fall, -change), np.maximum(rise, change)
                # Better one wide interval than two narrow ones: what is widened is cheaper now.
                half = np.tile(weight[touched] / 2, 2)
                program.set_cost(np.concatenate([size + touched, 2 * size + touched]), half)
        return fall, rise

    def _weight(self, table: Table) -> Floats:
        size = np.maximum(np.abs(table.value), 1.0)
        weight = 1 / size if self.relative else np.ones(len(table))
        # Readers look at totals first: they are widened last.
        return np.where(is_total(table), 3 * weight, weight)

    def _program(self, table: Table, weight: Floats) -> LinearProgram:
        """Columns: change within the intervals so far, and widening them up and down at a price."""
        size = len(table)
        equations = table.equations
        matrix = sparse.csc_matrix(sparse.hstack([equations, equations, -equations]))
        zero = np.zeros(equations.shape[0])
        return LinearProgram(
            matrix,
            rows=(zero, zero),
            columns=(np.zeros(3 * size), np.zeros(3 * size)),
            cost=np.concatenate([np.zeros(size), weight, weight]),
        )

    def _infeasible(self, table: Table, cell: int) -> InfeasibleError:
        name = " × ".join(table.labels(cell))
        return InfeasibleError(
            f"no intervals protect the cell {name}: too few cells around it are not zero",
            code="intervals-infeasible",
            hint="merge categories with recoding, or use controlled-tabular-adjustment",
            cells=[name],
        )
