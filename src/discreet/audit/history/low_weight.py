"""Does a linear code hold a codeword on few records? The question behind sets below k.

Rows of a generator are combinations of answers, columns are atoms with their numbers of records.
A codeword has low weight if the atoms where it is not zero hold fewer than k records in all: it is
a combination of answers that isolates fewer than k records.

Every row has a column of its own, where all others are zero. A new row is made zero at these. A
low-weight codeword made of it and of other rows is nonzero at the own columns of all of those, so it
is made of few: they are tried one by one, and each column still nonzero is either counted towards
the weight or cancelled by one more row.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.audit.history.bits import bits_set, low_bit
from discreet.audit.history.field import (
    Marks,
    Matrix,
    Place,
    Vector,
    inverse,
    negative,
    residue,
    secret_prime,
)
from discreet.compiling import inner, kernel

__all__ = ["EFFORT", "adopt", "has_low_weight_codeword", "is_low_weight", "reduce_by_own"]

#: So many steps of the search before it gives up and calls the code unsafe.
EFFORT = 5_000
Ids = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def has_low_weight_codeword(
    generator: Matrix, sizes: npt.NDArray[np.int64], k: int, *, effort: int = EFFORT
) -> bool:
    """Whether some combination of the rows lives on fewer than k records.

    Exact unless the search runs out of effort; then the answer is yes, which refuses too much and
    never too little.

    Examples
    --------
    >>> rows = np.array([[1, 1, 0], [0, 1, 1]])
    >>> (
    ...     has_low_weight_codeword(rows, np.array([2, 1, 2]), 4),
    ...     has_low_weight_codeword(rows, np.array([3, 1, 3]), 4),
    ... )
    (True, False)
    """
    p = secret_prime()
    rows = np.ascontiguousarray(generator, dtype=np.int64) % p
    own = np.full(rows.shape[0], -1, np.int64)
    return any_low_weight(rows, own, sizes.astype(np.int64), 0, rows.shape[1], k, effort, p)


@kernel
def any_low_weight(
    rows: Matrix,
    own: Ids,
    sizes: Vector,
    known: int,
    columns: int,
    k: int,
    effort: int,
    p: int,
) -> bool:
    """Whether a row from `known` on makes a low-weight codeword with those before it.

    Rows and own columns are changed: those that are looked at get columns of their own.
    """
    number = rows.shape[0]
    prints = np.zeros((2, number), np.int64)
    holders = np.zeros((columns, (number + 63) >> 6), np.uint64)
    for row in range(known):
        for column in range(columns):
            if rows[row, column] != 0:
                holders[column, row >> 6] |= np.uint64(1) << np.uint64(row & 63)
    for row in range(known, number):
        reduce_by_own(rows, own, prints, row, columns, p)
        if is_low_weight(rows, own, holders, sizes, row, columns, k - 1, effort, p):
            return True
        adopt(rows, own, holders, prints, sizes, row, columns, p)
    return False


@inner
def reduce_by_own(
    rows: Matrix, own: Ids, prints: Matrix, number: int, columns: int, p: int
) -> None:
    """Make a row zero at the own columns of the rows before it."""
    word = rows[number]
    for row in range(number):
        if word[own[row]] != 0:
            factor = negative(word[own[row]], p)
            for column in range(columns):
                if rows[row, column] != 0:
                    word[column] = residue(word[column] + factor * rows[row, column], p)
            for n in range(2):
                prints[n, number] = residue(prints[n, number] + factor * prints[n, row], p)


@inner
def adopt(
    rows: Matrix,
    own: Ids,
    holders: Marks,
    prints: Matrix,
    sizes: Vector,
    number: int,
    columns: int,
    p: int,
) -> None:
    """Give a row that is zero at others' own columns one of its own, clearing it in the others."""
    word = rows[number]
    best = np.int64(-1)
    for column in range(columns):
        # A large own column leaves little weight for others, so the search ends soon.
        if word[column] != 0 and (best < 0 or sizes[column] > sizes[best]):
            best = np.int64(column)
    scale = inverse(word[best], p)
    held = np.flatnonzero(word[:columns])
    for place in held:
        word[place] = residue(word[place] * scale, p)
        holders[place, number >> 6] |= np.uint64(1) << np.uint64(number & 63)
    for n in range(2):
        prints[n, number] = residue(prints[n, number] * scale, p)
    own[number] = best
    for row in range(number):
        if rows[row, best] != 0:
            factor = negative(rows[row, best], p)
            bit = np.uint64(1) << np.uint64(row & 63)
            for place in held:
                rows[row, place] = residue(rows[row, place] + factor * word[place], p)
                if rows[row, place] != 0:
                    holders[place, row >> 6] |= bit
                else:
                    holders[place, row >> 6] &= ~bit
            for n in range(2):
                prints[n, row] = residue(prints[n, row] + factor * prints[n, number], p)


@inner
def is_low_weight(
    rows: Matrix, own: Ids, holders: Marks, sizes: Vector, number: int, columns: int, budget: int,
    effort: int, p: int,
) -> bool:  # fmt: skip
    """Whether a row, with some before it, makes a codeword on at most `budget` records.

    The row is zero at the own columns of the others; `holders` tells which of the others are not
    zero in a column, one bit each.
    """
    word = rows[number]
    usable = np.zeros((number + 63) >> 6, np.uint64)
    for row in range(number):
        if sizes[own[row]] <= budget:
            usable[row >> 6] |= np.uint64(1) << np.uint64(row & 63)
    held = np.flatnonzero(word[:columns])
    if held.size == 0:
        return True  # a combination of the rows is nothing at all
    order = np.empty(held.size, np.int64)
    ways = np.empty(held.size, np.int64)
    for place in range(held.size):
        column = held[place]
        few = 1 if sizes[column] <= budget else 0
        for w in range(usable.size):
            few += bits_set(holders[column, w] & usable[w])
        if few == 0:
            return False  # too heavy to count and no row cancels it
        # Columns that few rows could clear come first: there are few ways on from them.
        at = place
        while at > 0 and ways[at - 1] > few:
            order[at], ways[at] = order[at - 1], ways[at - 1]
            at -= 1
        order[at], ways[at] = column, few
    # Of the first columns, which each row could clear.
    first = min(held.size, 64)
    covers = np.zeros(number, np.uint64)
    for place in range(first):
        for w in range(usable.size):
            left = holders[order[place], w] & usable[w]
            while left != np.uint64(0):
                covers[(w << 6) + low_bit(left)] |= np.uint64(1) << np.uint64(place)
                left &= left - np.uint64(1)
    return _search(
        rows, sizes, own, holders, usable, order, first, covers, number, columns, budget, effort, p
    )


@inner
def _obstacle(
    rows: Matrix, supports: Ids, starts: Ids, ends: Ids, chosen: Ids, number: int, paid: Bools,
    equations: Matrix, lead: Ids, found: Matrix, level: Place, p: int,
) -> int:  # fmt: skip
    """Find columns that no combination of the chosen rows clears all of; return how many.

    None at all means that a combination with the first row clears every column not paid for.
    Each column is an equation for the coefficients of the rows but the first, known but for a
    factor: only where it is zero matters, so nothing is divided.
    """
    held = np.int64(0)
    for source in range(number):
        for at in range(starts[source], ends[source]):
            column = supports[at]  # again in each row that holds it, then to no effect
            if paid[column]:
                continue
            for n in range(number):
                equations[held, n] = rows[chosen[n], column]
            for e in range(held):
                if equations[held, lead[e]] != 0:
                    _cancel(equations, held, e, lead[e], number, p)
            place = -1
            for n in range(1, number):
                if equations[held, n] != 0:
                    place = n
                    break
            if place < 0 and equations[held, 0] == 0:
                continue
            found[level, held] = column
            if place < 0:
                return int(held + 1)
            lead[held] = place
            for e in range(held):
                if equations[e, place] != 0:
                    _cancel(equations, e, held, place, number, p)
            held += 1
    return 0


@inner
def _cancel(equations: Matrix, which: Place, by: Place, place: Place, number: int, p: int) -> None:
    """Make an equation zero at a place, by another one that is not zero there."""
    factor, scale = negative(equations[which, place], p), equations[by, place]
    if factor == p - scale or factor == scale:  # mostly both are one, but for the sign
        same = factor == scale
        for n in range(number):
            less = equations[by, n] if same else negative(equations[by, n], p)
            value = equations[which, n] + less
            equations[which, n] = value - p if value >= p else value
        return
    for n in range(number):
        value = residue(scale * equations[which, n], p) + residue(factor * equations[by, n], p)
        equations[which, n] = value - p if value >= p else value


@inner
def _search(
    rows: Matrix, sizes: Vector, own: Ids, holders: Marks, usable: Marks, order: Ids, first: int,
    covers: Marks, word: int, columns: int, budget: int, effort: int, p: int,
) -> bool:  # fmt: skip
    """Whether a row, with others that are usable, makes a word within the budget.

    At each level, a column in the way is paid for, or another row that could clear it is chosen.
    The first columns, where the word itself is not zero, must all be paid for or cleared by
    somebody, which is counted before coefficients are looked for. A stack of its own, since
    compiled functions that call themselves cannot be kept.
    """
    levels, width = budget + 2, usable.size
    chosen = np.full(levels, -1, np.int64)
    chosen[0] = word
    paid = np.zeros(rows.shape[1], np.bool_)
    obstacles = np.zeros((levels, levels), np.int64)
    equations = np.empty((levels, levels), np.int64)
    lead = np.empty(levels, np.int64)
    # Where rows that were chosen are not zero, one after another, and where each starts and ends.
    supports = np.empty(4 * columns, np.int64)
    supports[: order.size], stored = order, order.size
    begin, end = np.zeros((2, word), np.int64)
    starts, ends = np.zeros((2, levels), np.int64)  # of those chosen now
    ends[0] = order.size
    # Of each level: columns in the way, those paid for so far, rows chosen, records left to pay,
    # whether the column of the row chosen was paid for, and what is undone on the way back.
    count, step, taken, left, was_paid, last = np.zeros((6, levels), np.int64)
    could = np.zeros((levels, width), np.uint64)  # rows not tried yet
    tried = np.zeros((levels, width), np.uint64)  # rows that levels above need not try
    open_ = np.zeros(levels, np.uint64)
    open_[0] = ~np.uint64(0) >> np.uint64(64 - first)
    taken[0], left[0] = 1, budget
    level, entering = np.int64(0), True
    while level >= 0:
        if entering:
            effort -= 1
            if effort < 0:
                return True
            if open_[level] != np.uint64(0):
                enough = _can_cover(sizes, own, covers, usable, left[level], open_[level])
                count[level] = 1 if enough else -1
                obstacles[level, 0] = order[low_bit(open_[level])]
            else:
                count[level] = _obstacle(
                    rows, supports, starts, ends, chosen, taken[level], paid, equations, lead,
                    obstacles, level, p,
                )  # fmt: skip
            if count[level] == 0:
                return True
            step[level], last[level] = 0, -1
            for w in range(width):
                tried[level, w] = could[level, w] = np.uint64(0)
                if left[level] > 0:
                    for n in range(count[level]):
                        could[level, w] |= holders[obstacles[level, n], w] & usable[w]
        elif last[level] < 0:
            paid[obstacles[level, step[level] - 1]] = False
        else:
            row = last[level]
            paid[own[row]] = was_paid[level] == 1
            chosen[taken[level]] = -1
            # Words with this row have been looked for.
            bit = np.uint64(1) << np.uint64(row & 63)
            usable[row >> 6] &= ~bit
            tried[level, row >> 6] |= bit
        entering = False
        taken[level + 1 if level + 1 < levels else level] = taken[level]
        while step[level] < count[level] and not entering and left[level] > 0:
            column = obstacles[level, step[level]]
            step[level] += 1
            if sizes[column] <= left[level] and not paid[column]:
                paid[column] = True
                left[level + 1] = left[level] - sizes[column]
                open_[level + 1] = open_[level]
                for place in range(first):
                    if order[place] == column:
                        open_[level + 1] &= ~(np.uint64(1) << np.uint64(place))
                entering = True
        if not entering:
            row = _next(could, level, chosen, taken[level], sizes, own, left[level])
            if row >= 0:
                last[level] = row
                chosen[taken[level]] = row
                if end[row] == 0:
                    if stored + columns > supports.size:
                        more = np.empty(2 * supports.size, np.int64)
                        more[:stored] = supports[:stored]
                        supports = more
                    begin[row] = stored
                    for column in range(columns):
                        supports[stored] = column
                        stored += rows[row, column] != 0
                    end[row] = stored
                starts[taken[level]], ends[taken[level]] = begin[row], end[row]
                was_paid[level] = 1 if paid[own[row]] else 0
                paid[own[row]] = True
                left[level + 1] = left[level] - sizes[own[row]]
                open_[level + 1] = open_[level] & ~covers[row]
                taken[level + 1] = taken[level] + 1
                entering = True
        if entering:
            level += 1
        else:
            for w in range(width):
                usable[w] |= tried[level, w]
            level -= 1
    return False


@inner
def _next(
    could: Marks, level: Place, chosen: Ids, taken: int, sizes: Vector, own: Ids, left: int
) -> int:
    """Return the next row to choose at a level and forget it; −1 if there is none."""
    for w in range(could.shape[1]):
        while could[level, w] != np.uint64(0):
            row = (w << 6) + low_bit(could[level, w])
            could[level, w] &= could[level, w] - np.uint64(1)
            free = sizes[own[row]] <= left
            for place in range(taken):
                free = free and chosen[place] != row
            if free:
                return int(row)
    return -1


@inner
def _can_cover(
    sizes: Vector, own: Ids, covers: Marks, usable: Marks, left: int, uncovered: int
) -> bool:
    """Whether steps within the budget could suffice for the columns that nobody clears yet."""
    wanted, most = bits_set(uncovered), 1
    for w in range(usable.size):
        some = usable[w]
        while some != np.uint64(0) and wanted > left * most:
            row = (w << 6) + low_bit(some)
            some &= some - np.uint64(1)
            if sizes[own[row]] <= left:
                most = max(most, bits_set(covers[row] & uncovered))
    return bool(wanted <= left * most)
