"""Alternative databases: other amounts of the records that would have been published alike.

A random one shows at once of very many cells and people that they are not told. It is found by
projecting a random wish onto the amounts that move no told sum (conjugate gradients on the normal
equations), and is compared with all told sums before anything is concluded from it. What it does not
show stays open: then the exact way decides.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse import csgraph

from discreet.progress import require_time

__all__ = [
    "BALANCE", "STILL", "alternatives", "bound", "bound_besides", "moving_together", "told_parts",
    "told_rows", "unmoved",
]  # fmt: skip

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

#: Told sums may move by this share of what moves in them: a million times less than what counts as a
#: move, so that a sum which nearly follows from others is not taken for one that is free.
BALANCE = 1e-11
#: Steps of the projection; what has not converged by then proves nothing.
_STEPS = 400
#: A move of less than this, of wishes around one, counts as none.
STILL = 1e-5
#: Draws of alternatives before cells that none of them moves far enough are left to the exact way.
_ROUNDS = 4
_TOGETHER = 3
#: Amounts that may move as far as they can count as no more than this multiple of the middle one.
_LARGER = 4.0
#: Two atoms whose moves have directions that differ by less may be tied.
_TIED = 1e-7
#: A direction so close to a plane may be on either side of it.
_ON_THE_PLANE = 1e-9


def told_rows(parts: sparse.csr_matrix, leaves: sparse.csr_matrix) -> sparse.csr_matrix:
    """Return the told sums of a table over atoms, in as few entries as tell the same.

    `parts` says which parts each told cell has, `leaves` which atoms each part has. Where a part is
    told by itself, it is taken out of the larger cells.

    >>> cells = sparse.csr_matrix([[1.0, 1.0, 1.0], [1.0, 0.0, 0.0]])
    >>> told_rows(cells, sparse.identity(3, format="csr")).toarray().tolist()
    [[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]]
    """
    others, single = told_parts(parts)
    alone = sparse.csr_matrix(
        (np.ones(len(single)), (np.arange(len(single)), single)),
        shape=(len(single), parts.shape[1]),
    )
    return sparse.csr_matrix(sparse.vstack([others, alone]) @ leaves)


def told_parts(parts: sparse.csr_matrix) -> tuple[sparse.csr_matrix, Ints]:
    """Return told sums over parts that are not told by themselves, and the parts that are.

    >>> rows, single = told_parts(sparse.csr_matrix([[1.0, 1.0, 1.0], [1.0, 0.0, 0.0]]))
    >>> rows.toarray().tolist(), single.tolist()
    ([[0.0, 1.0, 1.0]], [0])
    """
    sizes = np.diff(parts.indptr)
    single = np.unique(parts.indices[parts.indptr[:-1][sizes == 1]])
    keep = np.ones(parts.shape[1])
    keep[single] = 0.0
    others = sparse.csr_matrix(parts[sizes > 1] @ sparse.diags(keep))
    others.eliminate_zeros()
    others = others[np.diff(others.indptr) > 0]
    return others, single.astype(np.int64)


def alternatives(told: sparse.csr_matrix, scale: Floats, wishes: Floats) -> Floats | None:
    """Return moves of the atoms that leave every told sum as it is, near to the wishes.

    `wishes`, one column each, are in parts of `scale`, and so is what is returned. None where the
    projection does not converge.

    >>> told = sparse.csr_matrix(np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]))
    >>> found = alternatives(told, np.ones(3), np.array([[1.0], [0.0], [1.0]]))
    >>> np.abs(found.ravel().round(6)).tolist()
    [0.5, 0.5, 0.0]
    """
    # Rows of length one: sums over many atoms weigh as much as those over few.
    rows = sparse.csr_matrix(told.T.multiply(scale[:, None]))  # one row for each atom
    length = np.sqrt(np.bincount(rows.indices, rows.data**2, told.shape[0]))
    rows.data /= np.where(length > 0, length, 1.0)[rows.indices]
    across = rows.T  # the same entries, read the other way round
    move = wishes.astype(np.float64).copy()
    taken = 0
    while taken < _STEPS:
        require_time()
        # The residual is taken anew from the moves: what the steps carry along drifts from it.
        left = across @ move
        if not np.isfinite(left).all():
            return None
        if (np.abs(left) <= BALANCE).all():
            return move
        taken += _steps(rows, across, move, left, _STEPS - taken)
    return None


def _steps(
    rows: sparse.csr_matrix, across: sparse.csc_matrix, move: Floats, left: Floats, most: int
) -> int:
    """Take steps of conjugate gradients, changing `move`, until little is left; return how many."""
    step = left.copy()
    size = np.einsum("ij,ij->j", left, left)
    # Half of what the comparison allows leaves room for the drift; rounding allows little more.
    goal = (BALANCE / 2) ** 2
    taken = 0
    while taken < most and (size > goal).any():
        require_time()
        taken += 1
        change = rows @ step
        spread = np.einsum("ij,ij->j", change, change)
        by = np.where(spread > 0, size / np.where(spread > 0, spread, 1.0), 0.0)
        move -= change * by
        left -= (across @ change) * by
        before, size = size, np.einsum("ij,ij->j", left, left)
        step = left + step * np.where(before > 0, size / np.where(before > 0, before, 1.0), 0.0)
    return max(taken, 1)


def bound(moves: Floats, *, pairs: bool) -> Bools:
    """Return which atoms never move, and with `pairs` which always move in proportion to another.

    >>> bound(np.array([[1.0, 2.0, 0.5], [2.0, 4.0, 1.0], [0.0, 0.0, 0.0]]), pairs=False).tolist()
    [False, False, True]
    >>> bound(np.array([[1.0, 2.0, 0.5], [2.0, 4.0, 1.0], [3.0, 4.0, 5.0]]), pairs=True).tolist()
    [True, True, False]
    """
    still: Bools = np.abs(moves).max(axis=1, initial=0.0) < STILL
    if not pairs or len(moves) < 2:
        return still
    found, first, second = _together(moves, still)
    found[first] = True
    found[second] = True
    return found


def bound_besides(moves: Floats, known: Collection[frozenset[int]]) -> Bools:
    """Return which atoms never move, or always with others, but for groups that are known as such.

    >>> moves = np.array([[1.0, 2.0, 0.5], [2.0, 4.0, 1.0], [3.0, 4.0, 5.0]])
    >>> bound_besides(moves, {frozenset({0, 1})}).tolist()
    [False, False, False]
    >>> bound_besides(moves, {frozenset({0, 2})}).tolist()
    [True, True, False]
    """
    still: Bools = np.abs(moves).max(axis=1, initial=0.0) < STILL
    if len(moves) < 2:
        return still
    found, first, second = _together(moves, still)
    for group in _groups(first, second, len(moves)):
        if frozenset(group.tolist()) not in known:
            found[group] = True
    return found


def moving_together(moves: Floats) -> list[Ints]:
    """Return groups of rows that move in proportion.

    >>> moves = np.array([[1.0, 2.0, 0.5], [3.0, 4.0, 5.0], [2.0, 4.0, 1.0]])
    >>> [group.tolist() for group in moving_together(moves)]
    [[0, 2]]
    """
    still: Bools = np.abs(moves).max(axis=1, initial=0.0) < STILL
    if len(moves) < 2:
        return []
    unclear, first, second = _together(moves, still)
    return [one for one in _groups(first, second, len(moves)) if not unclear[one].any()]


def _groups(first: Ints, second: Ints, size: int) -> list[Ints]:
    """Return the groups that pairs make."""
    links = sparse.coo_matrix((np.ones(len(first)), (first, second)), (size, size))
    _, label = csgraph.connected_components(links, directed=False)
    inside = np.unique(np.concatenate([first, second]))
    inside = inside[np.argsort(label[inside], kind="stable")]
    ends = np.flatnonzero(np.diff(label[inside])) + 1
    return [one for one in np.split(inside, ends) if len(one)]


def _together(moves: Floats, still: Bools) -> tuple[Bools, Ints, Ints]:
    """Return the atoms of which nothing can be said, and pairs that move in proportion."""
    length = np.linalg.norm(moves, axis=1)
    way = moves / np.where(still, 1.0, length)[:, None]
    # Opposite ways are one: all are turned to the same side of a plane, in which none lies.
    side = way @ np.linspace(0.6, 1.7, moves.shape[1])
    found = still | (np.abs(side) < _ON_THE_PLANE)
    way *= np.where(side < 0, -1.0, 1.0)[:, None]
    order = np.argsort(np.abs(side), kind="stable")
    way = way[order]
    first, second = [], []
    # Others that happen to lie between the two of a pair are few.
    for gap in (1, 2, 3):
        near = np.flatnonzero((np.abs(way[gap:] - way[:-gap]) <= _TIED).all(axis=1))
        first.append(order[near])
        second.append(order[near + gap])
    return found, np.concatenate(first).astype(np.int64), np.concatenate(second).astype(np.int64)


def unmoved(
    told: sparse.csr_matrix,
    there: Floats,
    cells: sparse.csr_matrix,
    levels: tuple[Floats, Floats],
    loose: Ints,
    rng: np.random.Generator,
) -> Ints | None:
    """Return the cells not shown to reach so far below and above what they are, all amounts positive.

    `there` are the amounts of the atoms, `cells` the rows of the cells over them. The cells and the
    `loose` atoms, which other withheld cells hold, may move as far as they can. None where the
    projection does not converge.

    >>> told = sparse.csr_matrix(np.ones((1, 3)))
    >>> cells = sparse.csr_matrix(np.array([[1.0, 0.0, 0.0]]))
    >>> rng, there = np.random.default_rng(1), np.array([4.0, 5.0, 6.0])
    >>> unmoved(told, there, cells, (np.array([1.0]), np.array([1.0])), np.arange(3), rng)
    array([], dtype=int64)
    >>> unmoved(told, there, cells, (np.array([1.0]), np.array([12.0])), np.arange(3), rng)
    array([0])
    """
    below, above = levels[0] <= 0, levels[1] <= 0
    # Small steps of many others balance the cells; few large ones would end at zero soon, and
    # amounts of very different size make the projection slow.
    middle = float(np.median(there[there > 0])) if (there > 0).any() else 0.0
    scale = np.minimum(there, middle)
    inside = np.union1d(cells.indices, loose)
    scale[inside] = np.minimum(there[inside], _LARGER * middle)
    gain = np.ones(cells.shape[0])
    for _ in range(_ROUNDS):
        open_ = np.flatnonzero(~(below & above))
        if not len(open_):
            break
        rows = cells[open_]
        wishes = np.zeros((len(there), _TOGETHER))
        signs = rng.choice([-1.0, 1.0], (len(open_), _TOGETHER))
        held = np.repeat(np.arange(len(open_)), np.diff(rows.indptr))
        wishes[rows.indices] = (signs * gain[open_, None])[held]
        found = alternatives(told, scale, wishes)
        if found is None:
            return None
        for way in (found, -found):
            moves = way * scale[:, None]
            falling = moves < -1e-12 * np.maximum(there, 1.0)[:, None]
            ends = np.where(falling, there[:, None] / np.where(falling, -moves, 1.0), np.inf)
            far = np.minimum(ends.min(axis=0, initial=np.inf), 1e6)
            reached = (rows @ moves) * far
            below[open_] |= (-reached >= levels[0][open_, None]).any(axis=1)
            above[open_] |= (reached >= levels[1][open_, None]).any(axis=1)
        # Cells that what is told holds fast are pulled harder than the others.
        wanted = np.maximum(levels[0], levels[1])[open_]
        pulled = np.abs(rows @ (found * scale[:, None])).max(axis=1)
        gain[open_] *= np.clip(2 * wanted / np.maximum(pulled, 1e-9 * wanted), 0.5, 50.0)
    return np.flatnonzero(~(below & above))
