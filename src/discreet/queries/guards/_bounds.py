"""What answers and public bounds say together about single values, by linear programming."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["Knowledge"]

Ids = npt.NDArray[np.int64]
#: Beyond so many atoms the programs are not solved, and the value is taken as known.
MOST_ATOMS = 500


class Knowledge:
    """Answered sums of one attribute over profiles, and the bounds everybody knows.

    Examples
    --------
    >>> knowledge = Knowledge(np.array([1, 1, 1]), 0.0, 10.0)
    >>> knowledge.add(np.array([0, 1, 2]), 29.0)  # each is at least 9
    >>> knowledge.narrowest()
    1.0
    """

    def __init__(self, counts: Ids, low: float, high: float) -> None:
        self._counts = counts
        self._low, self._high = low, high
        self._sets: list[npt.NDArray[np.bool_]] = []
        self._sums: list[float] = []

    def copy(self) -> Knowledge:
        """Return the same knowledge, to be extended."""
        twin = Knowledge(self._counts, self._low, self._high)
        twin._sets, twin._sums = list(self._sets), list(self._sums)
        return twin

    def add(self, inside: Ids, value: float) -> None:
        """Learn the sum over some profiles."""
        held = np.zeros(self._counts.size, bool)
        held[inside] = True
        self._sets.append(held)
        self._sums.append(value)

    def narrowest(self) -> float:
        """Return the width of the tightest interval that follows for any one record."""
        if not self._sets:
            return self._high - self._low
        members, place = np.unique(np.array(self._sets), axis=1, return_inverse=True)
        sizes = np.bincount(place.ravel(), weights=self._counts, minlength=members.shape[1])
        used = sizes > 0
        columns, weights = members[:, used].astype(np.float64), sizes[used].astype(np.float64)
        if weights.size > MOST_ATOMS:
            return 0.0
        widths = [self._width(columns, weights, atom) for atom in range(weights.size)]
        return min(widths, default=self._high - self._low)

    def _width(
        self, members: npt.NDArray[np.float64], sizes: npt.NDArray[np.float64], atom: int
    ) -> float:
        low, high = self._range(members, sizes, atom)
        others = sizes[atom] - 1
        least = max(self._low, low - others * self._high)
        most = min(self._high, high - others * self._low)
        return max(float(most - least), 0.0)

    def _range(
        self, members: npt.NDArray[np.float64], sizes: npt.NDArray[np.float64], atom: int
    ) -> tuple[float, float]:
        """Return the smallest and largest sum an atom can have."""
        from scipy.optimize import linprog

        goal = np.zeros(sizes.size)
        goal[atom] = 1.0
        limits = [(float(n) * self._low, float(n) * self._high) for n in sizes]
        sums = np.array(self._sums)
        ends = []
        for sign in (1.0, -1.0):
            found = linprog(sign * goal, A_eq=members, b_eq=sums, bounds=limits, method="highs")
            # No solution would mean that the bounds are wrong: then everything is known.
            value = found.fun if found.status == 0 else None
            ends.append(float("nan") if value is None else sign * float(value))
        if any(np.isnan(ends)):
            return 0.0, 0.0
        return float(ends[0]), float(ends[1])
