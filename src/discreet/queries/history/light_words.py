"""Does a linear code hold a word on few records? The question behind sets below k.

Rows of a generator are combinations of answers, columns are atoms with their numbers of records.
A word is light if the atoms where it is not zero hold fewer than k records in all: that is a
combination of answers that isolates fewer than k records.

Every row gets a column of its own, where all others are zero. A word then holds the own columns
of all rows it is made of, so that a light one is made of few: they are tried, row by row, and a
column that they leave is either paid for or cleared by one more row.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from discreet.queries.history.field import PRIME, Matrix, Vector, eliminate, inverse

__all__ = ["has_light_word", "own_columns"]

#: So many steps of the search before it gives up and calls the code unsafe.
EFFORT = 20_000
Ids = npt.NDArray[np.int64]


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
    rows = np.ascontiguousarray(generator, dtype=np.int64) % PRIME
    sizes = sizes.astype(np.int64)
    own = np.full(rows.shape[0], -1, np.int64)
    if own_columns(rows, sizes, own) is None:
        return True  # a combination of the rows is nothing at all
    return light_with(rows, sizes, own, np.arange(rows.shape[0]), k, effort=effort)


def own_columns(rows: Matrix, sizes: Vector, own: Ids) -> npt.NDArray[np.bool_] | None:
    """Give each row without one (−1) a column of its own, in place; None if rows are dependent.

    Returns which rows are new or have become others: a word of theirs alone may be new, too.
    """
    changed = own < 0
    for row in np.flatnonzero(own < 0):
        for other in np.flatnonzero(own >= 0):
            factor = rows[row, own[other]]
            if factor:
                rows[row] = (rows[row] - factor * rows[other]) % PRIME
        held = np.flatnonzero(rows[row])
        if not held.size:
            return None
        # A large column costs a light word much: the search ends soon.
        column = int(held[sizes[held].argmax()])
        rows[row] = rows[row] * inverse(rows[row, column]) % PRIME
        changed |= rows[:, column] != 0
        eliminate(rows, int(row), column, PRIME)
        own[row] = column
    return changed


def light_with(
    rows: Matrix, sizes: Vector, own: Ids, new: Ids, k: int, *, effort: int = EFFORT
) -> bool:
    """Whether a light word is made of one of the rows `new` and any others."""
    budget = k - 1
    usable = np.flatnonzero(sizes[own] <= budget)
    # Columns that few rows could clear come first: there are few ways on from them.
    order = np.argsort((rows[usable] != 0).sum(axis=0), kind="stable").astype(np.int64)
    left = np.array([effort], np.int64)
    banned_rows = np.zeros(rows.shape[0], bool)
    for row in new:
        cost = int(sizes[own[row]])
        if cost <= budget:
            chosen = np.full(budget + 1, -1, np.int64)
            chosen[0] = row
            paid = np.zeros(sizes.size, np.bool_)
            paid[own[row]] = True
            if _search(
                rows, sizes, own, order, chosen, 1, paid, banned_rows.copy(), budget - cost, left,
                PRIME,
            ):  # fmt: skip
                return True
        banned_rows[row] = True  # words with it have been looked for
    return False


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _inverse(value: int, prime: int) -> int:
    result, base, power = 1, value % prime, prime - 2
    while power > 0:
        if power & 1:
            result = result * base % prime
        base = base * base % prime
        power >>= 1
    return result


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _obstacle(
    rows: Matrix, order: Ids, chosen: Ids, number: int, paid: npt.NDArray[np.bool_], prime: int
) -> tuple[Ids, int]:
    """Return columns that no combination of the chosen rows clears all of, and how many.

    None at all means that a combination with the first row clears every column not paid for.
    Each column is an equation for the coefficients of the rows but the first.
    """
    found = np.empty(number, np.int64)
    unknowns = number - 1
    equations = np.zeros((unknowns, number), np.int64)
    lead = np.empty(unknowns, np.int64)
    held = 0
    equation = np.empty(number, np.int64)
    for column in order:
        if paid[column]:
            continue
        some = False
        for n in range(number):
            equation[n] = rows[chosen[n], column]
            some = some or equation[n] != 0
        if not some:
            continue
        for e in range(held):
            factor = equation[lead[e]]
            if factor != 0:
                for n in range(number):
                    equation[n] = (equation[n] - factor * equations[e, n]) % prime
        place = -1
        for n in range(1, number):
            if equation[n] != 0:
                place = n
                break
        if place < 0 and equation[0] == 0:
            continue
        found[held] = column
        if place < 0:
            return found, held + 1
        scale = _inverse(equation[place], prime)
        for n in range(number):
            equations[held, n] = equation[n] * scale % prime
        lead[held] = place
        for e in range(held):
            factor = equations[e, place]
            if factor != 0:
                for n in range(number):
                    equations[e, n] = (equations[e, n] - factor * equations[held, n]) % prime
        held += 1
    return found, 0


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _search(
    rows: Matrix,
    sizes: Vector,
    own: Ids,
    order: Ids,
    chosen: Ids,
    number: int,
    paid: npt.NDArray[np.bool_],
    banned: npt.NDArray[np.bool_],
    budget: int,
    left: Ids,
    prime: int,
) -> bool:
    """Whether the chosen rows, with others, make a word that costs no more than the budget."""
    left[0] -= 1
    if left[0] < 0:
        return True
    columns, count = _obstacle(rows, order, chosen, number, paid, prime)
    if count == 0:
        return True
    if budget <= 0:
        return False
    for n in range(count):
        column = columns[n]
        if sizes[column] <= budget and not paid[column]:
            paid[column] = True
            if _search(
                rows, sizes, own, order, chosen, number, paid, banned, budget - sizes[column],
                left, prime,
            ):  # fmt: skip
                return True
            paid[column] = False
    tried = np.zeros(rows.shape[0], np.bool_)
    answer = False
    for n in range(count):
        for row in range(rows.shape[0]):
            if rows[row, columns[n]] == 0 or banned[row] or sizes[own[row]] > budget:
                continue
            is_chosen = False
            for place in range(number):
                is_chosen = is_chosen or chosen[place] == row
            if is_chosen:
                continue
            chosen[number] = row
            was_paid = paid[own[row]]
            paid[own[row]] = True
            answer = _search(
                rows, sizes, own, order, chosen, number + 1, paid, banned,
                budget - sizes[own[row]], left, prime,
            )  # fmt: skip
            paid[own[row]] = was_paid
            chosen[number] = -1
            if answer:
                return True
            # Words with this row have been looked for.
            banned[row] = True
            tried[row] = True
    for row in range(rows.shape[0]):
        if tried[row]:
            banned[row] = False
    return answer
