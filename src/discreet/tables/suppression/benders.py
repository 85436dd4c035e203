"""The two sides of Benders' decomposition: attackers' programs, and the choice of cells.

For each demand an attacker's program says whether a choice of cells protects it. Where not, its
dual prices give a *capacity cut*: at least so much room must be opened among the cells that could
carry the deviation. The master program chooses the cheapest cells that respect all cuts so far.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt
from scipy import sparse

from discreet.audit.solver import LinearProgram, solve_integer
from discreet.tables.suppression.task import Task

__all__ = ["Answer", "Attacks", "Cut", "Master"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_INFINITE = 1e4
#: Cost of setting up a linear program, in pivots.
_SETUP = 10


@dataclasses.dataclass(frozen=True)
class Cut:
    """That some cells, weighed by coefficients, must come to at least so much."""

    columns: Ints
    coefficients: Floats
    least: float


@dataclasses.dataclass(frozen=True)
class Answer:
    """What a choice of cells answers to a demand: a deviation, or the cut that it violates."""

    cut: Cut | None
    #: Cells of the alternative table and how far they move; none where the contributor could exclude
    #: the amount before publication.
    cells: Ints | None = None
    moves: Floats | None = None


class Attacks:
    """The attackers' programs: one column per live cell, a demand at a time."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.cells = np.flatnonzero(task.live)
        self.place = np.full(len(task.value), -1, dtype=np.int64)
        self.place[self.cells] = np.arange(len(self.cells))
        rows = task.equations[:, self.cells].tocsr()
        block = rows[np.diff(rows.indptr) > 0].tocsc()
        zeros, number = np.zeros(block.shape[0]), len(self.cells)
        self._program = LinearProgram(
            block,
            rows=(zeros, zeros),
            columns=(np.zeros(number), np.zeros(number)),
            cost=np.zeros(number),
        )
        self._all = np.arange(number)
        self._up = np.minimum(task.up[self.cells], np.inf)
        self._down = task.down[self.cells]
        self._asked = 0

    @property
    def work(self) -> int:
        """Pivots so far, and what setting programs up takes."""
        return self._program.work + _SETUP * self._asked

    def ask(self, demand: int, who: int | None, x: Floats) -> Answer:
        """Return how a choice x of cells answers a demand, in the eyes of a contributor or nobody."""
        task = self.task
        target, amount = int(task.target[demand]), float(task.amount[demand])
        need = abs(amount)
        up, down = (self._up, self._down) if amount > 0 else (self._down, self._up)
        if who is not None:
            assert task.knowledge is not None
            assert task.prior is not None
            reach = task.prior.reach(who, target, 1 if amount > 0 else -1)
            need = min(need, reach * (1 - 1e-6))
            up, down = self._knowing(who, target, amount, up, down)
        if need <= 1e-6 * abs(amount):
            return Answer(None)
        up, down = up / need, down / need
        place = int(self.place[target])
        # In units of the need. Room beyond the need is hardly ever used, so that separation looks
        # at no more; the cut itself is made with the true room.
        secondary = ~task.primary[self.cells]
        room_up = np.where(secondary, np.minimum(up, 1.0), np.minimum(up, _INFINITE)) * x
        room_down = np.where(secondary, np.minimum(down, 1.0), np.minimum(down, _INFINITE)) * x
        whole = x >= 1 - 1e-9
        room_up = np.where(whole, np.minimum(up, _INFINITE), room_up)
        room_down = np.where(whole, np.minimum(down, _INFINITE), room_down)
        room_up[place], room_down[place] = 1.0, 0.0
        self._asked += 1
        self._program.set_bounds(self._all, -room_down, room_up)
        self._program.set_cost(np.array([place]), np.array([-1.0]))
        solution = self._program.solve()
        reduced = self._program.duals()
        self._program.set_cost(np.array([place]), np.array([0.0]))
        if float(solution.x[place]) < 1 - 1e-6:
            return Answer(self._capacity(reduced, place, up, down))
        if need < abs(amount):
            return Answer(None)
        y = solution.x * amount
        y[np.abs(y) <= 1e-9 * abs(amount)] = 0.0
        moved = np.flatnonzero(y)
        return Answer(None, self.cells[moved], y[moved])

    def _capacity(self, reduced: Floats, place: int, up: Floats, down: Floats) -> Cut | None:
        """Turn dual prices into a cut: the demand is at most the room that prices count."""
        reduced = np.where(np.abs(reduced) < 1e-9, 0.0, reduced)
        share = 1.0 + max(float(reduced[place]), 0.0)
        reduced = reduced / share
        room = np.zeros(len(reduced))
        falls, rises = reduced > 0, reduced < 0
        room[falls] = reduced[falls] * down[falls]
        room[rises] = -reduced[rises] * up[rises]
        room[place] = 0.0
        primary = self.task.primary[self.cells]
        least = 1.0 - float(room[primary].sum())
        if not least > 1e-7:
            return None
        columns = np.flatnonzero((room > 1e-9) & ~primary)
        return Cut(columns, np.minimum(room[columns] / least, 1.0), 1.0)

    def _knowing(
        self, who: int, target: int, amount: float, up: Floats, down: Floats
    ) -> tuple[Floats, Floats]:
        assert self.task.knowledge is not None
        fixed, (cells, falls) = self.task.knowledge.view(who, target)
        up, down = up.copy(), down.copy()
        held = self.place[fixed]
        held = held[held >= 0]
        up[held] = down[held] = 0.0
        at = self.place[cells]
        room = down if amount > 0 else up
        room[at[at >= 0]] = np.minimum(room[at[at >= 0]], falls[at >= 0])
        return up, down


class Master:
    """The choice of cells, and the cuts it has to respect."""

    def __init__(self, task: Task, cells: Ints) -> None:
        self.free = ~task.primary[cells]
        self.price = np.where(self.free, task.price[cells], 0.0)
        # Prices around one keep the solver's tolerances relative.
        self.scale = float(np.median(self.price[self.free])) if self.free.any() else 1.0
        self.lower = np.where(self.free, 0.0, 1.0)
        self.cuts: list[Cut] = []
        self._keys: set[bytes] = set()
        number = len(cells)
        self._program = LinearProgram(
            sparse.csc_matrix((0, number)),
            rows=(np.zeros(0), np.zeros(0)),
            columns=(self.lower, np.ones(number)),
            cost=self.price / self.scale,
        )
        self._work = 0

    @property
    def work(self) -> int:
        """Pivots so far."""
        return self._program.work + self._work

    def add(self, cut: Cut) -> bool:
        """Take in a cut, unless it is known."""
        key = (
            cut.columns.tobytes()
            + np.round(cut.coefficients, 9).tobytes()
            + str(cut.least).encode()
        )
        if key in self._keys:
            return False
        self._keys.add(key)
        self.cuts.append(cut)
        self._program.add_row(cut.columns, cut.coefficients, cut.least, np.inf)
        return True

    def relaxed(self) -> tuple[Floats, float]:
        """Return the cheapest fractional choice and its cost."""
        solution = self._program.solve()
        return np.clip(solution.x, 0.0, 1.0), solution.objective * self.scale

    def whole(
        self, start: Floats, seconds: float, nodes: int | None
    ) -> tuple[Floats | None, float, bool]:
        """Return the cheapest whole choice found, a bound for it, and whether it is proven."""
        lengths = [len(cut.columns) for cut in self.cuts]
        rows = np.repeat(np.arange(len(lengths)), lengths)
        columns = np.concatenate([cut.columns for cut in self.cuts])
        entries = np.concatenate([cut.coefficients for cut in self.cuts])
        number = len(self.price)
        matrix = sparse.csc_matrix((entries, (rows, columns)), shape=(len(lengths), number))
        best = solve_integer(
            matrix,
            rows=(np.array([cut.least for cut in self.cuts]), np.full(len(lengths), np.inf)),
            columns=(self.lower, np.ones(number)),
            cost=self.price / self.scale,
            integer=self.free,
            time_limit=seconds,
            nodes=nodes,
            start=start,
        )
        self._work += best.work
        found = None if best.x.size == 0 else np.round(best.x)
        return found, best.bound * self.scale, best.status == "optimal"
