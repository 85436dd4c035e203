"""The compiled loop behind controlled rounding: single cells step up and down, totals follow.

Imported only where it runs, since compiling takes a moment.
"""

# Any in the annotations of compiled functions would tell nothing: numba types them itself.
# mypy: disable-error-code="no-untyped-def,untyped-decorator,no-untyped-call"

from __future__ import annotations

import numba
import numpy as np

__all__ = ["anneal"]


@numba.njit(cache=True, inline="always")
def _price(step, low, high, slack, leave, wrong):
    """Return what it costs that a cell stands at a multiple: nothing next to the truth."""
    if step < low:
        away = low - step
    elif step > high:
        away = step - high
    else:
        return 0.0
    return leave + wrong * (away - 1) if slack else wrong * away


@numba.njit(cache=True)
def _change(cells, start, end, other, other_end, by, step, low, high, slack, terms):
    """Return the change of the price if one single cell steps by `by` and another the other way."""
    leave, wrong = terms
    total = 0.0
    while start < end or other < other_end:
        # Both lists are sorted; what both cells are part of stays as it is.
        if other >= other_end or (start < end and cells[start] < cells[other]):
            cell, sign = cells[start], by
            start += 1
        elif start >= end or cells[other] < cells[start]:
            cell, sign = cells[other], -by
            other += 1
        else:
            start += 1
            other += 1
            continue
        now = step[cell]
        then = now + sign
        total += _price(then, low[cell], high[cell], slack[cell], leave, wrong)
        total -= _price(now, low[cell], high[cell], slack[cell], leave, wrong)
    return total


@numba.njit(cache=True)
def _apply(cells, start, end, other, other_end, by, step):
    """Let the sums of one single cell step by `by` and those of another the other way."""
    for at in range(start, end):
        step[cells[at]] += by
    for at in range(other, other_end):
        step[cells[at]] -= by


@numba.njit(cache=True, inline="always")
def _fits(x, lowest, highest, cell, by):
    return lowest[cell] <= x[cell] + by <= highest[cell]


@numba.njit(cache=True)
def _beside(one, sums, sums_start, parts, parts_start):
    """Return a random single cell that stands in an equation with one, or that one itself."""
    width = sums_start[one + 1] - sums_start[one]
    if width == 0:
        return one
    row = sums[sums_start[one] + np.random.randint(width)]
    begin = parts_start[row]
    return parts[begin + np.random.randint(parts_start[row + 1] - begin)]


@numba.njit(cache=True)
def anneal(
    above, above_start, sums, sums_start, parts, parts_start, keys, lowest, highest,
    x, step, low, high, slack, terms, heat, rounds, seed,
):  # fmt: skip
    """Change x (steps of single cells) and `step` (of all cells) in place; return what is left.

    `above` lists the cells that each single cell is part of, `sums` the equations it stands in and
    `parts` the single cells that stand in each equation; `keys` (ascending) say which four cells
    are the corners of a rectangle. One cell steps, or two in opposite directions, or the corners
    of a rectangle, which leaves most totals as they are. Ends early once nothing is left to pay.
    """
    np.random.seed(seed)
    number = len(x)
    leave, wrong = terms
    energy = 0.0
    for cell in range(len(step)):
        energy += _price(step[cell], low[cell], high[cell], slack[cell], leave, wrong)
    if number == 0:
        return energy
    hot, cold = heat
    cooling = (cold / hot) ** (1000.0 / rounds)
    warmth = hot
    for turn in range(rounds):
        if turn % 1000 == 999:
            warmth *= cooling
        one = np.random.randint(number)
        by = 1 if np.random.random() < 0.5 else -1
        if not _fits(x, lowest, highest, one, by):
            by = -by
            if not _fits(x, lowest, highest, one, by):
                continue
        kind = np.random.random()
        other, third, fourth = one, one, -1
        if kind < 0.8:
            other = _beside(one, sums, sums_start, parts, parts_start)
            if other != one and not _fits(x, lowest, highest, other, -by):
                continue
        if kind < 0.5 and other != one:
            third = _beside(one, sums, sums_start, parts, parts_start)
            if third in (one, other) or not _fits(x, lowest, highest, third, -by):
                continue
            key = keys[other] + keys[third] - keys[one]
            fourth = np.searchsorted(keys, key)
            if fourth in (number, one) or keys[fourth] != key:
                continue
            if not _fits(x, lowest, highest, fourth, by):
                continue
        start, end = above_start[one], above_start[one + 1]
        first, last = (0, 0) if other == one else (above_start[other], above_start[other + 1])
        rise = _change(above, start, end, first, last, by, step, low, high, slack, terms)
        if fourth >= 0:
            _apply(above, start, end, first, last, by, step)
            far, far_end = above_start[fourth], above_start[fourth + 1]
            near, near_end = above_start[third], above_start[third + 1]
            rise += _change(above, far, far_end, near, near_end, by, step, low, high, slack, terms)
        if rise > 0 and np.random.random() >= np.exp(-rise / warmth):
            if fourth >= 0:
                _apply(above, start, end, first, last, -by, step)
            continue
        x[one] += by
        if other != one:
            x[other] -= by
        if fourth >= 0:
            x[fourth] += by
            x[third] -= by
            _apply(above, far, far_end, near, near_end, by, step)
        else:
            _apply(above, start, end, first, last, by, step)
        energy += rise
        if energy < 1e-6:
            return 0.0
    return energy
