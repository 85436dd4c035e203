"""The closest additive change in squares, within bounds."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from discreet.data.table import Floats

__all__ = ["least_squares", "project"]


def least_squares(equations: sparse.csc_matrix, weight: Floats, target: Floats) -> Floats:
    """Return the additive table closest to a target in weighted squares.

    >>> least_squares(sparse.csc_matrix([[1.0, -1.0, -1.0]]), np.ones(3), np.array([3.0, 1.0, 1.0]))
    array([2.66666667, 1.33333333, 1.33333333])
    """
    rows = equations.shape[0]
    if not rows:
        return target.copy()
    # A whisper on the diagonal: equations of crossed hierarchies depend on each other.
    inverse = sparse.diags(1 / weight)
    normal = (equations @ inverse @ equations.T + 1e-9 * sparse.identity(rows)).tocsc()
    factor = splu(normal)
    result = target.copy()
    for _ in range(3):  # refinement takes the whisper back
        result = result - (equations.T @ factor.solve(equations @ result)) / weight
    return np.asarray(result)


def project(
    equations: sparse.csc_matrix,
    weight: Floats,
    lower: Floats,
    upper: Floats,
    *,
    start: Floats,
    rounds: int = 4000,
    tolerance: float = 1e-9,
) -> Floats:
    """Minimise the weighted squares of an additive change within bounds.

    Alternating directions: a projection onto the equations with one factorisation kept, then one
    onto the bounds; at the end the cells at their bounds are held and the rest is solved exactly.
    Falls back to `start`, which is feasible, if that does not come together.
    """
    size = len(weight)
    rows = equations.shape[0]
    scale = max(float(np.abs(start).max(initial=0.0)), 1e-9)
    rho = float(np.mean(weight))
    stiff = weight + rho
    inverse = sparse.diags(1 / stiff)
    factor = splu((equations @ inverse @ equations.T + 1e-10 * sparse.identity(rows)).tocsc())
    box, dual = start.copy(), np.zeros(size)
    for _ in range(rounds):
        aim = rho * (box - dual) / stiff
        free = aim - (equations.T @ factor.solve(equations @ aim)) / stiff
        before = box
        box = np.clip(free + dual, lower, upper)
        dual = dual + free - box
        gap = max(np.abs(free - box).max(initial=0.0), np.abs(box - before).max(initial=0.0))
        if gap < tolerance * scale:
            break
    polished = _polish(equations, weight, lower, upper, box, scale)
    return start if polished is None else polished


def _polish(
    equations: sparse.csc_matrix,
    weight: Floats,
    lower: Floats,
    upper: Floats,
    box: Floats,
    scale: float,
) -> Floats | None:
    held = (box <= lower + 1e-6 * scale) | (box >= upper - 1e-6 * scale)
    value = np.where(box - lower <= upper - box, lower, upper)
    change = np.where(held, value, 0.0)
    free = np.flatnonzero(~held)
    if free.size:
        # Nearest to zero among what balances the held cells.
        block = equations[:, free].tocsc()
        inverse = sparse.diags(1 / weight[free])
        normal = (block @ inverse @ block.T + 1e-10 * sparse.identity(block.shape[0])).tocsc()
        factor = splu(normal)
        part = np.zeros(len(free))
        for _ in range(4):
            part -= (block.T @ factor.solve(block @ part + equations @ change)) / weight[free]
        change[free] = part
    wrong = np.abs(equations @ change).max(initial=0.0)
    outside = max((lower - change).max(initial=0.0), (change - upper).max(initial=0.0))
    return change if wrong <= 1e-6 * scale and outside <= 1e-6 * scale else None
