"""Deviations: how far the true table could lie from what it is, seen from outside.

An attacker sees published cells and the equations between cells. A *deviation* y with R·y = 0
that leaves published cells alone and keeps every cell within its bounds leads from the true table
to another one that looks the same. A deviation that moves a cell by what its protection demands is
a *certificate* that this demand is met; that none exists is the proof that it is not.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse import csgraph

from discreet.audit.solver import LinearProgram

__all__ = ["DeviationModel", "components", "independent"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


#: Factors by which fractional alternative tables are multiplied to make them whole.
_TIMES = (2, 3, 4, 6)
#: Relative gap and node limit of the integer programs for whole alternative tables.
_GAP, _NODES = 0.2, 2000


class DeviationModel:
    """One linear program over some cells, asked again and again with another target.

    Each cell has a column for moving up and one for moving down; cells that always equal each
    other (a total with one part that is not known) share theirs. All amounts are in units of
    `unit`, so that the solver's absolute tolerances are relative to what protection demands.

    Parameters
    ----------
    equations
        Equations between the cells of the table, one column per cell.
    cells
        The cells that may move; all others stay.
    down, up
        How far each cell of the table may fall and rise.
    whole
        Whether cells move by whole numbers only. An integer program is solved where the linear one
        ends at fractions.
    """

    def __init__(
        self,
        equations: sparse.csc_matrix,
        cells: Ints,
        down: Floats,
        up: Floats,
        *,
        unit: float = 1.0,
        cost: Floats | None = None,
        whole: bool = False,
    ) -> None:
        self.cells = cells
        self.unit = unit = 1.0 if whole else unit
        self._whole = whole
        self._place = dict(zip(cells.tolist(), range(len(cells)), strict=True))
        entries = _Entries.of(equations, cells)
        self._groups = entries.groups()
        size = self._size = self._groups.number
        block = entries.merged(self._groups)
        self._up = self._groups.least(up[cells] / unit)
        self._down = self._groups.least(down[cells] / unit)
        self._open = np.ones(len(cells), dtype=bool)
        self._dirty: list[int] = []
        #: How far each group of cells may rise and fall by what the present attacker knows.
        self._limits: dict[int, tuple[float, float]] = {}
        zeros = np.zeros(block.shape[0])
        price = np.zeros(len(cells)) if cost is None else cost
        self._price = np.array([price, price], dtype=np.float64)
        total = self._groups.total(price)
        self.program = LinearProgram(
            _both(block),
            rows=(zeros, zeros),
            columns=(np.zeros(2 * size), np.concatenate([self._up, self._down])),
            cost=np.concatenate([total, total]),
        )

    def __contains__(self, cell: int) -> bool:
        return cell in self._place

    @property
    def work(self) -> int:
        """Pivots so far."""
        return self.program.work

    def _places(self, cells: Ints) -> Ints:
        """Return where cells of the table stand in this model."""
        return np.array([self._place[int(cell)] for cell in cells], dtype=np.int64)

    def price(self, cells: Ints, up: Floats, down: Floats) -> None:
        """Set what moving cells up and down costs per unit."""
        at = self._places(cells)
        self._price[0, at], self._price[1, at] = up, down
        groups = self._groups.of_cell[at]
        rise, fall = (self._groups.total(row)[groups] for row in self._price)
        self.program.set_cost(
            np.concatenate([groups, groups + self._size]), np.concatenate([rise, fall])
        )

    def open(self, cells: Ints) -> None:
        """Let cells move again."""
        at = self._places(cells)
        self._open[at] = True
        self._restore(self._groups.of_cell[at])

    def close(self, cells: Ints) -> None:
        """Hold cells at their true values."""
        at = self._places(cells)
        self._open[at] = False
        self._restore(self._groups.of_cell[at])

    def cheapest(
        self,
        target: int,
        amount: float,
        *,
        fixed: Ints | None = None,
        floors: tuple[Ints, Floats] | None = None,
    ) -> tuple[Ints, Floats] | None:
        """Return the cheapest deviation that moves `target` by `amount`, or none.

        `fixed` cells are held, `floors` cells may fall by so much only: what one attacker knows.
        The deviation comes as cells and how far each moves.
        """
        self._know(fixed, floors)
        place = int(self._groups.of_cell[self._place[target]])
        move = amount / self.unit
        self._dirty.append(place)
        pair = np.array([place, place + self._size])
        fix = np.array([max(move, 0.0), max(-move, 0.0)])
        # A cell that moves with the target may be fixed: published, or known to the attacker.
        up, down = self._limits.get(place, (self._up[place], self._down[place]))
        if not self._open[self._groups.members(place)].all():
            return None
        if move < 0 and -move > down * (1 + 1e-9):
            return None
        if move > 0 and move > up * (1 + 1e-9):
            return None
        self.program.set_bounds(pair, fix, fix)
        solution = self.program.solve()
        if solution.status != "optimal":
            return None
        y = solution.x[: self._size] - solution.x[self._size :]
        if self._whole:
            whole = self._in_whole_numbers(y, place, move, up if move > 0 else down)
            if whole is None:
                return None
            y = whole
        y[np.abs(y) <= 1e-9 * max(1.0, abs(move))] = 0.0
        y = y[self._groups.of_cell]
        moved = np.flatnonzero(y)
        return self.cells[moved], y[moved] * self.unit

    def _in_whole_numbers(self, y: Floats, target: int, move: float, room: float) -> Floats | None:
        """Return a deviation of whole numbers that moves the target at least as far as asked."""
        if _is_whole(y):
            return np.round(y)
        _, upper = self.program.bounds()
        up, down = upper[: self._size], upper[self._size :]
        for times in _TIMES:
            # A vertex is often made of halves: twice as far it is whole, if there is room.
            more = times * y
            if _is_whole(more) and times * abs(y[target]) <= room:
                fits = (more <= up) & (-more <= down)
                fits[target] = True
                if fits.all():
                    return np.round(more)
        # Where it cannot move by as much in whole numbers, it may be able to move by more.
        pair, least = np.array([target, target + self._size]), np.array([move, -move])
        most = np.where(least > 0, room, 0.0)
        self.program.set_bounds(pair, np.maximum(least, 0.0), most)
        solution = self.program.whole(gap=_GAP, nodes=_NODES)
        if not len(solution.x):
            return None
        return np.round(solution.x[: self._size]) - np.round(solution.x[self._size :])

    def extreme(
        self,
        target: int,
        direction: int,
        *,
        fixed: Ints | None = None,
        floors: tuple[Ints, Floats] | None = None,
    ) -> tuple[float, Ints, Floats]:
        """Return how far `target` can move up (+1) or down (−1): the exact end of its interval.

        The costs of the model must be zero. Infinite where nothing bounds the cell.
        """
        known = self._know(fixed, floors)
        place = int(self._groups.of_cell[self._place[target]])
        pair = np.array([place, place + self._size])
        self.program.set_cost(pair, np.array([-1.0, 1.0]) * direction)
        solution = self.program.solve(primal=not known)
        self.program.set_cost(pair, np.zeros(2))
        if solution.status == "unbounded":
            return direction * np.inf, np.zeros(0, np.int64), np.zeros(0)
        y = (solution.x[: self._size] - solution.x[self._size :]) * self.unit
        return float(y[place]), self.cells, y[self._groups.of_cell]

    def _know(self, fixed: Ints | None, floors: tuple[Ints, Floats] | None) -> bool:
        """Forget the last target and attacker, and take in what this one knows."""
        changed = bool(self._dirty)
        if self._dirty:
            self._restore(np.array(self._dirty, dtype=np.int64))
        self._dirty = []
        self._limits.clear()
        if floors is not None and len(floors[0]):
            kept = [i for i, c in enumerate(floors[0].tolist()) if c in self._place]
            groups = self._groups.of_cell[self._places(floors[0][kept])]
            at, which = np.unique(groups, return_inverse=True)
            fall = self._down[at].copy()
            np.minimum.at(fall, which, floors[1][kept] / self.unit)
            self._limit(at, self._up[at], fall)
            changed = True
        if fixed is not None and len(fixed):
            inside = [self._place[c] for c in fixed.tolist() if c in self._place]
            at = np.unique(self._groups.of_cell[np.array(inside, dtype=np.int64)])
            self._limit(at, np.zeros(len(at)), np.zeros(len(at)))
            changed = True
        return changed

    def _restore(self, at: Ints) -> None:
        self._bound(at, self._up[at], self._down[at])

    def _limit(self, at: Ints, up: Floats, down: Floats) -> None:
        self._bound(at, up, down)
        self._dirty.extend(int(a) for a in at)
        self._limits.update(
            (a, (u, d)) for a, u, d in zip(at.tolist(), up.tolist(), down.tolist(), strict=True)
        )

    def _bound(self, at: Ints, up: Floats, down: Floats) -> None:
        shut = ~self._groups.all(self._open)[at]
        up, down = np.where(shut, 0.0, up), np.where(shut, 0.0, down)
        self.program.set_bounds(
            np.concatenate([at, at + self._size]),
            np.zeros(2 * len(at)),
            np.concatenate([up, down]),
        )


def _is_whole(y: Floats) -> bool:
    return bool((np.abs(y - np.round(y)) <= 1e-6).all())


def _both(up: sparse.csc_matrix) -> sparse.csc_matrix:
    """Return columns for moving up and, with signs turned, for moving down."""
    return sparse.csc_matrix(
        (
            np.concatenate([up.data, -up.data]),
            np.concatenate([up.indices, up.indices]),
            np.concatenate([up.indptr, up.indptr[-1] + up.indptr[1:]]),
        ),
        shape=(up.shape[0], 2 * up.shape[1]),
    )


@dataclasses.dataclass(frozen=True, eq=False)
class _Entries:
    """Some columns of the equations as lists, column by column: making models must be quick."""

    row: Ints
    column: Ints
    sign: Floats
    rows: int
    columns: int

    @classmethod
    def of(cls, equations: sparse.csc_matrix, cells: Ints) -> _Entries:
        begin, counts = equations.indptr[cells], np.diff(equations.indptr)[cells]
        column = np.repeat(np.arange(len(cells)), counts)
        ends = counts.cumsum()
        at = np.arange(len(column)) + (begin - (ends - counts))[column]
        return cls._numbered(equations.indices[at], column, equations.data[at], len(cells))

    @classmethod
    def _numbered(cls, row: Ints, column: Ints, sign: Floats, columns: int) -> _Entries:
        """Return entries whose rows are numbered without gaps, in their order."""
        there = np.zeros(int(row.max(initial=-1)) + 1, dtype=bool)
        there[row] = True
        number = there.cumsum() - 1
        return cls(number[row], column, sign, int(there.sum()), columns)

    def groups(self) -> _Groups:
        """Return which cells always move together."""
        sums = np.bincount(self.row, self.sign, self.rows)
        pairs = (np.bincount(self.row, minlength=self.rows) == 2) & (sums == 0)
        chosen = np.flatnonzero(pairs[self.row])
        ends = self.column[chosen[np.argsort(self.row[chosen], kind="stable")]]
        return _Groups.of(ends[::2], ends[1::2], self.columns)

    def merged(self, groups: _Groups) -> sparse.csc_matrix:
        """Return equations between groups, without those that say nothing more."""
        entries, shape = self, (self.rows, groups.number)
        if groups.number < self.columns:
            column = groups.of_cell[self.column]
            summed = sparse.csc_matrix((self.sign, (self.row, column)), shape=shape)
            summed.eliminate_zeros()
            column = np.repeat(np.arange(groups.number), np.diff(summed.indptr))
            row = summed.indices.astype(np.int64)
            entries = self._numbered(row, column, summed.data, groups.number)
        starts = np.searchsorted(entries.column, np.arange(groups.number + 1))
        return sparse.csc_matrix(
            (entries.sign, entries.row, starts), shape=(entries.rows, groups.number)
        )


@dataclasses.dataclass(frozen=True, eq=False)
class _Groups:
    """Cells that always move together, since an equation of two says that they are equal."""

    of_cell: Ints
    number: int
    _order: Ints
    _starts: Ints

    @classmethod
    def of(cls, first: Ints, second: Ints, size: int) -> _Groups:
        if not len(first):
            every = np.arange(size)
            return cls(every, size, every, every)
        graph = sparse.csr_matrix((np.ones(len(first)), (first, second)), shape=(size, size))
        number, label = csgraph.connected_components(graph, directed=False)
        of_cell = label.astype(np.int64)
        order = np.argsort(of_cell, kind="stable")
        starts = np.searchsorted(of_cell[order], np.arange(number))
        return cls(of_cell, int(number), order, starts)

    def members(self, group: int) -> Ints:
        """Return the places of the cells of a group."""
        end = self._starts[group + 1] if group + 1 < self.number else len(self._order)
        return self._order[self._starts[group] : end]

    def total(self, amounts: Floats) -> Floats:
        """Return the sum over each group."""
        if self.number == len(self.of_cell):
            return amounts
        return np.asarray(np.add.reduceat(amounts[self._order], self._starts))

    def least(self, amounts: Floats) -> Floats:
        """Return the least of each group."""
        if self.number == len(self.of_cell):
            return np.array(amounts, dtype=np.float64)
        return np.asarray(np.minimum.reduceat(amounts[self._order], self._starts))

    def all(self, flags: Bools) -> Bools:
        """Return which groups have all flags set."""
        if self.number == len(self.of_cell):
            return flags
        return np.asarray(np.logical_and.reduceat(flags[self._order], self._starts))


def independent(equations: sparse.csr_matrix, live: Bools) -> sparse.csr_matrix:
    """Return the equations that do not follow from others while all but live cells are known.

    In a cross of hierarchies most totals are defined several times over. One definition of each
    total is kept; another row is left out if it holds for totals so computed from generic parts,
    which says that it follows from the definitions.
    """
    block = equations @ sparse.diags_array(live.astype(np.float64), format="csr")
    block = sparse.csr_matrix(block)
    block.eliminate_zeros()
    lengths = np.diff(block.indptr)
    rows = np.repeat(np.arange(block.shape[0]), lengths)
    heads = block.data > 0
    total = np.full(block.shape[0], -1, dtype=np.int64)
    total[rows[heads]] = block.indices[heads]
    defining = np.full(block.shape[1], -1, dtype=np.int64)
    # The shortest definition is written last and stays.
    order = np.argsort(-lengths, kind="stable")
    order = order[total[order] >= 0]
    defining[total[order]] = order
    defined = np.flatnonzero(defining >= 0)
    parts = sparse.csr_matrix(
        (np.where(heads, 0.0, 1.0), block.indices.copy(), block.indptr.copy()), shape=block.shape
    )[defining[defined]]
    y = np.where(live, np.random.default_rng(0).uniform(1.0, 2.0, len(live)), 0.0)
    y[defined] = 0.0
    for _ in range(64):
        # From parts to totals, as many rounds as hierarchies are high.
        new = parts @ y
        if np.array_equal(new, y[defined]):
            break
        y[defined] = new
    scale = abs(block) @ np.abs(y)
    keep = np.abs(block @ y) > 1e-9 * np.maximum(scale, 1e-300)
    keep[defining[defined]] = True
    return equations[np.flatnonzero(keep)]


def components(equations: sparse.csr_matrix, cells: Ints) -> tuple[list[Ints], Ints]:
    """Return the connected sets of unknown cells, and the cells that are determined.

    An equation with one unknown determines it; what is determined is known, and so on.
    """
    block = abs(equations[:, cells]).tocsr()
    block.data[:] = 1.0
    live = np.ones(len(cells), dtype=bool)
    columns = block.tocsc()
    left = np.diff(block.indptr).astype(np.int64)
    queue = list(np.flatnonzero(left == 1))
    while queue:
        row = queue.pop()
        if left[row] != 1:
            continue
        members = block.indices[block.indptr[row] : block.indptr[row + 1]]
        cell = members[live[members]][0]
        live[cell] = False
        touched = columns.indices[columns.indptr[cell] : columns.indptr[cell + 1]]
        left[touched] -= 1
        queue.extend(touched[left[touched] == 1])
    alive = np.flatnonzero(live)
    if not len(alive):
        return [], cells
    rest = columns[:, alive].tocsr()
    rest = rest[np.diff(rest.indptr) > 0]
    links = rest.tocoo()
    size = len(alive) + rest.shape[0]
    graph = sparse.csr_matrix((links.data, (links.col, links.row + len(alive))), shape=(size, size))
    _, found = csgraph.connected_components(graph, directed=False)
    label = np.unique(found[: len(alive)], return_inverse=True)[1]
    order = np.argsort(label, kind="stable")
    cuts = np.flatnonzero(np.diff(label[order])) + 1
    return np.split(cells[alive[order]], cuts), cells[~live]
