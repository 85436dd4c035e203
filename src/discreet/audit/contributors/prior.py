"""How far a contributor could not exclude a cell to move if nothing at all were published.

Nobody needs protection beyond that: the cell whose whole value one contributor gave cannot fall in
the eyes of that contributor, whatever is withheld.
"""

from __future__ import annotations

import threading

import numpy as np
import numpy.typing as npt

from discreet.audit.knowledge import Contributors
from discreet.audit.outsider.deviations import DeviationModel, independent
from discreet.data.table import Table

__all__ = ["Prior"]

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


class Prior:
    """The reach of cells for each contributor before publication, computed when asked for."""

    def __init__(
        self,
        table: Table,
        value: Floats,
        live: Bools,
        down: Floats,
        up: Floats,
        knowledge: Contributors,
        unit: float,
        *,
        whole: bool = False,
    ) -> None:
        self._whole = whole
        self._table = table
        self._value = value
        self._from_zero = bool(np.array_equal(down, value))
        self._parts = (table.equations, live, down, up, unit)
        self._knowledge = knowledge
        self._model: DeviationModel | None = None
        self._known: dict[tuple[int, int, int], float] = {}
        # One model for all components, which may be audited in threads.
        self._lock = threading.Lock()

    def ceiling(self, who: int, target: int, direction: int) -> float:
        """Return what `reach` cannot exceed, without a program.

        A total of values that are not negative cannot fall below what a contributor gave to one of
        its parts. Infinite where that says nothing.
        """
        if direction > 0 or not self._from_zero:
            return np.inf
        fixed, (bounded, falls) = self._knowledge.view(who, target)
        cells = np.concatenate([fixed, bounded])
        given = np.concatenate([self._value[fixed], self._value[bounded] - falls])
        known = [
            g for c, g in zip(cells.tolist(), given.tolist(), strict=True) if self._below(c, target)
        ]
        if not known:
            return np.inf
        return self._rounded(max(float(self._value[target]) - max(known), 0.0))

    def _rounded(self, reach: float) -> float:
        """Return how far a cell goes by whole numbers, where it counts something."""
        return float(np.floor(reach + 1e-6)) if self._whole else reach

    def _below(self, part: int, total: int) -> bool:
        """Whether a cell is part of another: each of its codes is the other's or lies below it."""
        codes = zip(self._table.codes[part], self._table.codes[total], strict=True)
        for dimension, (code, wanted) in zip(self._table.dimensions, codes, strict=True):
            if not any(_leads(parents, int(code), int(wanted)) for parents in dimension.parents):
                return False
        return True

    def reach(self, who: int, target: int, direction: int) -> float:
        """Return how far a cell can move in the eyes of a contributor if all is withheld."""
        key = (who, target, direction)
        with self._lock:
            if key not in self._known:
                if self._model is None:
                    equations, live, down, up, unit = self._parts
                    rows = independent(equations, live).tocsc()
                    cells = np.flatnonzero(live)
                    self._model = DeviationModel(rows, cells, down, up, unit=unit)
                fixed, floors = self._knowledge.view(who, target)
                end, _, _ = self._model.extreme(target, direction, fixed=fixed, floors=floors)
                self._known[key] = self._rounded(abs(end))
            return self._known[key]


def _leads(parents: npt.NDArray[np.int32], code: int, wanted: int) -> bool:
    while code >= 0 and code != wanted:
        code = int(parents[code])
    return code == wanted
