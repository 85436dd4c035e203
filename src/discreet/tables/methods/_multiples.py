"""Additive tables of multiples near a table: by integer programming, or by annealing.

Tables of two attributes round at the root of an integer program. Three and more attributes with
hierarchies put dozens of totals above every single cell, and the program does not end; there
single cells are moved up and down at random, cooling, until every total fits.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy import sparse

from discreet.audit.deviations import independent
from discreet.audit.solver import solve_integer
from discreet.data.table import Bools, Floats, Ints, Table
from discreet.tables.methods._base import is_total

__all__ = ["ATTEMPTS", "Multiples", "Rounded"]

#: Rounds of annealing per single cell that can move, attempt by attempt.
_ROUNDS = (6_000, 15_000, 40_000)
#: How often annealing may be tried.
ATTEMPTS = len(_ROUNDS)
#: Most rounds in one attempt.
_MOST = 200_000_000
#: Heat at the start and at the end.
_HEAT = (0.3, 0.07)
#: What it costs that a total leaves its adjacent multiples within the base, and beyond.
_LEAVE, _WRONG = 0.2, 1.0


@dataclasses.dataclass(frozen=True, eq=False)
class Rounded:
    """A table of multiples, and whether it is proven to be the closest."""

    multiples: Floats
    optimal: bool


@dataclasses.dataclass(frozen=True, eq=False)
class Multiples:
    """Between which multiples each cell may end up: next to its value, or one further off.

    `slack` cells are totals that are multiples themselves: one step more keeps them within the base.
    """

    table: Table
    quotient: Floats
    low: Floats
    high: Floats
    slack: Bools

    @classmethod
    def of(cls, table: Table, base: float) -> Multiples:
        """Read off the adjacent multiples of every cell."""
        quotient = table.value / base
        nearest = np.round(quotient)
        # Values carry ten digits or so: a multiple in all but the last of them is a multiple.
        exact = np.abs(quotient - nearest) <= 1e-9 * np.maximum(1.0, np.abs(quotient))
        low = np.where(exact, nearest, np.floor(quotient))
        high = np.where(exact, nearest, np.ceil(quotient))
        return cls(table, quotient, low, high, exact & (nearest != 0) & is_total(table))

    def left(self, multiples: Floats) -> Bools:
        """Return which cells are not next to their value."""
        return (multiples < self.low) | (multiples > self.high)

    def program(self, seconds: float, gap: float, *, slack: bool) -> tuple[Rounded | None, bool]:
        """Solve for steps up from the lower multiple; also say whether none is proven to exist.

        With `slack` multiples may move one further, at a price above any gain in closeness.
        """
        free = np.flatnonzero(self.high > self.low)
        moving = np.flatnonzero(self.slack) if slack else np.zeros(0, dtype=np.int64)
        equations = self._equations.tocsc()
        size, extra = len(free), len(moving)
        offset = -(equations @ self.low)
        found = solve_integer(
            sparse.csc_matrix(
                sparse.hstack([equations[:, free], -equations[:, moving], equations[:, moving]])
            ),
            rows=(offset, offset),
            columns=(np.zeros(size + 2 * extra), np.ones(size + 2 * extra)),
            # A step up costs what the upper multiple is further from the truth than the lower.
            cost=np.concatenate(
                [1 - 2 * (self.quotient - self.low)[free], np.full(2 * extra, size + 1.0)]
            ),
            integer=np.ones(size + 2 * extra, dtype=bool),
            time_limit=seconds,
            gap=gap,
        )
        if not found.x.size:
            return None, found.status == "infeasible"
        up, fall, rise = np.split(np.round(found.x), [size, size + extra])
        multiples = self.low.copy()
        multiples[free] += up
        multiples[moving] += rise - fall
        return Rounded(multiples, found.status == "optimal"), False

    @property
    def _equations(self) -> sparse.csr_matrix:
        return independent(self.table.equations, self.table.value != 0)

    def anneal(self, attempt: int) -> Floats | None:
        """Move single cells up and down until every total fits; none if it does not come to that.

        Each attempt takes longer than the last. The random numbers are always the same.
        """
        system = _System.of(self.table)
        if system is None:
            return None
        from discreet.tables.methods._annealing import anneal

        # Whole numbers: sums of steps are exact, however large the table.
        low, high = (side.astype(np.int64) for side in (self.low, self.high))
        single = system.single
        # Single cells stay next to their values; only totals leave.
        movable = np.flatnonzero(high[single] > low[single])
        movable = movable[np.argsort(self.table.keys[single[movable]])]
        cells = single[movable]
        draw = np.random.default_rng(attempt)
        x = low[cells] + (draw.random(len(cells)) < (self.quotient - self.low)[cells])
        step = low.copy()
        step[cells] = x
        step = np.round(system.totals @ step[single]).astype(np.int64)
        above, sums, parts = system.around(movable)
        anneal(
            *above,
            *sums,
            *parts,
            self.table.keys[cells],
            *(low[cells], high[cells], x, step),
            *(low, high, self.slack),
            (_LEAVE, _WRONG),
            _HEAT,
            int(min(_ROUNDS[attempt] * len(cells) + 1, _MOST)),
            attempt,
        )
        wrong = (step < self.low - self.slack) | (step > self.high + self.slack)
        return None if wrong.any() else step.astype(np.float64)


@dataclasses.dataclass(frozen=True, eq=False)
class _System:
    """The cells that are not totals, and how all cells are sums of them."""

    single: Ints
    #: (cells, single cells): 1 where a single cell is part of a cell.
    totals: sparse.csr_matrix
    equations: sparse.csr_matrix

    @classmethod
    def of(cls, table: Table) -> _System | None:
        """Return the system; none where equations also bind single cells to each other."""
        equations = table.equations.tocsr()
        entries = equations.tocoo()
        heads = entries.data > 0
        total = np.full(equations.shape[0], -1, dtype=np.int64)
        total[entries.row[heads]] = entries.col[heads]
        defining = np.full(len(table), -1, dtype=np.int64)
        order = np.argsort(-np.diff(equations.indptr), kind="stable")
        defining[total[order]] = order
        single = np.flatnonzero(defining < 0)
        rows = np.flatnonzero(defining >= 0)
        parts = equations[defining[rows]].tocoo()
        below = parts.data < 0
        shape = (len(table), len(table))
        step = sparse.csr_matrix(
            (np.ones(int(below.sum())), (rows[parts.row[below]], parts.col[below])), shape=shape
        )
        own = sparse.csr_matrix(
            (np.ones(len(single)), (single, np.arange(len(single)))),
            shape=(len(table), len(single)),
        )
        totals = own
        while True:  # once per level of totals
            deeper = (step @ totals + own).tocsr()
            if abs(deeper - totals).max() == 0:
                break
            totals = deeper
        if abs(equations @ totals).max() > 0.5:
            return None
        return cls(single, totals, equations)

    def around(
        self, movable: Ints
    ) -> tuple[tuple[Ints, Ints], tuple[Ints, Ints], tuple[Ints, Ints]]:
        """Return the totals above, the equations of, and the movable cells in each equation."""
        above = self.totals[:, movable].T.tocsr()
        above.sort_indices()
        parts = self.equations[:, self.single[movable]].tocsr()
        parts = parts[np.diff(parts.indptr) > 1]
        sums = parts.T.tocsr()
        first, second, third = (
            (matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64))
            for matrix in (above, sums, parts)
        )
        return first, second, third
