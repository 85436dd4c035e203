"""Deviations that few contributors can refute, and why there is none that goes further."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse

from discreet.audit.outsider.extremes import ExtremeModel
from discreet.audit.solver import LinearProgram

__all__ = ["InformedModel"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

#: By how much less than an end a cell is moved, so that rounding does not put that out of reach.
_NEAR = 1e-9


class InformedModel:
    """A program in which moves beyond what somebody knows are kept small.

    Each column has one part within what everybody knows who knows anything of it, and parts beyond
    that cost. Only bounds change from question to question, so that each starts from the answer to
    the last. Where a cell does not go as far as asked, the equations and bounds that stop it tell
    how far it can go at most.

    Parameters
    ----------
    model
        The program of the outsider.
    lower, upper
        Bounds of its columns by all that anybody knows.
    """

    def __init__(self, model: ExtremeModel, lower: Floats, upper: Floats) -> None:
        self._model = model
        self._tight = lower, upper
        down, up = np.flatnonzero(lower > model.lower), np.flatnonzero(upper < model.upper)
        self._down, self._up = down, up
        size = self._size = len(lower)
        #: Where the part of a column beyond its narrow bounds stands, if it has one.
        self._under, self._over = np.full(size, -1), np.full(size, -1)
        self._under[down] = size + np.arange(len(down))
        self._over[up] = size + len(down) + np.arange(len(up))
        beyond = len(down) + len(up)
        self._lower = np.concatenate([lower, np.zeros(beyond)])
        self._upper = np.concatenate(
            [upper, lower[down] - model.lower[down], model.upper[up] - upper[up]]
        )
        matrix = model.matrix
        zeros = np.zeros(matrix.shape[0])
        self._program = LinearProgram(
            sparse.csc_matrix(sparse.hstack([matrix, -matrix[:, down], matrix[:, up]])),
            rows=(zeros, zeros),
            columns=(self._lower, self._upper),
            cost=np.concatenate([np.zeros(size), np.ones(beyond)]),
            restarted=True,
        )
        self._program.solve()
        self._rest = self._program.basis()
        self._changed: list[Ints] = []
        self._target, self._turn = 0, 1.0

    def aim(self, place: int, direction: int) -> None:
        """Turn to another cell."""
        self._restore()
        self._target = int(self._model.shared.column[place])
        self._turn = direction * float(self._model.shared.sign[place])
        self._program.start(self._rest)

    def moved(self, far: float, at: Ints, lower: Floats, upper: Floats) -> Floats | None:
        """Return a deviation that moves the cell so far, within narrower bounds of other columns.

        None if there is none; what stops it is told by `slopes`.
        """
        self._restore()
        there = at != self._target
        at, lower, upper = at[there], lower[there], upper[there]
        for beyond, narrow, given in (
            (self._under[at], self._tight[0][at], lower),
            (self._over[at], self._tight[1][at], upper),
        ):
            some = beyond >= 0
            self._set(beyond[some], np.zeros(int(some.sum())), np.abs(narrow[some] - given[some]))
        own = np.array([self._target, self._under[self._target], self._over[self._target]])
        move = np.array([self._turn * far * (1 - _NEAR) / self._model.unit, 0.0, 0.0])
        self._set(own[own >= 0], move[own >= 0], move[own >= 0])
        solution = self._program.solve()
        if solution.status != "optimal":
            return None
        x = solution.x[: self._size].copy()
        x[self._down] -= solution.x[self._under[self._down]]
        x[self._up] += solution.x[self._over[self._up]]
        self._model.check(x)
        return x

    def slopes(self) -> Floats | None:
        """Return of each column how much of the cell's move hangs on it: what was just in the way.

        The move is the sum of all columns times their slopes, whatever they do, so that their bounds
        bound it.
        """
        ray = self._program.ray()
        if ray is None:
            return None
        combined = np.asarray(self._model.matrix.T @ ray)
        own = float(combined[self._target])
        if abs(own) <= _NEAR * float(np.abs(combined).max(initial=0.0)):
            return None
        slopes = np.asarray(-self._turn * combined / own)
        slopes[self._target] = 0.0
        return slopes

    def _set(self, at: Ints, lower: Floats, upper: Floats) -> None:
        self._program.set_bounds(at, lower, upper)
        self._changed.append(at)

    def _restore(self) -> None:
        if self._changed:
            at = np.concatenate(self._changed)
            self._program.set_bounds(at, self._lower[at], self._upper[at])
        self._changed = []
