"""Deviations: how far the true table could lie from what it is, seen from outside.

An attacker sees published cells and the equations between cells. A *deviation* y with R·y = 0
that leaves published cells alone and keeps every cell within its bounds leads from the true table
to another one that looks the same. A deviation that moves a cell by what its protection demands is
a *certificate* that this demand is met; that none exists is the proof that it is not.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse

from discreet.audit.solver import LinearProgram

__all__ = ["DeviationModel", "components", "independent"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class DeviationModel:
    """One linear program over some cells, asked again and again with another target.

    Each cell has a column for moving up and one for moving down. All amounts are in units of
    `unit`, so that the solver's absolute tolerances are relative to what protection demands.

    Parameters
    ----------
    equations
        Equations between the cells of the table, one column per cell.
    cells
        The cells that may move; all others stay.
    down, up
        How far each cell of the table may fall and rise.
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
    ) -> None:
        self.cells = cells
        self.unit = unit
        size = len(cells)
        self._place: dict[int, int] = {int(cell): at for at, cell in enumerate(cells)}
        rows = equations[:, cells].tocsr()
        block = rows[np.diff(rows.indptr) > 0].tocsc()
        self._up = np.asarray(up[cells] / unit, np.float64)
        self._down = np.asarray(down[cells] / unit, np.float64)
        self._open = np.ones(size, dtype=bool)
        self._dirty: list[int] = []
        zeros = np.zeros(block.shape[0])
        price = np.zeros(size) if cost is None else cost
        self.program = LinearProgram(
            sparse.hstack([block, -block]).tocsc(),
            rows=(zeros, zeros),
            columns=(np.zeros(2 * size), np.concatenate([self._up, self._down])),
            cost=np.concatenate([price, price]),
        )

    def __contains__(self, cell: int) -> bool:
        return cell in self._place

    @property
    def work(self) -> int:
        """Pivots so far."""
        return self.program.work

    def places(self, cells: Ints) -> Ints:
        """Return where cells of the table stand in this model."""
        return np.array([self._place[int(cell)] for cell in cells], dtype=np.int64)

    def price(self, cells: Ints, up: Floats, down: Floats) -> None:
        """Set what moving cells up and down costs per unit."""
        at = self.places(cells)
        self.program.set_cost(
            np.concatenate([at, at + len(self.cells)]), np.concatenate([up, down])
        )

    def open(self, cells: Ints) -> None:
        """Let cells move again."""
        at = self.places(cells)
        self._open[at] = True
        self._restore(at)

    def close(self, cells: Ints) -> None:
        """Hold cells at their true values."""
        at = self.places(cells)
        self._open[at] = False
        self._restore(at)

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
        size = len(self.cells)
        self._know(fixed, floors)
        place = self._place[target]
        move = amount / self.unit
        self._dirty.append(place)
        pair = np.array([place, place + size])
        fix = np.array([max(move, 0.0), max(-move, 0.0)])
        if move < 0 and -move > self._down[place] * (1 + 1e-9):
            return None
        if move > 0 and move > self._up[place] * (1 + 1e-9):
            return None
        self.program.set_bounds(pair, fix, fix)
        solution = self.program.solve()
        if solution.status != "optimal":
            return None
        y = solution.x[:size] - solution.x[size:]
        moved = np.flatnonzero(np.abs(y) > 1e-9 * max(1.0, abs(move)))
        return self.cells[moved], y[moved] * self.unit

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
        size = len(self.cells)
        known = self._know(fixed, floors)
        place = self._place[target]
        pair = np.array([place, place + size])
        self.program.set_cost(pair, np.array([-1.0, 1.0]) * direction)
        solution = self.program.solve(primal=not known)
        self.program.set_cost(pair, np.zeros(2))
        if solution.status == "unbounded":
            return direction * np.inf, np.zeros(0, np.int64), np.zeros(0)
        y = (solution.x[:size] - solution.x[size:]) * self.unit
        return float(y[place]), self.cells, y

    def _know(self, fixed: Ints | None, floors: tuple[Ints, Floats] | None) -> bool:
        """Forget the last target and attacker, and take in what this one knows."""
        changed = bool(self._dirty)
        if self._dirty:
            self._restore(np.array(self._dirty, dtype=np.int64))
        self._dirty = []
        if floors is not None and len(floors[0]):
            kept = [i for i, c in enumerate(floors[0].tolist()) if c in self._place]
            at = self.places(floors[0][kept])
            self._limit(at, self._up[at], np.minimum(floors[1][kept] / self.unit, self._down[at]))
            changed = True
        if fixed is not None and len(fixed):
            at = np.array([self._place[c] for c in fixed.tolist() if c in self._place], np.int64)
            self._limit(at, np.zeros(len(at)), np.zeros(len(at)))
            changed = True
        return changed

    def _restore(self, at: Ints) -> None:
        size = len(self.cells)
        up = np.where(self._open[at], self._up[at], 0.0)
        down = np.where(self._open[at], self._down[at], 0.0)
        self.program.set_bounds(
            np.concatenate([at, at + size]), np.zeros(2 * len(at)), np.concatenate([up, down])
        )

    def _limit(self, at: Ints, up: Floats, down: Floats) -> None:
        size = len(self.cells)
        up = np.where(self._open[at], up, 0.0)
        down = np.where(self._open[at], down, 0.0)
        self.program.set_bounds(
            np.concatenate([at, at + size]), np.zeros(2 * len(at)), np.concatenate([up, down])
        )
        self._dirty.extend(int(a) for a in at)


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
    for row in np.argsort(-lengths, kind="stable"):
        # The shortest definition is written last and stays.
        if total[row] >= 0:
            defining[total[row]] = row
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
    _, found = sparse.csgraph.connected_components(graph, directed=False)
    label = np.unique(found[: len(alive)], return_inverse=True)[1]
    order = np.argsort(label, kind="stable")
    cuts = np.flatnonzero(np.diff(label[order])) + 1
    return np.split(cells[alive[order]], cuts), cells[~live]
