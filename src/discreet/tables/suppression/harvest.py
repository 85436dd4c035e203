"""Deviations kept from earlier questions: what they still answer needs no program."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.audit.certificates.collection import Certificates
from discreet.tables.suppression.task import Task

__all__ = ["Harvest", "Key"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

#: A demand and the contributor against whom it is to be met; none: an outsider.
Key = tuple[int, int | None]

#: Alternative tables that are kept at most.
_MOST = 4000


class Harvest:
    """Deviations, each with the demands that it meets where a choice of cells has room for it.

    A choice may be fractional: a cell chosen to a part x has room for x times the demand, or x
    times all it can move where that is less.
    """

    def __init__(self, task: Task) -> None:
        self._task = task
        self._by_target: dict[int, list[int]] = {}
        for demand, cell in enumerate(task.target.tolist()):
            self._by_target.setdefault(cell, []).append(demand)
        self._cells: list[Ints] = []
        self._moves: list[Floats] = []
        self._need: list[float] = []
        #: The demands each one meets, with the contributors who can refute it.
        self._meets: list[dict[int, frozenset[int]]] = []

    def add(self, cells: Ints, moves: Floats) -> dict[int, frozenset[int]]:
        """Keep a deviation and its mirror image; return the demands met, and who knows better."""
        task = self._task
        mirrored = ((moves <= task.down[cells]) & (-moves <= task.up[cells])).all()
        found: dict[int, frozenset[int]] = {}
        for signed in (moves, -moves) if mirrored else (moves,):
            meets = self._met(cells, signed)
            if meets:
                self._cells.append(cells)
                self._moves.append(signed)
                self._need.append(float(np.abs(moves).max()))
                self._meets.append(meets)
            if signed is moves:
                found = meets
        if len(self._cells) > _MOST:
            for kept in (self._cells, self._moves, self._need, self._meets):
                del kept[: _MOST // 2]
        return found

    def _met(self, cells: Ints, moves: Floats) -> dict[int, frozenset[int]]:
        task = self._task
        need = float(np.abs(moves).max()) * (1 - 1e-6)
        meets = {}
        for place in np.flatnonzero(task.primary[cells] & (np.abs(moves) >= need)).tolist():
            target = int(cells[place])
            for demand in self._by_target.get(target, ()):
                amount, move = float(task.amount[demand]), float(moves[place])
                if amount * move > 0 and abs(move) >= abs(amount) * (1 - 1e-6):
                    meets[demand] = (
                        frozenset()
                        if task.knowledge is None
                        else task.knowledge.refuting(target, cells, moves)
                    )
        return meets

    def answers(self, x: Floats) -> dict[int, frozenset[int]]:
        """Return the demands that a choice is known to meet, each with who may know better.

        `x` has an entry for every cell of the table.
        """
        found: dict[int, frozenset[int]] = {}
        if not self._cells:
            return found
        kept = Certificates.of(zip(self._cells, self._moves, strict=True))
        cells, moves, task = kept.cells, kept.moves, self._task
        need = np.repeat(self._need, np.diff(kept.start))
        room = np.where(moves > 0, task.up[cells], task.down[cells])
        part = x[cells]
        bounded = np.where(part >= 1 - 1e-9, room, np.minimum(room, need) * part)
        fits = np.abs(moves) <= bounded * (1 + 1e-9)
        for entry in np.flatnonzero(np.logical_and.reduceat(fits, kept.start[:-1])).tolist():
            for demand, doubting in self._meets[entry].items():
                found[demand] = found[demand] & doubting if demand in found else doubting
        return found

    def certificates(self, chosen: Bools) -> list[tuple[Ints, Floats]]:
        """Return the deviations that move no other cells than those chosen."""
        return [
            (cells, moves)
            for cells, moves in zip(self._cells, self._moves, strict=True)
            if chosen[cells].all()
        ]
