"""Additive tables of multiples near a table: by integer programming, or by search.

Tables of two attributes round at the root of an integer program. Three and more attributes with
hierarchies put dozens of totals above every single cell, and the program of the best table does
not end. Any table of adjacent multiples is then found by jumping (`_jumping`); where there is none,
or none is found, single cells move at random, cooling, until few totals are left that do not fit
(`_annealing`).
"""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy import sparse

from discreet.audit.outsider.deviations import independent
from discreet.audit.solver import solve_integer
from discreet.data.table import Bools, Floats, Ints, Table
from discreet.tables.methods._base import is_total

__all__ = ["Multiples", "Rounded"]

#: Jumps per cell that can move, and most of them.
_JUMPS, _MOST_JUMPS = 1_500, 20_000_000
#: Rounds of annealing per single cell that can move, at every heat, and most of them.
_ROUNDS, _MOST_ROUNDS = 1_200, 10_000_000
#: Heats of annealing and what it costs that a cell is further off than the base, where a total
#: at the base costs 1: first whatever fits most totals, then nothing beyond the base; or, from a
#: table where nothing is, so dear that nothing ever will.
_PHASES = ((1 / np.linspace(1.2, 3.0, 19), 1), (1 / np.linspace(2.2, 4.0, 6), 4))
_KEEPING = ((1 / np.linspace(1.0, 3.5, 19), 1_000),)
#: Share of the rounds that start from a total that does not fit.
_FOCUS = 0.9


@dataclasses.dataclass(frozen=True, eq=False)
class Rounded:
    """A table of multiples, and whether it is proven to follow the wishes best."""

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
    #: What it costs that a cell goes up; negative where it wishes to.
    price: Floats
    #: From which searches at random start.
    seed: int

    @classmethod
    def of(cls, table: Table, base: float, wishes: Floats) -> Multiples:
        """Read off the adjacent multiples of every cell; a wish below its fraction is one to go up."""
        quotient = table.value / base
        nearest = np.round(quotient)
        # Values carry ten digits or so: a multiple in all but the last of them is a multiple.
        exact = np.abs(quotient - nearest) <= 1e-9 * np.maximum(1.0, np.abs(quotient))
        low = np.where(exact, nearest, np.floor(quotient))
        high = np.where(exact, nearest, np.ceil(quotient))
        slack = exact & (nearest != 0) & is_total(table)
        # A cell alone goes up with the probability of its fraction, and with several every table
        # has some probability.
        fraction = np.where(exact, 0.5, quotient - low)
        price = np.log(wishes / (1 - wishes)) - np.log(fraction / (1 - fraction))
        seed = int(wishes.sum() * 2**20) % 2**31
        return cls(table, quotient, low, high, slack, price, seed)

    def left(self, multiples: Floats) -> Bools:
        """Return which cells are not next to their value."""
        return (multiples < self.low) | (multiples > self.high)

    def jump(self, *, slack: bool = False) -> Rounded | None:
        """Look longer for any table; the random numbers are those of the wishes."""
        from discreet.tables.methods._jumping import jump

        free, moving = self._movable(slack)
        equations = self.table.equations.tocsc()
        matrix = self._steps(equations, free, moving)
        # Whole numbers: sums of steps are exact, however large the table.
        rest = np.round(equations @ self.low).astype(np.int64)
        x = np.zeros(matrix.shape[1], dtype=np.int64)
        sides = (
            (side.indices.astype(np.int64), side.indptr.astype(np.int64), _signs(side))
            for side in (matrix.tocsr(), matrix)
        )
        if jump(*sides, rest, x, min(_JUMPS * len(x), _MOST_JUMPS), self.seed):
            return None
        return Rounded(self._stepped(free, moving, x.astype(np.float64)), optimal=False)

    def _movable(self, slack: bool) -> tuple[Ints, Ints]:
        """Return which cells step up or not, and which multiples may step either way."""
        moving = np.flatnonzero(self.slack) if slack else np.zeros(0, dtype=np.int64)
        return np.flatnonzero(self.high > self.low), moving

    def _steps(self, equations: sparse.csc_matrix, free: Ints, moving: Ints) -> sparse.csc_matrix:
        """Return what steps change: of free cells up, then of moving ones down and up."""
        parts = [equations[:, free], -equations[:, moving], equations[:, moving]]
        return sparse.csc_matrix(sparse.hstack(parts))

    def _stepped(self, free: Ints, moving: Ints, steps: Floats) -> Floats:
        up, fall, rise = np.split(np.round(steps), [len(free), len(free) + len(moving)])
        multiples = self.low.copy()
        multiples[free] += up
        multiples[moving] += rise - fall
        return multiples

    def some(self, seconds: float, *, slack: bool = False) -> tuple[Rounded | None, bool]:
        """Look for any table by integer programming; also say whether none is proven to exist.

        Without a distance to minimise, and with every equation, redundant ones included, the
        solver finds in tenths of a second what takes it minutes otherwise.
        """
        least, most = self.low - slack * self.slack, self.high + slack * self.slack
        free = np.flatnonzero(most > least)
        equations = self.table.equations.tocsc()
        offset = -(equations @ least)
        if not free.size:
            return (None, True) if offset.any() else (Rounded(least, optimal=True), False)
        found = solve_integer(
            equations[:, free],
            rows=(offset, offset),
            columns=(np.zeros(len(free)), (most - least)[free]),
            cost=np.zeros(len(free)),
            integer=np.ones(len(free), dtype=bool),
            time_limit=seconds,
        )
        if not found.x.size:
            return None, found.status == "infeasible"
        least[free] += np.round(found.x)
        return Rounded(least, optimal=False), False

    def best(
        self, seconds: float, gap: float, *, slack: bool = False, start: Floats | None = None
    ) -> Rounded | None:
        """Look for the table that follows the wishes best by integer programming.

        With `slack` multiples may move one further, at a price above that of any wish.
        """
        free, moving = self._movable(slack)
        if not free.size and not moving.size:
            return None
        equations = independent(self.table.equations, self.table.value != 0).tocsc()
        size, extra = len(free), len(moving)
        offset = -(equations @ self.low)
        known = None
        if start is not None:
            steps = (start - self.low)[moving]
            known = np.concatenate(
                [(start - self.low)[free], np.maximum(-steps, 0), np.maximum(steps, 0)]
            )
        found = solve_integer(
            self._steps(equations, free, moving),
            rows=(offset, offset),
            columns=(np.zeros(size + 2 * extra), np.ones(size + 2 * extra)),
            cost=np.concatenate(
                [self.price[free], np.full(2 * extra, np.abs(self.price[free]).sum() + 1.0)]
            ),
            integer=np.ones(size + 2 * extra, dtype=bool),
            time_limit=seconds,
            gap=gap,
            start=known,
        )
        if not found.x.size:
            return None
        return Rounded(self._stepped(free, moving, found.x), found.status == "optimal")

    def anneal(self, start: Floats | None = None) -> Floats | None:
        """Move single cells until few totals do not fit; none if some end up beyond the base.

        From a table to start with none ever does. The random numbers are those of the wishes.
        """
        system = _System.of(self.table)
        if system is None:
            return None
        from discreet.tables.methods._annealing import search

        low, high = (side.astype(np.int64) for side in (self.low, self.high))
        single = system.single
        # Single cells stay next to their values; only totals leave.
        movable = np.flatnonzero(high[single] > low[single])
        movable = movable[np.argsort(self.table.keys[single[movable]])]
        cells = single[movable]
        x = (self.price[cells] < 0).astype(np.int64)
        if start is not None:
            x = (start[cells] > low[cells]).astype(np.int64)
        step = low.copy()
        step[cells] += x
        step = np.round(system.totals @ step[single]).astype(np.int64)
        graph = (*system.around(self.table, movable), self.table.keys[cells])
        rounds = min(_ROUNDS * len(cells), _MOST_ROUNDS)
        for heats, wrong in _PHASES if start is None else _KEEPING:
            first = np.where(self.slack, 1, wrong)
            search(graph, (low, high, first, wrong), x, step, heats, rounds, _FOCUS, self.seed)
        beyond = (step < self.low - self.slack) | (step > self.high + self.slack)
        return None if beyond.any() else step.astype(np.float64)


def _signs(matrix: sparse.csr_matrix | sparse.csc_matrix) -> Ints:
    return np.asarray(np.round(matrix.data), dtype=np.int64)


@dataclasses.dataclass(frozen=True, eq=False)
class _System:
    """The cells that are not totals, and how all cells are sums of them."""

    single: Ints
    #: (cells, single cells): 1 where a single cell is part of a cell.
    totals: sparse.csr_matrix

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
        return cls(single, totals)

    def around(self, table: Table, movable: Ints) -> tuple[Ints, ...]:
        """Return what is above and below, the lines of, and the movable cells in each line.

        A line is a total whose single cells differ from it in one attribute.
        """
        below = self.totals[:, movable].tocsr()
        entries = below.tocoo()
        cells = self.single[movable]
        differ = (table.codes[entries.row] != table.codes[cells[entries.col]]).sum(axis=1)
        most = np.zeros(len(table), dtype=np.int64)
        np.maximum.at(most, entries.row, differ)
        parts = below[(most == 1) & (np.diff(below.indptr) > 1)]
        lists: list[Ints] = []
        for matrix in (below.T.tocsr(), below, parts.T.tocsr(), parts):
            lists += [matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)]
        return tuple(lists)
