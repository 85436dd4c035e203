"""Controlled rounding."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np
from scipy import sparse

from discreet.audit.solver import Solution, solve_integer
from discreet.data.table import Bools, Floats, Table
from discreet.errors import InfeasibleError
from discreet.progress import Progress, silent
from discreet.randomness import Randomness
from discreet.registry import parameter
from discreet.tables.methods._base import (
    Protected,
    TableMethod,
    changed,
    floor_of,
    is_total,
    is_whole,
    rounding_base,
)

__all__ = ["ControlledRounding"]


@dataclasses.dataclass(frozen=True)
class ControlledRounding(TableMethod):
    """Rounds every cell to an adjacent multiple of a base so that totals still add up.

    Zero-restricted: a multiple of the base stays as it is, every other cell goes to the multiple
    just below or just above, and of all such tables the closest to the truth is taken. Tables of
    three and more attributes do not always have one; then totals (never single cells, never
    zeros) may move a multiple further, in as few cells as possible, and the facts say how many.

    Examples
    --------
    >>> import pandas as pd
    >>> from discreet.data.table import Table
    >>> cells = pd.DataFrame({"sector": ["Total", "IT", "Fin", "HC"], "value": [16, 7, 3, 6]})
    >>> table = Table.from_cells(cells, by=["sector"], value="value", statistic="count")
    >>> ControlledRounding(5).hide(table, rng=Randomness.seeded(1)).value.tolist()
    [15.0, 5.0, 5.0, 5.0]
    """

    name: ClassVar[str] = "controlled-rounding"
    reference: ClassVar[str] = "Cox (1987), JASA 82; Salazar-González (2006), Math. Prog. 105"
    needs_rules: ClassVar[bool] = False

    base: float | None = parameter(
        None, help="published values are multiples of it; 5 for counts", above=0
    )
    time_limit: float = parameter(
        60.0, help="seconds after which the best table found is taken", above=0
    )
    gap: float = parameter(
        0.001, help="relative distance from the closest table that is good enough", low=0, below=1
    )

    def hide(self, table: Table, *, rng: Randomness, progress: Progress = silent) -> Protected:
        """Return the closest additive table of multiples."""
        table.require_additive()
        base = rounding_base(table, self.base)
        quotient = table.value / base
        nearest = np.round(quotient)
        # Values carry ten digits or so: a multiple in all but the last of them is a multiple.
        exact = np.abs(quotient - nearest) <= 1e-9 * np.maximum(1.0, np.abs(quotient))
        low = np.where(exact, nearest, np.floor(quotient))
        high = np.where(exact, nearest, np.ceil(quotient))
        total = is_total(table) & (table.value != 0)
        # First nobody may leave the adjacent multiples; then totals that are multiples may move by
        # one base, which keeps them within it; only then any total, further and further.
        stages = [(total & False, 0), (total & exact, 1), (total, 1), (total, 2), (total, 4)]
        for stage, (may_leave, extra) in enumerate(stages):
            progress("rounding", stage, len(stages))
            # Nothing that everybody knows to be at least zero is published below it.
            down = np.minimum(extra, low) if floor_of(table) == 0 else np.full(len(low), extra)
            reach = np.where(may_leave, down, 0.0), np.where(may_leave, extra, 0.0)
            rounded = self._closest(table, quotient, (low, high), reach)
            if rounded is not None:
                break
        else:
            raise InfeasibleError(
                f"no additive table of multiples of {base:g} was found within "
                f"{self.time_limit:g} s",
                code="rounding-infeasible",
                hint="allow more time, take another base, or use random-rounding",
            )
        progress("rounding", len(stages), len(stages))
        multiples, proven = rounded
        left = (multiples < low) | (multiples > high)
        return _protected(table, base, multiples, left, extra, proven)

    def _closest(
        self,
        table: Table,
        quotient: Floats,
        adjacent: tuple[Floats, Floats],
        reach: tuple[Floats, Floats],
    ) -> tuple[Floats, bool] | None:
        """Solve for a 0/1 step up from the lower multiple, and steps beyond at a high price."""
        low, high = adjacent
        free, falls, rises = (np.flatnonzero(side > 0) for side in (high - low, *reach))
        equations = table.equations.tocsc()
        sizes = len(free), len(falls), len(rises)
        price = float(len(free) + 1)
        offset = -(equations @ low)
        found: Solution = solve_integer(
            sparse.hstack([equations[:, free], -equations[:, falls], equations[:, rises]]).tocsc(),
            rows=(offset, offset),
            columns=(
                np.zeros(sum(sizes)),
                np.concatenate([np.ones(sizes[0]), reach[0][falls], reach[1][rises]]),
            ),
            # A step up costs what the upper multiple is further from the truth than the lower.
            cost=np.concatenate([1 - 2 * (quotient - low)[free], np.full(sum(sizes[1:]), price)]),
            integer=np.ones(sum(sizes), dtype=bool),
            time_limit=self.time_limit / 2,
            gap=self.gap,
        )
        if not found.x.size:
            return None
        step, fall, rise = np.split(np.round(found.x), np.cumsum(sizes)[:-1])
        multiples = low.copy()
        multiples[free] += step
        multiples[falls] -= fall
        multiples[rises] += rise
        return multiples, found.status == "optimal"


def _protected(
    table: Table, base: float, multiples: Floats, left: Bools, extra: int, proven: bool
) -> Protected:
    rounded = multiples * base
    whole = is_whole(table) and float(base).is_integer()
    # In a table of whole numbers the distance to an adjacent multiple is at most base − 1.
    reach = np.full(len(table), base - 1 if whole else base)
    reach[is_total(table)] += extra * base
    facts = {"base": base, "moved_beyond_adjacent": int(left.sum()), "optimal": proven}
    return Protected(
        table,
        rounded,
        changed(table),
        np.maximum(rounded - reach, floor_of(table)),
        rounded + reach,
        facts=facts,
    )
