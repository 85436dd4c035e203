"""Does a linear code hold a word on few records? The question behind sets below k.

Rows of a generator are combinations of answers, columns are atoms with their numbers of records.
A word is light if the atoms where it is not zero hold fewer than k records in all: that is a
combination of answers that isolates fewer than k records.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.queries.history.field import PRIME, Matrix, eliminate, inverse

__all__ = ["has_light_word"]

#: So many steps of the search before it gives up and calls the code unsafe.
EFFORT = 300


def has_light_word(
    generator: Matrix, sizes: npt.NDArray[np.int64], k: int, *, effort: int = EFFORT
) -> bool:
    """Whether some combination of the rows lives on fewer than k records.

    Exact unless the search runs out of effort; then the answer is yes, which refuses too much and
    never too little.

    Examples
    --------
    >>> rows = np.array([[1, 1, 0], [0, 1, 1]])
    >>> has_light_word(rows, np.array([2, 1, 2]), 4), has_light_word(rows, np.array([3, 1, 3]), 4)
    (True, False)
    """
    search = _Search(effort)
    return search.light(generator % PRIME, sizes.astype(np.int64), k - 1)


class _Search:
    def __init__(self, effort: int) -> None:
        self.left = effort

    def light(self, rows: Matrix, sizes: npt.NDArray[np.int64], budget: int) -> bool:
        """Whether a word of weight at most `budget` exists (or effort has run out)."""
        self.left -= 1
        if self.left < 0:
            return True
        while True:
            if rows.shape[0] == 0:
                return False
            rows, sizes = _merged(rows, sizes)
            if rows.shape[1] == 0 or budget < 0:
                # Rows that vanish on every column that is left: a word already paid for.
                return budget >= 0
            heavy = sizes > budget
            if not heavy.any():
                break
            rows = _vanishing(rows, heavy)
            rows, sizes = rows[:, ~heavy], sizes[~heavy]
        order = np.argsort(-sizes, kind="stable")
        rows, sizes = rows[:, order], sizes[order]
        rank, bound = _disjoint_bases(rows, sizes, budget)
        if rank < rows.shape[0]:
            return True
        if bound > budget:
            return False
        # The largest atom is either outside the word, or paid for.
        first = np.zeros(sizes.size, bool)
        first[0] = True
        if self.light(rows[:, 1:], sizes[1:], budget - int(sizes[0])):
            return True
        return self.light(_vanishing(rows, first)[:, 1:], sizes[1:], budget)


def _merged(rows: Matrix, sizes: npt.NDArray[np.int64]) -> tuple[Matrix, npt.NDArray[np.int64]]:
    """Put together the columns that are multiples of each other: a word has all of them or none."""
    used = rows.any(axis=0)
    rows, sizes = rows[:, used], sizes[used]
    if rows.shape[1] == 0:
        return rows, sizes
    first = (rows != 0).argmax(axis=0)
    lead = rows[first, np.arange(rows.shape[1])]
    unique, place = np.unique(lead, return_inverse=True)
    scale = np.array([inverse(value) for value in unique], np.int64)[place]
    scaled = rows * scale % PRIME
    kept, group = np.unique(scaled, axis=1, return_inverse=True)
    return kept, np.bincount(group.ravel(), weights=sizes).astype(np.int64)


def _vanishing(rows: Matrix, where: npt.NDArray[np.bool_]) -> Matrix:
    """Return a basis of the words that are zero on the given columns."""
    rows = rows.copy()
    done = np.zeros(rows.shape[0], bool)
    for column in np.flatnonzero(where):
        candidates = np.flatnonzero((rows[:, column] != 0) & ~done)
        if candidates.size:
            row = int(candidates[0])
            rows[row] = rows[row] * inverse(rows[row, column]) % PRIME
            eliminate(rows, row, int(column), PRIME)
            done[row] = True
    return rows[~done]


def _disjoint_bases(rows: Matrix, sizes: npt.NDArray[np.int64], budget: int) -> tuple[int, int]:
    """Return the rank, and a lower bound on the weight of any word.

    A word is not zero on at least one atom of each of several disjoint bases of columns.
    """
    free = np.ones(sizes.size, bool)
    rank, bound = 0, 0
    while bound <= budget:
        basis = _basis(rows, free)
        if bound == 0 and rank == 0:
            rank = basis.size
        if basis.size < rows.shape[0]:
            break
        bound += int(sizes[basis].min())
        free[basis] = False
    return rank, bound


def _basis(rows: Matrix, free: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Return the first free columns that are linearly independent."""
    rows = rows.copy()
    done = np.zeros(rows.shape[0], bool)
    found = []
    for column in np.flatnonzero(free):
        candidates = np.flatnonzero((rows[:, column] != 0) & ~done)
        if candidates.size:
            row = int(candidates[0])
            rows[row] = rows[row] * inverse(rows[row, column]) % PRIME
            eliminate(rows, row, int(column), PRIME)
            done[row] = True
            found.append(int(column))
            if len(found) == rows.shape[0]:
                break
    return np.array(found, np.int64)
