"""The cheapest pattern, with proof: Benders' decomposition after Fischetti and Salazar.

A master program chooses cells; for each demand an attacker's program says whether the choice
protects it. Where not, its dual prices give a *capacity cut*: at least so much room must be opened
among the cells that could carry the deviation. Cuts are first collected on the relaxed master,
then on whole-number choices until one protects everything: no pattern can be cheaper than that.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
from scipy import sparse

from discreet.audit.solver import LinearProgram, solve_integer
from discreet.progress import Progress
from discreet.tables.suppression.task import Task

__all__ = ["Optimum", "optimum"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_INFINITE = 1e4


@dataclasses.dataclass(frozen=True)
class Optimum:
    """The cheapest choice of secondaries found, and what no choice can undercut."""

    #: None where nothing cheaper than the given pattern was found.
    withheld: Bools | None
    bound: float


@dataclasses.dataclass(frozen=True)
class _Cut:
    columns: Ints
    coefficients: Floats
    least: float


class _Attacks:
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

    def cut(self, demand: int, who: int | None, x: Floats) -> tuple[float, _Cut | None]:
        """Return the part of a demand that a choice x of cells protects, and a cut if not all."""
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
            return 1.0, None
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
        self._program.set_bounds(self._all, -room_down, room_up)
        self._program.set_cost(np.array([place]), np.array([-1.0]))
        solution = self._program.solve()
        reduced = self._program.duals()
        self._program.set_cost(np.array([place]), np.array([0.0]))
        met = float(solution.x[place])
        if met >= 1 - 1e-6:
            return met, None
        return met, self._capacity(reduced, place, up, down)

    def _capacity(self, reduced: Floats, place: int, up: Floats, down: Floats) -> _Cut | None:
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
        return _Cut(columns, np.minimum(room[columns] / least, 1.0), 1.0)

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


class _Master:
    """The choice of cells, and the cuts it has to respect."""

    def __init__(self, task: Task, cells: Ints) -> None:
        self.free = ~task.primary[cells]
        self.price = np.where(self.free, task.price[cells], 0.0)
        # Prices around one keep the solver's tolerances relative.
        self.scale = float(np.median(self.price[self.free])) if self.free.any() else 1.0
        self.lower = np.where(self.free, 0.0, 1.0)
        self.cuts: list[_Cut] = []
        self._keys: set[bytes] = set()
        number = len(cells)
        self._program = LinearProgram(
            sparse.csc_matrix((0, number)),
            rows=(np.zeros(0), np.zeros(0)),
            columns=(self.lower, np.ones(number)),
            cost=self.price / self.scale,
        )

    def add(self, cut: _Cut) -> bool:
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

    def whole(self, start: Floats, seconds: float) -> tuple[Floats | None, float, bool]:
        """Return the cheapest whole choice, a bound for it, and whether it is proven."""
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
            start=start,
        )
        found = None if best.x.size == 0 else np.round(best.x)
        return found, best.bound * self.scale, best.status == "optimal"


def optimum(
    task: Task,
    withheld: Bools,
    suspects: Iterable[tuple[int, int]] = (),
    *,
    seconds: float,
    progress: Progress,
) -> Optimum:
    """Search for a pattern cheaper than a given safe one until there is none, or time is up.

    `suspects` are demands and contributors that are likely to matter; others are found on the way.
    """
    deadline = time.monotonic() + seconds
    attacks = _Attacks(task)
    cells = attacks.cells
    master = _Master(task, cells)
    _bridgeless(task, attacks, master)
    known = withheld[cells].astype(np.float64)
    value = float(master.price @ known)
    asked: list[tuple[int, int | None]] = [(d, None) for d in range(len(task.target))]
    asked.extend(suspects)
    step = _step(master.price[master.free])
    bound = _relax(attacks, master, asked, value, step, deadline, progress)
    while bound < value - step + 1e-9 * value and time.monotonic() < deadline:
        left = deadline - time.monotonic()
        x, low, proven = master.whole(known, left)
        bound = max(bound, min(_rounded(low, step), value))
        if x is None or not proven or bound >= value - step + 1e-9 * value:
            break
        progress("proving the optimum", int(bound), int(value))
        if not _separate_whole(attacks, master, asked, x):
            chosen = np.zeros(len(withheld), dtype=bool)
            chosen[cells[x > 0.5]] = True
            return Optimum(chosen, float(master.price @ x))
        bound = max(bound, _relax(attacks, master, asked, value, step, deadline, progress))
    if bound >= value - step + 1e-9 * value:
        bound = value
    return Optimum(None, min(bound, value))


def _relax(
    attacks: _Attacks,
    master: _Master,
    asked: list[tuple[int, int | None]],
    value: float,
    step: float,
    deadline: float,
    progress: Progress,
) -> float:
    """Collect cuts on fractional choices until none is violated by much."""
    bound, stalled = 0.0, 0
    while time.monotonic() < deadline and stalled < 4:
        x, cost = master.relaxed()
        stalled = stalled + 1 if cost < bound + 1e-4 * max(value, 1e-12) else 0
        bound = max(bound, cost)
        progress("bounding the optimum", int(bound), int(value))
        if bound > value - step + 1e-9 * value:
            break
        added = 0
        for demand, who in asked:
            _, cut = attacks.cut(demand, who, x)
            if cut is not None and cut.coefficients @ x[cut.columns] < cut.least - 1e-4:
                added += master.add(cut)
        if not added:
            break
    return _rounded(bound, step)


def _separate_whole(
    attacks: _Attacks, master: _Master, asked: list[tuple[int, int | None]], x: Floats
) -> int:
    """Add a cut for every demand that a whole choice leaves open; return how many there were."""
    task, open_demands = attacks.task, 0
    for demand, who in list(asked):
        _, cut = attacks.cut(demand, who, x)
        if cut is not None:
            open_demands += 1
            master.add(cut)
    if open_demands or task.knowledge is None:
        return open_demands
    # Outsiders are answered: now what each contributor can refute.
    for demand, who in _refuted(attacks, x):
        if (demand, who) in asked:
            continue
        _, cut = attacks.cut(demand, who, x)
        if cut is not None:
            asked.append((demand, who))
            open_demands += 1
            master.add(cut)
    return open_demands


def _refuted(attacks: _Attacks, x: Floats) -> list[tuple[int, int]]:
    """Return demands with the contributors that may be able to refute a choice of cells."""
    task = attacks.task
    assert task.knowledge is not None
    chosen = np.zeros(len(task.value), dtype=bool)
    chosen[attacks.cells[x > 0.5]] = True
    inside = np.unique(task.knowledge.who[chosen[task.knowledge.cell]])
    known = task.knowledge.insiders
    return [
        (demand, int(who))
        for demand, target in enumerate(task.target.tolist())
        for who in inside.tolist()
        if who not in known(target)
    ]


def _bridgeless(task: Task, attacks: _Attacks, master: _Master) -> None:
    """Add that no secondary is alone in an equation: there it would protect nothing."""
    rows = task.table.equations.tocsr()
    for row in range(rows.shape[0]):
        members = attacks.place[rows.indices[rows.indptr[row] : rows.indptr[row + 1]]]
        members = members[members >= 0]
        if not master.free[members].all():
            continue
        for cell in members:
            signs = np.where(members == cell, -1.0, 1.0)
            master.add(_Cut(members, signs, 0.0))


def _step(price: Floats) -> float:
    """Return what costs differ by at least: one where prices are whole numbers, else nothing."""
    if not len(price) or not np.allclose(price, np.round(price), atol=1e-9):
        return 0.0
    return float(np.gcd.reduce(np.round(price).astype(np.int64)))


def _rounded(bound: float, step: float) -> float:
    return bound if step <= 0 else float(np.ceil(bound / step - 1e-6) * step)
