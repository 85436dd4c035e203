"""How far a contributor could not exclude a cell to move if nothing at all were published.

Nobody needs protection beyond that: the cell whose whole value one contributor gave cannot fall in
the eyes of that contributor, whatever is withheld.
"""

from __future__ import annotations

import threading

import numpy as np
import numpy.typing as npt
from scipy import sparse

from discreet.audit.deviations import DeviationModel, independent
from discreet.audit.knowledge import Contributors

__all__ = ["Prior"]

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


class Prior:
    """The reach of cells for each contributor before publication, computed when asked for."""

    def __init__(
        self,
        equations: sparse.csr_matrix,
        live: Bools,
        down: Floats,
        up: Floats,
        knowledge: Contributors,
        unit: float,
    ) -> None:
        self._parts = (equations, live, down, up, unit)
        self._knowledge = knowledge
        self._model: DeviationModel | None = None
        self._known: dict[tuple[int, int, int], float] = {}
        # One model for all components, which may be audited in threads.
        self._lock = threading.Lock()

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
                self._known[key] = abs(end)
            return self._known[key]
