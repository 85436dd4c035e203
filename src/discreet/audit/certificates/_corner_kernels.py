"""The compiled search for corners: deviations that are products of one-dimensional ones.

Imported only where it runs, since compiling takes a moment.
"""

# Any in the annotations of compiled functions would tell nothing: numba types them itself.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, untyped-decorator"

from __future__ import annotations

import numba
import numpy as np

__all__ = ["hashed", "protect"]

#: The price of a cell that may not move: higher than that of any cell that may.
_NEVER = 1e6
#: Codes on the way from a leaf up and down to another one, at most.
_LONG = 32
#: Leaves looked at on the other side, and below a total.
_SIBLINGS, _BELOW = 40, 12
#: A sweep may leave this many cells that may not move, for the next sweep to replace.
_HOPE = 4.0
#: Sweeps over the codes of one extreme direction.
_SWEEPS = 2


@numba.njit(cache=True)
def hashed(keys):
    """Return a hash table from keys to places: keys, places."""
    size = 16
    while size < 2 * len(keys):
        size *= 2
    slots = np.full(size, -1, np.int64)
    places = np.full(size, -1, np.int64)
    for place in range(len(keys)):
        at = _slot(keys[place], size)
        while slots[at] >= 0:
            at = (at + 1) & (size - 1)
        slots[at] = keys[place]
        places[at] = place
    return slots, places


@numba.njit(cache=True, inline="always")
def _slot(key, size):
    mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64(mixed >> np.uint64(20)) & (size - 1)


@numba.njit(cache=True)
def _find(index, key):
    slots, places = index
    size = len(slots)
    at = _slot(key, size)
    while slots[at] >= 0:
        if slots[at] == key:
            return places[at]
        at = (at + 1) & (size - 1)
    return -1


@numba.njit(cache=True)
def _refutes(cell, move, known, barred):
    """Whether one of the barred attackers knows that a cell does not move so."""
    starts, who, fall, sole = known
    for entry in range(starts[cell], starts[cell + 1]):
        if sole[entry] or move < -fall[entry] * (1 + 1e-9) - 1e-9:
            for one in barred:
                if who[entry] == one:
                    return True
    return False


@numba.njit(cache=True)
def _price(cell, move, cells, known, barred, target):
    """Return what it costs to move a cell: its price, next to nothing if it is withheld."""
    down, up, rate, live, same = cells
    if cell < 0 or not live[cell]:
        return _NEVER
    room = up[cell] if move > 0 else down[cell]
    if abs(move) > room * (1 + 1e-9):
        return _NEVER
    if len(barred) and same[cell] != same[target] and _refutes(cell, move, known, barred):
        return _NEVER
    return rate[cell]


@numba.njit(cache=True)
def _cost(part, size, place, product, radix, index, move, cells, known, barred, target, limit):
    """Return the cost of some codes of one attribute crossed with what the others have chosen.

    Gives up once it is over the limit.
    """
    codes, signs, lengths = product
    dims = len(lengths)
    at = np.zeros(dims, np.int64)
    total = 0.0
    for first in range(size):
        at[:] = 0
        while True:
            key = part[0, first] * radix[place]
            sign = part[1, first]
            for other in range(dims):
                if other != place:
                    key += codes[other, at[other]] * radix[other]
                    sign *= signs[other, at[other]]
            total += _price(_find(index, key), sign * move, cells, known, barred, target)
            if total >= limit:
                return total
            other = 0
            while other < dims:
                if other != place:
                    at[other] += 1
                    if at[other] < lengths[other]:
                        break
                    at[other] = 0
                other += 1
            if other == dims:
                break
    return total


@numba.njit(cache=True)
def _climb(part, size, code, top, sign, parent):
    """Append the codes from one up to but without the top; return the new size."""
    while code != top and code >= 0:
        part[0, size] = code
        part[1, size] = sign
        size += 1
        code = parent[code]
    return size


@numba.njit(cache=True)
def _choose(place, code, part, product, tree, radix, index, move, cells, known, barred, target):
    """Choose where the deviation of one attribute ends: at another leaf, or at the total.

    Writes the cheapest into `part` and returns its size and cost.
    """
    parent, low, high, leaves = tree
    # A few cells that cannot be used may still be exchanged in the next sweep, many may not.
    best, least, best_size = -2, _HOPE * _NEVER, 0
    trial = np.zeros((2, _LONG), np.int64)
    top, inner = parent[code], code
    step = 1
    while top >= 0:
        width = high[top] - low[top]
        outside = width - (high[inner] - low[inner])
        if outside:
            most = _SIBLINGS if top == parent[code] else _BELOW
            step = max(1, width // most)
            for number in range((target * 7) % step, width, step):
                leaf = leaves[low[top] + number]
                if low[inner] <= low[top] + number < high[inner]:
                    continue
                size = _climb(trial, 0, parent[code], top, 1, parent)
                size = _climb(trial, size, leaf, top, -1, parent)
                cost = _cost(
                    trial, size, place, product, radix, index, move,
                    cells, known, barred, target, least,
                )  # fmt: skip
                if cost < least:
                    best, least, best_size = leaf, cost, size
                    part[:, :size] = trial[:, :size]
            if best >= 0 and least < _NEVER:
                break
        inner, top = top, parent[top]
    size = _climb(trial, 0, parent[code], -1, 1, parent)
    cost = _cost(
        trial, size, place, product, radix, index, move, cells, known, barred, target, least
    )
    if cost < least:
        least, best_size = cost, size
        part[:, :size] = trial[:, :size]
    return best_size, least


@numba.njit(cache=True)
def _descend(place, code, part, product, tree, radix, index, move, cells, known, barred, target):
    """Choose the leaf below a total down to which its deviation is carried."""
    parent, low, high, leaves = tree
    least, best_size = _HOPE * _NEVER, 0
    trial = np.zeros((2, _LONG), np.int64)
    width = high[code] - low[code]
    step = max(1, width // _BELOW)
    for number in range((target * 5) % step, width, step):
        size = _climb(trial, 0, leaves[low[code] + number], code, 1, parent)
        cost = _cost(
            trial, size, place, product, radix, index, move,
            cells, known, barred, target, least,
        )  # fmt: skip
        if cost < least:
            least, best_size = cost, size
            part[:, :size] = trial[:, :size]
    return best_size


@numba.njit(cache=True)
def _corner(target, move, own, trees, radix, index, cells, known, barred, out):
    """Find a cheap corner for one cell; write its cells and signs and return number and cost."""
    dims = len(own)
    codes = np.zeros((dims, 2 * _LONG), np.int64)
    signs = np.zeros((dims, 2 * _LONG), np.int64)
    lengths = np.ones(dims, np.int64)
    below = np.zeros(dims, np.int64)
    part = np.zeros((2, _LONG), np.int64)
    least, number = _NEVER, 0
    for start in range(dims):
        lengths[:] = 1
        below[:] = 0
        for place in range(dims):
            codes[place, 0] = own[place]
            signs[place, 0] = 1
        product = (codes, signs, lengths)
        cost = np.inf
        for _ in range(_SWEEPS + 1):
            for turn in range(dims):
                place = (start + turn) % dims
                tree = (trees[0][place], trees[1][place], trees[2][place], trees[3][place])
                code = own[place]
                if tree[1][code] + 1 < tree[2][code] or tree[3][tree[1][code]] != code:
                    # A total: down to a leaf, with what was chosen beside it kept.
                    kept = lengths[place] - 1 - below[place]
                    aside = np.zeros((2, _LONG), np.int64)
                    for at in range(kept):
                        aside[0, at] = codes[place, 1 + below[place] + at]
                        aside[1, at] = signs[place, 1 + below[place] + at]
                    size = _descend(
                        place, code, part, product, tree, radix, index, move,
                        cells, known, barred, target,
                    )  # fmt: skip
                    for at in range(size):
                        codes[place, 1 + at] = part[0, at]
                        signs[place, 1 + at] = part[1, at]
                    for at in range(kept):
                        codes[place, 1 + size + at] = aside[0, at]
                        signs[place, 1 + size + at] = aside[1, at]
                    below[place] = size
                    lengths[place] = 1 + size + kept
                size, _ = _choose(
                    place, code, part, product, tree, radix, index, move,
                    cells, known, barred, target,
                )  # fmt: skip
                for at in range(size):
                    codes[place, 1 + below[place] + at] = part[0, at]
                    signs[place, 1 + below[place] + at] = part[1, at]
                lengths[place] = 1 + below[place] + size
            found, now = _collect(
                product, radix, index, move, cells, known, barred, target, out, least
            )
            if now < least:
                least, number = now, found
                out[1, :found] = out[0, :found]
                out[3, :found] = out[2, :found]
            if now >= cost:
                break
            cost = now
        if least < 1e-2:
            break
    return number, least


@numba.njit(cache=True)
def _collect(product, radix, index, move, cells, known, barred, target, out, limit):
    """Write all cells of a product with their signs; return how many, and the cost."""
    codes, signs, lengths = product
    dims = len(lengths)
    at = np.zeros(dims, np.int64)
    number, total = 0, 0.0
    while True:
        key, sign = np.int64(0), np.int64(1)
        for place in range(dims):
            key += codes[place, at[place]] * radix[place]
            sign *= signs[place, at[place]]
        cell = _find(index, key)
        total += _price(cell, sign * move, cells, known, barred, target)
        if number >= out.shape[1] or total >= limit:
            return 0, _NEVER
        out[0, number] = cell
        out[2, number] = sign
        number += 1
        place = 0
        while place < dims:
            at[place] += 1
            if at[place] < lengths[place]:
                break
            at[place] = 0
            place += 1
        if place == dims:
            return number, total


@numba.njit(cache=True)
def _attackers(target, found, signs, number, move, same, owner, known, out):
    """Write the attackers who know that a deviation is not true; return how many (with repeats)."""
    starts, who, fall, sole = known
    size = 0
    for at in range(number):
        cell = found[at]
        if same[cell] == same[target]:
            continue
        step = signs[at] * move
        for entry in range(starts[cell], starts[cell + 1]):
            if who[entry] == owner[target]:
                continue
            if sole[entry] or step < -fall[entry] - 1e-9 * max(1.0, abs(step)):
                if size < len(out):
                    out[size] = who[entry]
                size += 1
    return size


@numba.njit(cache=True)
def protect(
    order, first, last, target, amount, met, demand_up, demand_down,
    codes, trees, radix, index, withheld, free, cells, owner, known,
    log_start, log_cells, log_moves,
):  # fmt: skip
    """Meet demands `order[first:last]` by corners where any is found.

    Writes certificates to the log, as far as it has room, and marks demands met and cells
    withheld. Returns where it stopped, the number of certificates and the cells in them.
    """
    down, up, rate, _, same = cells
    starts = known[0]
    informed = len(known[1]) > 0
    most = 4096
    out = np.zeros((4, most), np.int64)
    barred = np.zeros(256, np.int64)
    none = np.zeros(0, np.int64)
    again = np.zeros(256, np.int64)
    count, used = 0, 0
    for turn in range(first, last):
        demand = order[turn]
        if met[demand]:
            continue
        if count + 2 >= len(log_start) or used + 2 * most >= len(log_cells):
            return turn, count, used
        cell, move = target[demand], amount[demand]
        number, cost = _corner(
            cell, move, codes[cell], trees, radix, index, cells, known, none, out
        )
        if cost >= _NEVER:
            continue
        size = 0
        if informed:
            size = _attackers(cell, out[1], out[3], number, move, same, owner, known, barred)
            if size > len(barred):
                continue
        tried = 1
        begin = used
        for at in range(number):
            log_cells[used] = out[1, at]
            log_moves[used] = out[3, at] * move
            used += 1
        if size:
            # A second alternative table, consistent with what each of these contributors knows.
            number, cost = _corner(
                cell, move, codes[cell], trees, radix, index, cells, known, barred[:size], out
            )
            if cost >= _NEVER:
                used = begin
                continue
            log_start[count] = begin
            count += 1
            begin = used
            for at in range(number):
                log_cells[used] = out[1, at]
                log_moves[used] = out[3, at] * move
                used += 1
            tried = 2
        log_start[count] = begin
        count += 1
        met[demand] = True
        for back in range(tried):
            lo = log_start[count - 1 - back]
            hi = used if back == 0 else log_start[count - back]
            mirrored = True
            for at in range(lo, hi):
                one, step = log_cells[at], log_moves[at]
                if not withheld[one]:
                    withheld[one] = True
                    rate[one] = free[one]
                if step > down[one] or -step > up[one]:
                    mirrored = False
            for at in range(lo, hi):
                one, step = log_cells[at], log_moves[at]
                for flip in (1, -1):
                    if flip < 0 and not mirrored:
                        continue
                    wish = demand_up[one] if flip * step > 0 else demand_down[one]
                    if wish < 0 or met[wish] or abs(amount[wish]) > abs(step) * (1 + 1e-9):
                        continue
                    if informed:
                        refuted = 0
                        for other in range(lo, hi):
                            there = log_cells[other]
                            if starts[there] < starts[there + 1] and same[there] != same[one]:
                                again[0] = there
                                out[0, 0] = 1
                                refuted += _attackers(
                                    one, again, out[0], 1, flip * log_moves[other],
                                    same, owner, known, none,
                                )  # fmt: skip
                                if refuted:
                                    break
                        if refuted:
                            continue
                    met[wish] = True
    return last, count, used
