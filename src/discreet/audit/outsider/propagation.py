"""How far cells can move at most, by one equation after the other: without programs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse

__all__ = ["most"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

#: Rounds in which bounds are passed on along equations.
_ROUNDS = 20


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
