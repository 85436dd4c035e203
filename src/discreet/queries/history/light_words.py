"""Does a linear code hold a word on few records? The question behind sets below k.

Rows of a generator are combinations of answers, columns are atoms with their numbers of records.
A word is light if the atoms where it is not zero hold fewer than k records in all: that is a
combination of answers that isolates fewer than k records.

Every row has a column of its own, where all others are zero. A new row is made zero at these. A
light word made of it and of others then holds the own columns of all the others, so that it is made
of few: they are tried, row by row, and a column that they leave is either paid for or cleared by
one more row.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.queries.history.compiling import bits_set, entry, inner, low_bit
from discreet.queries.history.field import PRIME, Marks, Matrix, Vector, inverse, negative, residue

__all__ = ["EFFORT", "adopt", "has_light_word", "is_light", "reduce_by_own"]

#: So many steps of the search before it gives up and calls the code unsafe.
EFFORT = 2_000
Ids = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


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
    own = np.full(rows.shape[0], -1, np.int64)
    return bool(any_light(rows, own, sizes.astype(np.int64), 0, *rows.shape, k, effort))


@entry
def any_light(
    rows: Matrix,
    own: Ids,
    sizes: Vector,
    known: int,
    number: int,
    columns: int,
    k: int,
    effort: int,
) -> bool:
    """Whether one of the rows from `known` on makes a light word with those before it.

    Rows and own columns are changed: those that are looked at get columns of their own.
    """
    prints = np.zeros((2, rows.shape[0]), np.int64)
    for row in range(known, number):
        reduce_by_own(rows, own, prints, row, columns)
        if is_light(rows, own, sizes, row, columns, k - 1, effort):
            return True
        adopt(rows, own, prints, sizes, row, columns)
    return False


@inner
def reduce_by_own(rows: Matrix, own: Ids, prints: Matrix, number: int, columns: int) -> None:
    """Make a row zero at the own columns of the rows before it."""
    word = rows[number]
    for row in range(number):
        if word[own[row]] != 0:
            factor = negative(word[own[row]])
            for column in range(columns):
                if rows[row, column] != 0:
                    word[column] = residue(word[column] + factor * rows[row, column])
            for n in range(2):
                prints[n, number] = residue(prints[n, number] + factor * prints[n, row])


@inner
def adopt(rows: Matrix, own: Ids, prints: Matrix, sizes: Vector, number: int, columns: int) -> None:
    """Give a row that is zero at others' own columns one of its own, clearing it in the others."""
    word = rows[number]
    best = -1
    for column in range(columns):
        # A large column costs a light word much: the search ends soon.
        if word[column] != 0 and (best < 0 or sizes[column] > sizes[best]):
            best = column
    scale = inverse(word[best])
    held = np.flatnonzero(word[:columns])
    for column in held:
        word[column] = residue(word[column] * scale)
    for n in range(2):
        prints[n, number] = residue(prints[n, number] * scale)
    own[number] = best
    for row in range(number):
        if rows[row, best] != 0:
            factor = negative(rows[row, best])
            for column in held:
                rows[row, column] = residue(rows[row, column] + factor * word[column])
            for n in range(2):
                prints[n, row] = residue(prints[n, row] + factor * prints[n, number])


@inner
def is_light(
    rows: Matrix, own: Ids, sizes: Vector, number: int, columns: int, budget: int, effort: int
) -> bool:
    """Whether a row, with some before it, makes a word on no more records than the budget.

    The row is zero at the own columns of the others.
    """
    word = rows[number]
    banned = np.empty(number, np.bool_)
    for row in range(number):
        banned[row] = sizes[own[row]] > budget
    held = np.flatnonzero(word[:columns])
    if held.size == 0:
        return True  # a combination of the rows is nothing at all
    ways = np.empty(held.size, np.int64)
    for place in range(held.size):
        column = held[place]
        ways[place] = 1 if sizes[column] <= budget else 0
        for row in range(number):
            if not banned[row] and rows[row, column] != 0:
                ways[place] += 1
        if ways[place] == 0:
            return False  # can be neither paid for nor cleared
    # Columns that few rows could clear come first: there are few ways on from them.
    order = np.empty(columns, np.int64)
    filled = 0
    for place in range(held.size):
        at = filled
        while at > 0 and ways[at - 1] > ways[place]:
            at -= 1
        column, few = held[place], ways[place]
        for later in range(filled, at, -1):
            order[later], ways[later] = order[later - 1], ways[later - 1]
        order[at], ways[at] = column, few
        filled += 1
    for column in range(columns):
        if word[column] == 0:
            order[filled] = column
            filled += 1
    # Of the first columns, which each row could clear.
    first = min(held.size, 64)
    covers = np.zeros(number, np.uint64)
    for row in range(number):
        if not banned[row]:
            for place in range(first):
                if rows[row, order[place]] != 0:
                    covers[row] |= np.uint64(1) << np.uint64(place)
    return _search(rows, sizes, own, order, first, covers, number, banned, budget, effort)


@inner
def _obstacle(rows: Matrix, order: Ids, chosen: Ids, number: int, paid: Bools) -> tuple[Ids, int]:
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
            if equation[lead[e]] != 0:
                factor = negative(equation[lead[e]])
                for n in range(number):
                    equation[n] = residue(equation[n] + factor * equations[e, n])
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
        scale = inverse(equation[place])
        for n in range(number):
            equations[held, n] = residue(equation[n] * scale)
        lead[held] = place
        for e in range(held):
            if equations[e, place] != 0:
                factor = negative(equations[e, place])
                for n in range(number):
                    equations[e, n] = residue(equations[e, n] + factor * equations[held, n])
        held += 1
    return found, 0


@inner
def _search(
    rows: Matrix, sizes: Vector, own: Ids, order: Ids, first: int, covers: Marks, word: int,
    banned: Bools, budget: int, effort: int,
) -> bool:  # fmt: skip
    """Whether a row, with others that are not banned, makes a word within the budget.

    At each level, a column in the way is paid for (steps up to `count`), or another row that could
    clear it is chosen (the steps after). The first columns, where the word itself is not zero, must
    all be paid for or cleared by somebody, which is counted before coefficients are looked for.
    A stack of its own, since compiled functions that call themselves cannot be kept.
    """
    number = banned.size
    chosen = np.full(budget + 2, -1, np.int64)
    chosen[0] = word
    paid = np.zeros(rows.shape[1], np.bool_)
    tried = np.zeros((budget + 2, number), np.bool_)
    obstacles = np.zeros((budget + 2, budget + 2), np.int64)
    count, step, taken, left, was_paid = np.zeros((5, budget + 2), np.int64)
    open_ = np.zeros(budget + 2, np.uint64)
    open_[0] = ~np.uint64(0) >> np.uint64(64 - first)
    taken[0], left[0] = 1, budget
    level, entering = 0, True
    while level >= 0:
        if entering:
            effort -= 1
            if effort < 0:
                return True
            _meet(
                rows, sizes, own, order, covers, chosen, paid, banned, taken[level], left[level],
                open_[level], obstacles[level], count, level,
            )  # fmt: skip
            if count[level] == 0:
                return True
            for row in range(number):
                tried[level, row] = False
            step[level] = 0
        else:
            _undo(own, chosen, paid, banned, tried, obstacles, count, step, taken, was_paid, level)
            step[level] += 1
        entering = False
        steps = count[level] * (1 + number) if left[level] > 0 else 0  # none if there are −1
        while step[level] < steps and not entering:
            cost = _cost(
                rows, sizes, own, chosen, paid, banned, obstacles[level], count[level],
                step[level], taken[level],
            )  # fmt: skip
            if 0 < cost <= left[level]:
                more = _take(
                    own, chosen, paid, obstacles[level], count[level], step[level], taken[level],
                    number,
                )  # fmt: skip
                was_paid[level] = more >> 1
                taken[level + 1] = taken[level] + (more & 1)
                left[level + 1] = left[level] - cost
                open_[level + 1] = open_[level]
                if more & 1:
                    open_[level + 1] &= ~covers[chosen[taken[level]]]
                else:
                    for place in range(first):
                        if order[place] == obstacles[level, step[level]]:
                            open_[level + 1] &= ~(np.uint64(1) << np.uint64(place))
                level += 1
                entering = True
            else:
                step[level] += 1
        if not entering:
            for row in range(number):
                if tried[level, row]:
                    banned[row] = False
            level -= 1
    return False


@inner
def _meet(
    rows: Matrix, sizes: Vector, own: Ids, order: Ids, covers: Marks, chosen: Ids, paid: Bools,
    banned: Bools, taken: int, left: int, uncovered: int, obstacles: Ids, count: Ids, level: int,
) -> None:  # fmt: skip
    """Find columns in the way at a level; −1 of them if no steps that are left could suffice."""
    if uncovered == np.uint64(0):
        found, count[level] = _obstacle(rows, order, chosen, taken, paid)
        for place in range(count[level]):
            obstacles[place] = found[place]
        return
    most = 1
    for row in range(banned.size):
        if not banned[row] and sizes[own[row]] <= left:
            most = max(most, bits_set(covers[row] & uncovered))
    enough = bits_set(uncovered) <= left * most
    count[level] = 1 if enough else -1
    obstacles[0] = order[low_bit(uncovered)]


@inner
def _cost(
    rows: Matrix, sizes: Vector, own: Ids, chosen: Ids, paid: Bools,
    banned: Bools, columns: Ids, count: int, step: int, taken: int,
) -> int:  # fmt: skip
    """Return how many records a step costs, 0 if it makes no sense."""
    if step < count:
        return 0 if paid[columns[step]] else sizes[columns[step]]
    column, row = columns[(step - count) // banned.size], (step - count) % banned.size
    if rows[row, column] == 0 or banned[row]:
        return 0
    for place in range(taken):
        if chosen[place] == row:
            return 0
    return sizes[own[row]]


@inner
def _take(
    own: Ids, chosen: Ids, paid: Bools, columns: Ids, count: int, step: int,
    taken: int, number: int,
) -> int:  # fmt: skip
    """Make a step; return whether a row was chosen, and twice whether its column was paid for."""
    if step < count:
        paid[columns[step]] = True
        return 0
    row = (step - count) % number
    chosen[taken] = row
    was_paid = paid[own[row]]
    paid[own[row]] = True
    return 3 if was_paid else 1


@inner
def _undo(
    own: Ids, chosen: Ids, paid: Bools, banned: Bools,
    tried: Bools, obstacles: Matrix, count: Ids, step: Ids, taken: Ids,
    was_paid: Ids, level: int,
) -> None:  # fmt: skip
    """Take the last step at a level back."""
    if step[level] < count[level]:
        paid[obstacles[level, step[level]]] = False
        return
    row = (step[level] - count[level]) % banned.size
    paid[own[row]] = was_paid[level] == 1
    chosen[taken[level]] = -1
    # Words with this row have been looked for.
    banned[row] = True
    tried[level, row] = True
