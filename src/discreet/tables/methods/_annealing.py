"""The compiled search behind controlled rounding: single cells step up and down, totals follow.

Most steps start from a total that does not fit, at a single cell below it (focused search), and
are taken or not by how many more totals then fail to fit (Metropolis). Imported only where it
runs, since compiling takes a moment.
"""

# Any in the annotations of compiled functions would tell nothing: numba types them itself.
# mypy: disable-error-code="no-untyped-def,untyped-decorator,no-untyped-call"

from __future__ import annotations

import numba
import numpy as np

__all__ = ["search"]

#: Tries to find a single cell below a total that can step the way the total needs.
_TRIES = 10
#: A rise in price from which a step is never taken.
_MOST = 200


@numba.njit(cache=True, inline="always")
def _price(step, low, high, first, further):
    """Return what it costs that a cell stands at a multiple: nothing next to the truth."""
    if step < low:
        return first + further * (low - step - 1)
    if step > high:
        return first + further * (step - high - 1)
    return 0


@numba.njit(cache=True, inline="always")
def _beside(one, graph):
    """Return a random single cell that differs from one in one attribute, or that one itself."""
    _, _, _, _, lines, lines_start, parts, parts_start, _ = graph
    width = lines_start[one + 1] - lines_start[one]
    if width == 0:
        return one
    line = lines[lines_start[one] + np.random.randint(width)]
    begin = parts_start[line]
    return parts[begin + np.random.randint(parts_start[line + 1] - begin)]


@numba.njit(cache=True, inline="always")
def _propose(one, x, graph, chosen):
    """Write down which single cells step: one, two in opposite directions, or a rectangle.

    The corners of a rectangle leave most totals as they are. Every single cell stands at one of
    two places, so that where it stands says where it goes. Returns how many cells step, 0 if the
    cells chosen at random cannot.
    """
    keys = graph[8]
    kind = np.random.random()
    chosen[0] = one
    if kind >= 0.8:
        return 1
    other = _beside(one, graph)
    if other == one or x[other] == x[one]:
        return 0
    chosen[1] = other
    if kind >= 0.5:
        return 2
    third = _beside(one, graph)
    if third in (one, other) or x[third] == x[one]:
        return 0
    key = keys[other] + keys[third] - keys[one]
    fourth = np.searchsorted(keys, key)
    if fourth >= len(keys) or keys[fourth] != key or fourth == one or x[fourth] != x[one]:
        return 0
    chosen[2] = third
    chosen[3] = fourth
    return 4


@numba.njit(cache=True, inline="always")
def _shift(chosen, number, x, graph, shift):
    """Add up by how much every cell would change."""
    above, above_start = graph[0], graph[1]
    for at in range(number):
        cell = chosen[at]
        by = 1 - 2 * x[cell]
        for place in range(above_start[cell], above_start[cell + 1]):
            shift[above[place]] += by


@numba.njit(cache=True)
def search(graph, bounds, x, step, heats, rounds, focus, seed):
    """Change x (0 or 1 per single cell) and `step` (of all cells) in place; return what is left.

    Parameters
    ----------
    graph
        `above` (the cells each single cell is part of), `below` (the single cells of each cell),
        `lines` (the sums along one attribute that each single cell is in) and `parts` (the single
        cells in each such sum), each as a list and where in it the parts of each begin; then the
        single cells' keys, ascending, which say which four cells are corners of a rectangle.
    bounds
        Lowest and highest place of every cell, and the price of the first and of every further
        step beyond, in whole numbers.
    heats, rounds
        One after the other, so many rounds each; ends early once nothing is left to pay, and
        else with the cheapest table met.
    focus
        Share of the rounds that start from a total that does not fit.
    """
    np.random.seed(seed)
    above, above_start, below, below_start = graph[0], graph[1], graph[2], graph[3]
    low, high, first, further = bounds
    shift = np.zeros(len(step), np.int64)
    chosen = np.zeros(4, np.int64)
    wrong = np.zeros(len(step), np.int64)
    place = np.full(len(step), -1, np.int64)
    many = energy = 0
    for cell in range(len(step)):
        price = _price(step[cell], low[cell], high[cell], first[cell], further)
        if price > 0:
            place[cell], wrong[many] = many, cell
            many += 1
            energy += price
    least, best, best_step = energy, x.copy(), step.copy()
    odds = np.zeros(_MOST)
    for heat in heats:
        for rise in range(_MOST):
            odds[rise] = np.exp(-rise / heat)
        for _turn in range(rounds):
            if energy == 0 or len(x) == 0:
                return energy
            one = np.random.randint(len(x))
            if np.random.random() < focus:
                total = wrong[np.random.randint(many)]
                stands = 0 if step[total] < low[total] else 1
                width = below_start[total + 1] - below_start[total]
                for _try in range(_TRIES if width else 0):
                    one = below[below_start[total] + np.random.randint(width)]
                    if x[one] == stands:
                        break
            number = _propose(one, x, graph, chosen)
            if number == 0:
                continue
            _shift(chosen, number, x, graph, shift)
            rise = 0
            for at in range(number):
                for spot in range(above_start[chosen[at]], above_start[chosen[at] + 1]):
                    cell = above[spot]
                    by = shift[cell]
                    if by != 0:
                        shift[cell] = 0
                        now = step[cell]
                        rise -= _price(now, low[cell], high[cell], first[cell], further)
                        rise += _price(now + by, low[cell], high[cell], first[cell], further)
            if rise > 0 and (rise >= _MOST or np.random.random() >= odds[rise]):
                continue
            energy += rise
            for at in range(number):
                by = 1 - 2 * x[chosen[at]]
                x[chosen[at]] += by
                for spot in range(above_start[chosen[at]], above_start[chosen[at] + 1]):
                    cell = above[spot]
                    step[cell] += by
                    if low[cell] <= step[cell] <= high[cell]:
                        if place[cell] >= 0:
                            many -= 1
                            wrong[place[cell]] = wrong[many]
                            place[wrong[many]] = place[cell]
                            place[cell] = -1
                    elif place[cell] < 0:
                        place[cell], wrong[many] = many, cell
                        many += 1
            if energy < least:
                least = energy
                best[:] = x
                best_step[:] = step
    x[:] = best
    step[:] = best_step
    return least
