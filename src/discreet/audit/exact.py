"""Exact ends of intervals, with as few programs as that takes.

Each program ends at a table that looks the same; it shows how far *every* cell can go at least.
What the equations alone say how far a cell can go at most is often reached that way, and such a
cell needs no program of its own.
"""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt

from discreet.audit.contributors.insiders import NEAR, TOLERANCE, Insiders
from discreet.audit.contributors.views import Views
from discreet.audit.outsider.extremes import ExtremeModel
from discreet.audit.outsider.propagation import most
from discreet.audit.problem import Decision, Problem

__all__ = ["exact"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def exact(problem: Problem, cells: Ints, wanted: Ints, decision: Decision) -> None:
    """Compute exact ends; for contributors, the ends for the one who knows most about the cell."""
    cells = np.sort(cells)
    places = np.searchsorted(cells, wanted)
    ends = _Ends(problem, cells)
    ends.push(places)
    ask = ends.outsider
    if problem.knowledge is not None:
        ask = ends.informed if problem.whole else ends.insiders().end
    for direction, needs, reach, met in (
        (1, problem.upper_need, decision.rise, decision.met_up),
        (-1, problem.lower_need, decision.fall, decision.met_down),
    ):
        for cell, place in zip(wanted.tolist(), places.tolist(), strict=True):
            reach[cell], met[cell] = ask(place, direction, float(needs[cell]))


class _Ends:
    """How far cells of one component go for an outsider, with the tables that showed it.

    Cells are told by their place among `cells`, which are in order.
    """

    def __init__(self, problem: Problem, cells: Ints) -> None:
        self._problem, self._cells = problem, cells
        self._unit = unit = problem.unit(cells)
        self._model = ExtremeModel(problem.equations, cells, problem.down, problem.up, unit=unit)
        self._room = most(problem.equations, cells, problem.down, problem.up)
        self._most = {1: self._room[1], -1: self._room[0]}
        #: The farthest seen.
        self._seen = {side: np.zeros(len(cells)) for side in (1, -1)}
        self._pushed: list[Floats] = []
        #: Tables of whole numbers that were found, as moves of columns.
        self._tables: list[Floats] = []

    def insiders(self) -> Insiders:
        """Return the contributors to the component, who are shown what was found so far."""
        problem, cells = self._problem, self._cells
        assert problem.knowledge is not None
        assert problem.prior is not None
        insiders = Insiders(cells, self._model, self._views, problem.prior)
        for x in self._pushed:
            insiders.keep(x)
        return insiders

    def push(self, places: Ints) -> None:
        """Push all cells that are not decided at a time, as long as that decides many."""
        tuning = self._problem.tuning
        for side in (-1, 1):
            while True:
                left = places[~self._there(side)[places] & np.isfinite(self._most[side][places])]
                if len(left) < tuning.pushed_from:
                    break
                x = self._model.farthest(left, side).x
                self._pushed.append(x)
                self._take(x)
                if len(left) - int((~self._there(side)[left]).sum()) < tuning.pushed_worth:
                    break

    def _there(self, side: int) -> Bools:
        limit = self._most[side]
        slack = NEAR * np.maximum(np.where(np.isfinite(limit), limit, 0.0), self._unit)
        return np.asarray(self._seen[side] >= limit - slack)

    def _take(self, x: Floats) -> None:
        """Remember how far cells go in a deviation; of counts, in one of whole numbers."""
        if self._problem.whole:
            if (np.abs(x - np.round(x)) > 1e-6).any():
                return
            x = np.round(x)
            self._tables.append(x)
        moves = self._model.moves(x)
        for side in (1, -1):
            np.maximum(self._seen[side], side * moves, out=self._seen[side])

    def outsider(self, place: int, side: int, need: float) -> tuple[float, bool]:
        """Return how far a cell goes, and whether that is enough."""
        end = float(self._seen[side][place])
        if not self._there(side)[place]:
            if self._problem.whole:
                found = self._model.farthest_whole(place, side)
            else:
                found = self._model.farthest(np.array([place]), side)
            if len(found.x):
                self._take(found.x)
            end = found.end
        return end, end >= need * (1 - TOLERANCE)

    def informed(self, place: int, side: int, need: float) -> tuple[float, bool]:
        """Return how far a count goes in the eyes of the best informed, and whether that is enough.

        Only tables of whole numbers count. Contributors do not who knew as much before.
        """
        knowledge, prior = self._problem.knowledge, self._problem.prior
        assert knowledge is not None
        assert prior is not None
        views, cell = self._views, int(self._cells[place])
        best, _ = self.outsider(place, side, need)
        enough, left = best >= need, views.strangers(place)
        at = self._model.shared.column[place]
        for x in self._tables:
            if side * self._model.shared.sign[place] * x[at] >= best:
                left &= views.refuting(place, x)
        while left.any():
            who = int(np.flatnonzero(left)[0])
            left[who] = False
            alone = np.zeros(len(left), dtype=bool)
            alone[who] = True
            found = self._model.farthest_whole(place, side, views.limits(place, alone))
            if len(found.x):
                self._take(found.x)
            if found.end < need:
                before = prior.reach(int(views.who[who]), cell, side)
                if before < need and found.end >= before:
                    continue
                enough = False
            best = min(best, found.end)
            if len(found.x) and found.end >= best:
                left &= views.refuting(place, found.x)
        return best, enough

    @functools.cached_property
    def _views(self) -> Views:
        problem = self._problem
        assert problem.knowledge is not None
        return Views(problem.knowledge, problem.equations, self._cells, self._model, self._room)
