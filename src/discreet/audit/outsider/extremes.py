"""How far cells can move at most: one linear program, as small as the equations let it be.

Where only ends are asked for, one column per cell does, from how far it falls to how far it rises.
Cells that move together or against each other share a column (two parts of a published total: what
one gains the other loses), again and again until no equation has only two columns; equations that
follow from the others are left out.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse import csgraph

from discreet.audit.solver import LinearProgram
from discreet.errors import EngineError

__all__ = ["Extreme", "ExtremeModel", "Shared"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

#: Equations that are independent modulo this prime are independent; with a prime as large as this
#: the converse fails with negligible probability.
_PRIME = 2**61 - 1
#: Fill-in at which elimination stops, as a multiple of the entries at the start.
_FILL = 20
#: Largest residual of an equation that was left out as redundant.
_BALANCE = 1e-6
#: Nodes after which an integer program ends with what it has found.
_NODES = 20_000


@dataclasses.dataclass(frozen=True, eq=False)
class Shared:
    """Columns that cells share: cell i moves by `sign[i]` times what column `column[i]` does."""

    column: Ints
    #: 1, −1, or 0 where a cell cannot move.
    sign: Floats
    number: int
    #: The equations between columns.
    equations: sparse.csr_matrix

    @classmethod
    def of(cls, block: sparse.csr_matrix) -> Shared:
        """Put cells together as long as an equation ties two columns, or one to nothing.

        >>> rows = sparse.csr_matrix([[1.0, -1, 0, 0], [0, 1, 1, 0], [1.0, 1, 1, 1]])
        >>> shared = Shared.of(rows)
        >>> shared.column.tolist(), (shared.sign + 0.0).tolist(), shared.equations.nnz
        ([0, 0, 0, 0], [1.0, 1.0, -1.0, -1.0], 0)
        """
        size = block.shape[1]
        column, sign, number = np.arange(size), np.ones(size), size
        rows = sparse.csr_matrix(block, copy=True)
        while True:
            rows.eliminate_zeros()
            lengths = np.diff(rows.indptr)
            rows = rows[lengths > 0]
            lengths = np.diff(rows.indptr)
            first = rows.indptr[:-1]
            single = rows.indices[first[lengths == 1]]
            at = first[lengths == 2]
            at = at[np.abs(rows.data[at]) == np.abs(rows.data[at + 1])]
            if not len(single) and not len(at):
                return cls(column, sign, number, rows)
            together = rows.data[at] * rows.data[at + 1] < 0
            of, turn, number = _tied(rows.indices[at], rows.indices[at + 1], together, number)
            turn[single] = 0.0
            # A column that cannot move stops all that share it.
            still = np.zeros(number, dtype=bool)
            still[of[turn == 0]] = True
            turn[still[of]] = 0.0
            sign, column = sign * turn[column], of[column]
            step = sparse.csr_matrix((turn, (np.arange(len(of)), of)), shape=(len(of), number))
            rows = sparse.csr_matrix(rows @ step)

    def tightest(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        """Return the bounds of columns from the bounds of cells."""
        low, high = np.full(self.number, -np.inf), np.full(self.number, np.inf)
        below, above = self.turned(np.arange(len(self.column)), lower, upper)
        np.maximum.at(low, self.column, below)
        np.minimum.at(high, self.column, above)
        return low, high

    def turned(self, cells: Ints, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        """Return what bounds of some cells say of their columns."""
        sign = self.sign[cells]
        low = np.where(sign > 0, lower, np.where(sign < 0, -upper, 0.0))
        high = np.where(sign > 0, upper, np.where(sign < 0, -lower, 0.0))
        return low, high


def _tied(first: Ints, second: Ints, together: Bools, number: int) -> tuple[Ints, Floats, int]:
    """Return for each column the one it becomes part of, and whether turned round (0: stuck)."""
    # Each column appears twice, once with each sign.
    turned = np.where(together, second, second + number)
    back = np.where(together, second + number, second)
    begin, end = np.concatenate([first, first + number]), np.concatenate([turned, back])
    graph = sparse.csr_matrix((np.ones(len(begin)), (begin, end)), shape=(2 * number, 2 * number))
    _, label = csgraph.connected_components(graph, directed=False)
    plain, mirror = label[:number], label[number:]
    of, column = np.unique(np.minimum(plain, mirror), return_inverse=True)
    turn = np.where(plain < mirror, 1.0, np.where(plain > mirror, -1.0, 0.0))
    return column.astype(np.int64), turn, len(of)


def spanning(rows: sparse.csr_matrix) -> Ints:
    """Return equations from which the others follow, by elimination modulo a prime.

    Should the prime mislead, which is a matter of one in 10^15, that shows in the solutions.

    >>> spanning(sparse.csr_matrix([[1.0, -1, 0], [0, 1, -1], [1, 0, -1]])).tolist()
    [0, 1]
    """
    lengths = np.diff(rows.indptr)
    often = np.bincount(rows.indices, minlength=rows.shape[1])
    pivots: dict[int, dict[int, int]] = {}
    kept, room = [], _FILL * rows.nnz
    for row in np.argsort(lengths, kind="stable").tolist():
        if room < 0:
            kept.append(row)
            continue
        part = slice(rows.indptr[row], rows.indptr[row + 1])
        left = {
            j: int(v) % _PRIME
            for j, v in zip(rows.indices[part].tolist(), rows.data[part].tolist(), strict=True)
        }
        while (column := next((j for j in left if j in pivots), None)) is not None:
            factor = left[column]
            for j, v in pivots[column].items():
                rest = (left.get(j, 0) - factor * v) % _PRIME
                if rest:
                    left[j] = rest
                else:
                    left.pop(j, None)
            room -= len(pivots[column])
        if left:
            pivot = min(left, key=lambda j: (often[j], j))
            inverse = pow(left[pivot], -1, _PRIME)
            pivots[pivot] = {j: v * inverse % _PRIME for j, v in left.items()}
            kept.append(row)
    return np.array(sorted(kept), dtype=np.int64)


@dataclasses.dataclass(frozen=True, eq=False)
class Extreme:
    """The farthest a cell goes, and how every column moves there."""

    end: float
    #: Moves of the columns; empty where the cell is unbounded.
    x: Floats


class ExtremeModel:
    """A linear program over the cells of one component, asked for end after end.

    Amounts are in units of `unit`, so that the solver's absolute tolerances are relative to what
    protection demands.
    """

    def __init__(
        self,
        equations: sparse.csc_matrix,
        cells: Ints,
        down: Floats,
        up: Floats,
        *,
        unit: float = 1.0,
    ) -> None:
        self.unit = unit
        rows = equations[:, cells].tocsr()
        self.shared = Shared.of(rows[np.diff(rows.indptr) > 0])
        self.lower, self.upper = self.shared.tightest(-down[cells] / unit, up[cells] / unit)
        every = self.shared.equations
        kept = spanning(every)
        self._others = every[np.setdiff1d(np.arange(every.shape[0]), kept)]
        self.matrix = sparse.csc_matrix(every[kept])
        zeros = np.zeros(len(kept))
        self._program = LinearProgram(
            self.matrix,
            rows=(zeros, zeros),
            columns=(self.lower, self.upper),
            cost=np.zeros(self.shared.number),
        )

    @property
    def work(self) -> int:
        """Pivots so far."""
        return self._program.work

    def moves(self, x: Floats) -> Floats:
        """Return how far each cell moves where columns move by `x`."""
        return np.asarray(x[self.shared.column] * self.shared.sign * self.unit)

    def farthest(self, places: Ints, direction: int) -> Extreme:
        """Return how far cells at these places go together up (+1) or down (−1)."""
        at, which = np.unique(self.shared.column[places], return_inverse=True)
        cost = -direction * np.bincount(which, self.shared.sign[places])
        self._program.set_cost(at, cost.astype(np.float64))
        solution = self._program.solve(primal=True)
        self._program.set_cost(at, np.zeros(len(at)))
        if solution.status == "unbounded":
            return Extreme(np.inf, np.zeros(0))
        self.check(solution.x)
        return Extreme(max(-solution.objective, 0.0) * self.unit, solution.x)

    def alone(self, place: int, direction: int, limits: tuple[Ints, Floats, Floats]) -> float:
        """Return how far one cell goes within narrower bounds of some columns, from the start."""
        lower, upper = self.lower.copy(), self.upper.copy()
        lower[limits[0]], upper[limits[0]] = limits[1:]
        cost, zeros = np.zeros(self.shared.number), np.zeros(self.matrix.shape[0])
        cost[self.shared.column[place]] = -direction * self.shared.sign[place]
        program = LinearProgram(self.matrix, rows=(zeros, zeros), columns=(lower, upper), cost=cost)
        solution = program.solve(primal=True)
        return np.inf if solution.status == "unbounded" else -solution.objective * self.unit

    def farthest_whole(
        self, place: int, direction: int, limits: tuple[Ints, Floats, Floats] | None = None
    ) -> Extreme:
        """Return how far a cell goes by whole numbers, within narrower bounds of some columns.

        The unit must be one. Where the search ends early, the end is one that is surely reached.
        """
        lower, upper = self.lower.copy(), self.upper.copy()
        if limits is not None:
            lower[limits[0]], upper[limits[0]] = limits[1:]
        lower, upper = np.ceil(lower - 1e-9), np.floor(upper + 1e-9)
        at = self.shared.column[place]
        sign = direction * self.shared.sign[place]
        cost, zeros = np.zeros(self.shared.number), np.zeros(self.matrix.shape[0])
        cost[at] = -sign
        program = LinearProgram(self.matrix, rows=(zeros, zeros), columns=(lower, upper), cost=cost)
        solution = program.solve(primal=True)
        if solution.status == "unbounded":
            return Extreme(np.inf, np.zeros(0))
        x = solution.x
        if len(x) and (np.abs(x - np.round(x)) > 1e-6).any():
            x = program.whole(nodes=_NODES).x
        if not len(x):
            return Extreme(0.0, np.zeros(self.shared.number))
        x = np.round(x)
        self.check(x)
        return Extreme(max(float(sign * x[at]), 0.0), x)

    def check(self, x: Floats) -> None:
        """Refuse solutions that break an equation that was left out."""
        if self._others.shape[0]:
            off = float(np.abs(self._others @ x).max(initial=0.0))
            if off > _BALANCE * max(1.0, float(np.abs(x).max(initial=0.0))):
                raise EngineError("an equation was left out that was needed", code="solver-failed")
