"""Non-negative estimates below totals that are fixed: the quadratic program of one level.

For each parent, the children's histograms nearest to their estimates (weighted by the precision of
each coordinate) that are non-negative and add up to the parent's histogram. All parents of a block
are solved together by the alternating direction method of multipliers (ADMM): one step is diagonal in
the analysis-of-variance basis, the other cuts at zero.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.compiling import Array, kernel
from discreet.dp.hierarchical.basis import Basis, Query

__all__ = ["fill_margins", "project", "simplex"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
#: The program is solved until no cell is further than this below zero, or for so many rounds.
CLOSE, ROUNDS = 0.005, 120
#: Parents that are done leave the block this often.
_EVERY = 8


@kernel
def _simplex(values: Array, precisions: Array, starts: Array, totals: Array, found: Array) -> None:
    for block in range(len(starts) - 1):
        low, high = starts[block], starts[block + 1]
        # Where the multiplier passes value · precision, a child leaves zero.
        order = np.argsort(-(values[low:high] * precisions[low:high]))
        mass, weight, multiplier = -totals[block], 0.0, 0.0
        for rank in range(high - low):
            child = low + order[rank]
            point = values[child] * precisions[child]
            if rank > 0 and point <= multiplier:
                break
            mass += values[child]
            weight += 1 / precisions[child]
            multiplier = mass / weight
        for child in range(low, high):
            found[child] = max(values[child] - multiplier / precisions[child], 0.0)


def simplex(values: Floats, precisions: Floats, starts: Ints, totals: Floats) -> Floats:
    """Return the non-negative numbers nearest to given ones that add up to the total of each block.

    >>> done = simplex(np.array([3.0, 1.0, -1.0]), np.ones(3), np.array([0, 3]), np.array([3.0]))
    >>> done.tolist()
    [2.5, 0.5, 0.0]
    """
    found = np.empty(len(values))
    _simplex(
        np.ascontiguousarray(values, dtype=np.float64),
        np.ascontiguousarray(precisions, dtype=np.float64),
        np.asarray(starts, dtype=np.int64),
        np.asarray(totals, dtype=np.float64),
        found,
    )
    return found


def project(
    basis: Basis,
    estimate: Floats,
    precisions: Floats,
    starts: Ints,
    totals: Floats | None,
    *,
    fixed: tuple[Query, Floats] | None = None,
    possible: npt.NDArray[np.bool_] | None = None,
    close: float = CLOSE,
    rounds: int = ROUNDS,
) -> Floats:
    """Return non-negative histograms near to estimates; they add up to the totals nearly.

    Parameters
    ----------
    estimate, precisions
        Coordinates of the children, and their precisions.
    starts
        Where the children of each parent begin.
    totals
        The histogram of each parent; None at the root, which has none.
    fixed
        A marginal of each child's histogram, where it is fixed.
    possible
        Cells that may hold somebody.
    """
    goal = None if totals is None else basis.forward(totals)
    known = None if fixed is None else basis.coordinates(fixed[1], fixed[0])
    which = np.zeros(basis.cells, dtype=bool) if fixed is None else basis.seen(fixed[0])
    done = np.zeros_like(estimate)
    weight = np.broadcast_to(precisions, estimate.shape).copy()
    weight[:, which] = np.where(weight[:, which] > 0, weight[:, which], 1.0)
    with np.errstate(divide="ignore"):
        # Coordinates that are not measured, or known, have no say in the size of a step.
        usable = np.isfinite(weight) & (weight > 0)
        logs = np.where(usable, np.log(np.where(usable, weight, 1.0)), 0.0)
    weight = np.where(usable, weight, 0.0)
    step = np.exp(logs.sum(axis=1) / np.maximum(usable.sum(axis=1), 1))[:, None]

    children = np.arange(len(estimate))
    begin = starts
    z, p, s, g, f = estimate, weight, step, goal, known
    cells: Floats | None = None
    u = np.zeros_like(estimate)
    for number in range(rounds):
        inverse = 1 / (p + s)
        y = z.copy() if cells is None else (p * z + s * basis.forward(cells - u)) * inverse
        if g is not None:
            block = np.repeat(np.arange(len(begin) - 1), np.diff(begin))
            share = np.add.reduceat(inverse, begin[:-1], axis=0)
            gap = (g - np.add.reduceat(y, begin[:-1], axis=0)) / share
            y = y + inverse * gap[block]
        if f is not None:
            y[:, which] = f
        plain = basis.backward(y)
        cut = np.maximum(plain + u, 0.0)
        if possible is not None:
            cut[:, ~possible] = 0.0
        moved = np.abs(plain - cut)
        if cells is not None:
            np.maximum(moved, np.abs(cut - cells), out=moved)
        u = u + plain - cut
        cells = cut
        if number % _EVERY == _EVERY - 1 or number == rounds - 1:
            worst = np.maximum.reduceat(moved.max(axis=1), begin[:-1])
            ready = worst <= close
            if number == rounds - 1:
                ready[:] = True
            if not ready.any():
                continue
            leaving = np.repeat(ready, np.diff(begin))
            done[children[leaving]] = cells[leaving]
            if ready.all():
                break
            keep = ~leaving
            children, z, p, s = children[keep], z[keep], p[keep], s[keep]
            u, cells = u[keep], cells[keep]
            g = None if g is None else g[~ready]
            f = None if f is None else f[keep]
            begin = np.concatenate([[0], np.cumsum(np.diff(begin)[~ready])])
    return done


def fill_margins(
    cells: Floats, starts: Ints, totals: Floats, sums: Floats | None = None, *, rounds: int = 4
) -> Floats:
    """Return non-negative matrices near to given ones whose margins are exact.

    A few rounds of proportional fitting bring the margins near; then everything is scaled below
    them, and what lacks is spread in proportion to what rows and columns lack. Cells of an empty column
    stay empty.

    >>> done = fill_margins(
    ...     np.array([[1.0, 1.0], [0.0, 1.0]]),
    ...     np.array([0, 2]),
    ...     np.array([[2.0, 1.0]]),
    ...     np.array([1.0, 2.0]),
    ... )
    >>> done.sum(axis=0).round(9).tolist(), done.sum(axis=1).round(9).tolist()
    ([2.0, 1.0], [1.0, 2.0])
    """
    block = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    found = cells

    def columns() -> Floats:
        return np.asarray(np.add.reduceat(found, starts[:-1], axis=0))

    if sums is None:
        now = columns()
        scale = np.where(now > 0, totals / np.where(now > 0, now, 1.0), 0.0)
        # A column that nobody was estimated in is shared alike.
        lacking = np.where(now > 0, 0.0, totals) / np.diff(starts)[:, None]
        return np.asarray(found * scale[block] + lacking[block])
    for _ in range(rounds):
        now = columns()
        found = found * (np.where(now > 0, totals / np.where(now > 0, now, 1.0), 0.0))[block]
        row = found.sum(axis=1)
        found = found * (np.where(row > 0, sums / np.where(row > 0, row, 1.0), 0.0))[:, None]
    now = columns()
    found = (
        found * np.minimum(1.0, np.where(now > 0, totals / np.where(now > 0, now, 1.0), 0.0))[block]
    )
    lacks_row = np.maximum(sums - found.sum(axis=1), 0.0)
    lacks_column = np.maximum(totals - columns(), 0.0)
    lacks = np.add.reduceat(lacks_row, starts[:-1])
    share = np.where(lacks > 0, 1 / np.where(lacks > 0, lacks, 1.0), 0.0)
    return np.asarray(found + lacks_row[:, None] * (lacks_column * share[:, None])[block])
