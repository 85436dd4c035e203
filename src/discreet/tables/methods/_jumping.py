"""The compiled search for a table of adjacent multiples: cells jump, broken equations gain weight.

Imported only where it runs, since compiling takes a moment.
"""

# Any in the annotations of compiled functions would tell nothing: numba types them itself.
# mypy: disable-error-code="no-untyped-def,untyped-decorator,no-untyped-call"

from __future__ import annotations

import numba
import numpy as np

__all__ = ["jump"]

#: Cells compared before the best of them jumps.
_SAMPLE = 25
#: How often a cell is taken at random instead of by its gain: where cells gain, and where none does.
_STRAY, _LOST = 0.001, 0.01


@numba.njit(cache=True, inline="always")
def _broken(rest, below, above):
    """Return the weight of what an equation lacks or has too much."""
    return -rest * below if rest < 0 else rest * above


@numba.njit(cache=True, inline="always")
def _sort_in(item, belongs, members, place, number):
    """Keep a set of numbers with its places; return how many it has."""
    if belongs:
        if place[item] < 0:
            place[item], members[number] = number, item
            return number + 1
    elif place[item] >= 0:
        last = members[number - 1]
        members[place[item]], place[last] = last, place[item]
        place[item] = -1
        return number - 1
    return number


@numba.njit(cache=True, inline="always")
def _cheapest(columns, start, end, cost):
    """Return the cell of an equation whose jump costs least."""
    best = columns[start]
    for at in range(start + 1, end):
        if cost[columns[at]] < cost[best]:
            best = columns[at]
    return best


@numba.njit(cache=True)
def jump(rows, columns, rest, x, turns, seed):
    """Change x (0 or 1 per cell) until every equation holds; return how many do not.

    Feasibility Jump (Luteberget and Sartor 2023) for equations with coefficients of ±1. Wanting
    and having too much weigh on their own in every equation: with one weight for both the search
    takes ten to twenty times as many jumps.

    Parameters
    ----------
    rows, columns
        The equations by rows and by columns: indices, where each begins, and signs.
    rest
        What is left of each equation at the start; changed in place.
    """
    np.random.seed(seed)
    cells, cells_start, cells_sign = rows
    sums, sums_start, sums_sign = columns
    below, above = np.ones(len(rest), np.int64), np.ones(len(rest), np.int64)
    wrong, wrong_place, many = np.zeros(len(rest), np.int64), np.full(len(rest), -1), 0
    good, good_place, gains = np.zeros(len(x), np.int64), np.full(len(x), -1), 0
    cost = np.zeros(len(x), np.int64)
    for row in range(len(rest)):
        many = _sort_in(row, rest[row] != 0, wrong, wrong_place, many)
    for cell in range(len(x)):
        for at in range(sums_start[cell], sums_start[cell + 1]):
            now = rest[sums[at]]
            cost[cell] += abs(now + sums_sign[at] * (1 - 2 * x[cell])) - abs(now)
        gains = _sort_in(cell, cost[cell] < 0, good, good_place, gains)
    for _turn in range(turns):
        if many == 0:
            break
        if gains > 0:
            chosen = good[np.random.randint(gains)]
            if np.random.random() >= _STRAY:
                for _look in range(min(_SAMPLE, gains) - 1):
                    other = good[np.random.randint(gains)]
                    if cost[other] < cost[chosen]:
                        chosen = other
        else:
            for at in range(many):
                row = wrong[at]
                lack, excess = (1, 0) if rest[row] < 0 else (0, 1)
                below[row] += lack
                above[row] += excess
                for spot in range(cells_start[row], cells_start[row + 1]):
                    cell = cells[spot]
                    then = rest[row] + cells_sign[spot] * (1 - 2 * x[cell])
                    cost[cell] += _broken(then, lack, excess) - abs(rest[row])
                    gains = _sort_in(cell, cost[cell] < 0, good, good_place, gains)
            row = wrong[np.random.randint(many)]
            first, last = cells_start[row], cells_start[row + 1]
            if first == last:
                break  # nothing can mend it
            chosen = cells[first + np.random.randint(last - first)]
            if np.random.random() >= _LOST:
                chosen = _cheapest(cells, first, last, cost)
        by = 1 - 2 * x[chosen]
        for at in range(sums_start[chosen], sums_start[chosen + 1]):
            row = sums[at]
            old, new = rest[row], rest[row] + sums_sign[at] * by
            low, high = below[row], above[row]
            rise = _broken(new, low, high) - _broken(old, low, high)
            for spot in range(cells_start[row], cells_start[row + 1]):
                cell = cells[spot]
                if cell != chosen:
                    step = cells_sign[spot] * (1 - 2 * x[cell])
                    cost[cell] -= rise - _broken(new + step, low, high)
                    cost[cell] -= _broken(old + step, low, high)
                    gains = _sort_in(cell, cost[cell] < 0, good, good_place, gains)
            rest[row] = new
            many = _sort_in(row, new != 0, wrong, wrong_place, many)
        x[chosen] += by
        cost[chosen] = -cost[chosen]
        gains = _sort_in(chosen, cost[chosen] < 0, good, good_place, gains)
    return many
