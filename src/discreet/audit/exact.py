"""Exact ends of intervals, with as few programs as that takes.

Each program ends at a table that looks the same; it shows how far *every* cell can go at least.
What the equations alone say how far a cell can go at most is often reached that way, and such a
cell needs no program of its own. Of contributors only those are asked who know that the tables
found so far are not true.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy import sparse

from discreet.audit.deviations import DeviationModel

if TYPE_CHECKING:
    from discreet.audit.decide import Decision, Problem

__all__ = ["exact", "most"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

#: How much of a need may be missing for it to count as met: published values are rounded.
TOLERANCE = 1e-6
#: How near to the most it can be an end counts as there.
_NEAR = 1e-8
#: Rounds in which bounds are passed on along equations.
_ROUNDS = 20
#: Cells from which on many are pushed at a time, and how many must be decided to go on with that.
_MANY, _WORTH = 50, 10
#: Deviations that are kept for contributors to judge.
_KEPT = 1000


def exact(problem: Problem, cells: Ints, wanted: Ints, decision: Decision) -> None:
    """Compute exact ends; for contributors, the ends for the one who knows most about the cell."""
    ends = _Ends(problem, cells)
    ends.push(wanted)
    for direction, needs, reach, met in (
        (1, problem.upper_need, decision.rise, decision.met_up),
        (-1, problem.lower_need, decision.fall, decision.met_down),
    ):
        for cell in wanted.tolist():
            reach[cell], met[cell] = ends.informed(cell, direction, float(needs[cell]))


def most(
    equations: sparse.csc_matrix, cells: Ints, down: Floats, up: Floats
) -> tuple[Floats, Floats]:
    """Return how far cells can fall and rise at most, by one equation after the other.

    >>> rows = sparse.csc_matrix([[1.0, -1.0, -1.0]])
    >>> most(rows, np.arange(3), np.array([0.0, 2.0, 5.0]), np.array([0.0, np.inf, np.inf]))
    (array([0., 2., 5.]), array([0., 5., 2.]))
    """
    block = equations[:, cells].tocoo()
    row, column, plus = block.row, block.col, block.data > 0
    fall, rise = down[cells].astype(np.float64), up[cells].astype(np.float64)
    for _ in range(_ROUNDS):
        before = fall.copy(), rise.copy()
        # What an entry adds to its equation at most, and what it takes away at most.
        adds = np.where(plus, rise[column], fall[column])
        takes = np.where(plus, fall[column], rise[column])
        may_take, may_add = (_others(row, x, block.shape[0]) for x in (takes, adds))
        np.minimum.at(rise, column, np.where(plus, may_take, may_add))
        np.minimum.at(fall, column, np.where(plus, may_add, may_take))
        if np.array_equal(fall, before[0]) and np.array_equal(rise, before[1]):
            break
    return fall, rise


def _others(row: npt.NDArray[np.int32], amounts: Floats, number: int) -> Floats:
    """Return for each entry the sum of the others of its equation; infinite where one is."""
    endless = np.isinf(amounts)
    finite = np.where(endless, 0.0, amounts)
    total = np.bincount(row, finite, number)[row] - finite
    return np.where(np.bincount(row, endless, number)[row] - endless > 0, np.inf, total)


class _Ends:
    """How far cells of one component go, with the tables that showed it."""

    def __init__(self, problem: Problem, cells: Ints) -> None:
        self._problem, self._cells = problem, cells
        unit = problem.unit(cells)
        self._model = DeviationModel(problem.equations, cells, problem.down, problem.up, unit=unit)
        self._place = {int(cell): at for at, cell in enumerate(cells)}
        fall, rise = most(problem.equations, cells, problem.down, problem.up)
        self._most = {1: rise, -1: fall}
        self._unit, self._slack = unit, _NEAR * unit
        #: The farthest seen, and in which of the deviations found.
        self._seen = {side: np.zeros(len(cells)) for side in (1, -1)}
        self._where = {side: np.full(len(cells), -1, dtype=np.int64) for side in (1, -1)}
        self._found: list[tuple[Ints, Floats]] = []

    def push(self, wanted: Ints) -> None:
        """Push all cells that are not decided at a time, as long as that decides many."""
        at = np.array([self._place[int(cell)] for cell in wanted], dtype=np.int64)
        for side in (-1, 1):
            while True:
                left = at[~self._there(side)[at] & np.isfinite(self._most[side][at])]
                if len(left) < _MANY:
                    break
                self._take(self._model.push(self._cells[left], side))
                if len(left) - int((~self._there(side)[left]).sum()) < _WORTH:
                    break

    def _there(self, side: int) -> npt.NDArray[np.bool_]:
        limit = self._most[side]
        slack = np.maximum(_NEAR * np.where(np.isfinite(limit), limit, 0.0), self._slack)
        return self._seen[side] >= limit - slack

    def _take(self, moves: Floats) -> None:
        keep = self._problem.knowledge is not None and len(self._found) < _KEPT
        for side in (1, -1):
            farther = side * moves > self._seen[side]
            if farther.any():
                self._seen[side][farther] = side * moves[farther]
                self._where[side][farther] = len(self._found) if keep else -1
        if keep:
            self._found.append(self._moved(moves))

    def _end(self, cell: int, side: int) -> tuple[float, tuple[Ints, Floats] | None]:
        """Return how far a cell goes for an outsider, and a deviation that goes there."""
        at = self._place[cell]
        if self._there(side)[at]:
            end, where = float(self._seen[side][at]), int(self._where[side][at])
            if where >= 0:
                return end, self._found[where]
            if self._problem.knowledge is None or end <= 0:
                return end, None
        end, _, moves = self._model.extreme(cell, side)
        if not len(moves):
            return abs(end), None
        self._take(moves)
        return abs(end), self._moved(moves)

    def informed(self, cell: int, side: int, need: float) -> tuple[float, bool]:
        """Return how far a cell goes in the eyes of the best informed, and whether that is enough."""
        problem = self._problem
        best, found = self._end(cell, side)
        enough = best >= need * (1 - TOLERANCE)
        knowledge, prior = problem.knowledge, problem.prior
        if knowledge is None or prior is None or best <= 0:
            return best, enough
        if found is None:
            # Nothing told which cells the unlimited move needs: ask every attacker.
            left = frozenset(knowledge.who.tolist()) - knowledge.insiders(cell)
        else:
            left = knowledge.refuting(cell, *found)
        while left:
            who = min(left)
            left = left - {who}
            fixed, floors = knowledge.view(who, cell)
            end, _, moves = self._model.extreme(cell, side, fixed=fixed, floors=floors)
            if abs(end) < need * (1 - TOLERANCE):
                reach = prior.reach(who, cell, side)
                if (
                    reach < need * (1 - TOLERANCE)
                    and abs(end) >= reach * (1 - 2 * TOLERANCE) - 1e-9
                ):
                    # It knew as much before publication.
                    continue
                enough = False
            best = min(best, abs(end))
            if len(moves):
                # Who must believe this sees the cell go as far.
                left = left & knowledge.refuting(cell, *self._moved(moves))
        return best, enough

    def _moved(self, moves: Floats) -> tuple[Ints, Floats]:
        noise = 1e-9 * max(self._unit, float(np.abs(moves).max(initial=0.0)))
        some = np.flatnonzero(np.abs(moves) > noise)
        return self._cells[some], moves[some]
