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
def anneal(
    above, above_start, sums, sums_start, parts, parts_start, lowest, highest,
    x, step, low, high, slack, terms, heat, rounds, seed,
):  # fmt: skip
    """Change x (steps of single cells) and `step` (of all cells) in place; return what is left.

    `above` lists the cells that each single cell is part of, `sums` the equations it stands in and
    `parts` the single cells that stand in each equation.
    Ends early once nothing is left to pay for.
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
        if not lowest[one] <= x[one] + by <= highest[one]:
            by = -by
            if not lowest[one] <= x[one] + by <= highest[one]:
                continue
        other, first, last = -1, 0, 0
        width = sums_start[one + 1] - sums_start[one]
        if width and np.random.random() < 0.7:
            row = sums[sums_start[one] + np.random.randint(width)]
            begin = parts_start[row]
            other = parts[begin + np.random.randint(parts_start[row + 1] - begin)]
            if other == one or not lowest[other] <= x[other] - by <= highest[other]:
                continue
            first, last = above_start[other], above_start[other + 1]
        rise = _change(
            above, above_start[one], above_start[one + 1], first, last, by,
            step, low, high, slack, terms,
        )  # fmt: skip
        if rise > 0 and np.random.random() >= np.exp(-rise / warmth):
            continue
        x[one] += by
        for at in range(above_start[one], above_start[one + 1]):
            step[above[at]] += by
        if other >= 0:
            x[other] -= by
            for at in range(first, last):
                step[above[at]] -= by
        energy += rise
        if energy < 1e-6:
            return 0.0
    return energy
