"""Better partitions from a good one: moves and swaps while they help, then simulated annealing.

A partition into groups of at least k is improved by moving a record to the group of one of its
neighbours, by exchanging two records of neighbouring groups, and by dissolving or splitting a
group. `descend` takes what helps until nothing does; `anneal` also takes some of what hurts, less
and less of it, for as long as there is time. The numbers that annealing draws only steer a search:
nobody's privacy rests on them, so they come from a small generator inside the kernel.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from discreet.compiling import Array, kernel

__all__ = ["error", "improve"]

_NEIGHBOURS = 24
_CHUNK = 500


@kernel
def _gather(points: Array, groups: Array, k: int) -> Array:
    """Return sizes, sums and members of the groups, with room for as many as there can be."""
    n, axes = points.shape
    most = max(n // k, 1) + 1
    room = 3 * k
    sizes = np.zeros(most, np.int64)
    sums = np.zeros((most, axes))
    members = np.full((most, room), -1, np.int64)
    spot = np.zeros(n, np.int64)
    for point in range(n):
        group = groups[point]
        spot[point] = sizes[group]
        members[group, sizes[group]] = point
        sizes[group] += 1
        sums[group] += points[point]
    return sizes, sums, members, spot


@kernel
def error(points: Array, groups: Array) -> Array:
    """Return the sum of squared distances between records and the centres of their groups."""
    many = groups.max() + 1
    sizes = np.zeros(many)
    sums = np.zeros((many, points.shape[1]))
    for point in range(points.shape[0]):
        sizes[groups[point]] += 1
        sums[groups[point]] += points[point]
    total = 0.0
    for point in range(points.shape[0]):
        group = groups[point]
        for axis in range(points.shape[1]):
            total += (points[point, axis] - sums[group, axis] / sizes[group]) ** 2
    return total


@kernel
def _leave(points: Array, state: Array, point: int, group: int) -> None:
    sizes, sums, members, spot = state
    last = members[group, sizes[group] - 1]
    members[group, spot[point]] = last
    spot[last] = spot[point]
    sizes[group] -= 1
    for axis in range(points.shape[1]):
        sums[group, axis] -= points[point, axis]


@kernel
def _enter(points: Array, groups: Array, state: Array, point: int, group: int) -> None:
    sizes, sums, members, spot = state
    members[group, sizes[group]] = point
    spot[point] = sizes[group]
    sizes[group] += 1
    groups[point] = group
    for axis in range(points.shape[1]):
        sums[group, axis] += points[point, axis]


@kernel
def _move_cost(points: Array, state: Array, point: int, source: int, target: int) -> Array:
    sizes, sums, _, _ = state
    a, b = sizes[source], sizes[target]
    out, into = 0.0, 0.0
    for axis in range(points.shape[1]):
        value = points[point, axis]
        out += (value - sums[source, axis] / a) ** 2
        into += (value - sums[target, axis] / b) ** 2
    return into * b / (b + 1) - out * a / (a - 1)


@kernel
def _swap_cost(points: Array, state: Array, one: int, two: int, first: int, second: int) -> Array:
    sizes, sums, _, _ = state
    a, b = 1.0 / sizes[first], 1.0 / sizes[second]
    gain, length = 0.0, 0.0
    for axis in range(points.shape[1]):
        step = points[two, axis] - points[one, axis]
        gain += (sums[first, axis] * a - sums[second, axis] * b) * step
        length += step * step
    return -2.0 * gain - length * (a + b)


@kernel
def _swap(points: Array, groups: Array, state: Array, one: int, two: int) -> None:
    first, second = groups[one], groups[two]
    _leave(points, state, one, first)
    _leave(points, state, two, second)
    _enter(points, groups, state, one, second)
    _enter(points, groups, state, two, first)


@kernel
def _best_change(
    points: Array,
    groups: Array,
    state: Array,
    k: int,
    point: int,
    near: Array,
    tried: Array,
    stamp: int,
) -> Array:
    """Return the best move or exchange of a record with its neighbours' groups: cost, kind, with."""
    sizes, _, members, _ = state
    home = groups[point]
    best, kind, partner = -1e-12, 0, -1
    for place in range(near.shape[1]):
        group = groups[near[point, place]]
        if group == home or tried[group] == stamp:
            continue
        tried[group] = stamp
        if sizes[home] > k and sizes[group] < members.shape[1] - 1:
            cost = _move_cost(points, state, point, home, group)
            if cost < best:
                best, kind, partner = cost, 1, group
        for member in range(sizes[group]):
            other = members[group, member]
            cost = _swap_cost(points, state, point, other, home, group)
            if cost < best:
                best, kind, partner = cost, 2, other
    return best, kind, partner


@kernel
def _split_large(points: Array, groups: Array, state: Array, k: int) -> Array:
    """Split groups of 2k or more: two halves never cost more than the whole."""
    sizes, _, members, _ = state
    free, done = 0, 0
    for group in range(sizes.size):
        if sizes[group] < 2 * k:
            continue
        while free < sizes.size and sizes[free] > 0:
            free += 1
        if free == sizes.size:
            return done
        inside = members[group, : sizes[group]].copy()
        far, one = -1.0, inside[0]
        for point in inside:
            distance = np.sum((points[point] - points[inside[0]]) ** 2)
            if distance > far:
                far, one = distance, point
        away = np.empty(inside.size)
        for place in range(inside.size):
            away[place] = np.sum((points[inside[place]] - points[one]) ** 2)
        for place in np.argsort(away)[:k]:
            _leave(points, state, inside[place], group)
            _enter(points, groups, state, inside[place], free)
        done += 1
    return done


@kernel
def _dissolve(points: Array, groups: Array, state: Array, near: Array, group: int) -> Array:
    """Send every member of a group to the neighbouring group where it costs least.

    Returns the change of the error; the caller undoes it if it does not like it.
    """
    sizes, sums, members, _ = state
    change = 0.0
    centre = sums[group] / sizes[group]
    inside = members[group, : sizes[group]].copy()
    for point in inside:
        change -= np.sum((points[point] - centre) ** 2)
    for point in inside:
        _leave(points, state, point, group)
        best, target = np.inf, -1
        for place in range(near.shape[1]):
            other = groups[near[point, place]]
            if other == group or sizes[other] == 0 or sizes[other] >= members.shape[1] - 1:
                continue
            b = sizes[other]
            cost = np.sum((points[point] - sums[other] / b) ** 2) * b / (b + 1)
            if cost < best:
                best, target = cost, other
        if target < 0:
            _enter(points, groups, state, point, group)
            return np.inf
        _enter(points, groups, state, point, target)
        change += best
    return change


@kernel
def _undo(points: Array, groups: Array, state: Array, inside: Array, group: int) -> None:
    for point in inside:
        if groups[point] != group:
            _leave(points, state, point, groups[point])
            _enter(points, groups, state, point, group)


@kernel
def descend(points: Array, groups: Array, k: int, near: Array, sweeps: int) -> Array:
    """Change the partition while it helps; returns the number of changes."""
    state = _gather(points, groups, k)
    sizes, _, members, _ = state
    tried = np.full(sizes.size, -1, np.int64)
    waiting = np.ones(points.shape[0], np.bool_)
    changes, stamp = 0, 0
    for sweep in range(sweeps):
        before = changes
        for point in range(points.shape[0]):
            if not waiting[point]:
                continue
            waiting[point] = False
            stamp += 1
            _, kind, partner = _best_change(points, groups, state, k, point, near, tried, stamp)
            if kind == 0:
                continue
            home = groups[point]
            target = partner if kind == 1 else groups[partner]
            if kind == 1:
                _leave(points, state, point, home)
                _enter(points, groups, state, point, target)
            else:
                _swap(points, groups, state, point, partner)
            changes += 1
            for group in (home, target):
                for place in range(sizes[group]):
                    member = members[group, place]
                    waiting[member] = True
                    for other in near[member, :6]:
                        waiting[other] = True
        if sweep < 20:
            changes += _split_large(points, groups, state, k)
            for group in range(sizes.size):
                if sizes[group] == 0:
                    continue
                inside = members[group, : sizes[group]].copy()
                if _dissolve(points, groups, state, near, group) < -1e-12:
                    changes += 1
                    for point in inside:
                        waiting[point] = True
                else:
                    _undo(points, groups, state, inside, group)
            changes += _split_large(points, groups, state, k)
        if changes == before:
            break
    return changes


@kernel
def _draw(seed: Array) -> Array:
    # xorshift64*: for the search only, see the top of the file.
    word = seed[0]
    word ^= word >> np.uint64(12)
    word ^= word << np.uint64(25)
    word ^= word >> np.uint64(27)
    seed[0] = word
    return float((word * np.uint64(2685821657736338717)) >> np.uint64(11)) * 2.0**-53


@kernel
def _region(groups: Array, state: Array, near: Array, point: int, many: int, seed: Array) -> Array:
    """Return a few neighbouring groups, and the records in them."""
    sizes, _, members, _ = state
    chosen = np.empty(many, np.int64)
    chosen[0] = groups[point]
    filled = 1
    for place in range(near.shape[1]):
        group = groups[near[point, place]]
        if filled < many and _draw(seed) < 0.8 and not np.any(chosen[:filled] == group):
            chosen[filled] = group
            filled += 1
    total = 0
    for group in chosen[:filled]:
        total += sizes[group]
    inside = np.empty(total, np.int64)
    place = 0
    for group in chosen[:filled]:
        for member in range(sizes[group]):
            inside[place] = members[group, member]
            place += 1
    return chosen[:filled], inside


@kernel
def _regroup(points: Array, inside: Array, k: int, many: int, labels: Array, seed: Array) -> None:
    """Group the records of a region anew: leaders take their nearest, the rest join the nearest."""
    size = inside.size
    labels[:size] = -1
    away = np.empty(size)
    leader = int(_draw(seed) * size)
    left = size
    for group in range(many):
        if group > 0:
            # A random record, or the one farthest from the last leader.
            if _draw(seed) < 0.5:
                skip = int(_draw(seed) * left)
                for place in range(size):
                    if labels[place] < 0:
                        if skip == 0:
                            leader = place
                        skip -= 1
            else:
                far, last = -1.0, leader
                for place in range(size):
                    if labels[place] < 0:
                        distance = _between(points, inside[place], inside[last])
                        if distance > far:
                            far, leader = distance, place
        for place in range(size):
            free = labels[place] < 0
            away[place] = _between(points, inside[place], inside[leader]) if free else np.inf
        for _ in range(k):
            closest = np.argmin(away)
            labels[closest] = group
            away[closest] = np.inf
        left -= k
    for place in range(size):
        if labels[place] < 0:
            best = np.inf
            for other in range(size):
                if other != place and labels[other] >= 0:
                    distance = _between(points, inside[place], inside[other])
                    if distance < best:
                        best, labels[place] = distance, labels[other]


@kernel
def _between(points: Array, one: int, two: int) -> Array:
    total = 0.0
    for axis in range(points.shape[1]):
        total += (points[one, axis] - points[two, axis]) ** 2
    return total


@kernel
def _settle(
    points: Array, inside: Array, k: int, many: int, labels: Array, sums: Array, sizes: Array
) -> Array:
    """Move and exchange within a region until nothing helps; returns the region's error."""
    size, axes = inside.size, points.shape[1]
    sums[:many] = 0.0
    sizes[:many] = 0.0
    squares = 0.0
    for place in range(size):
        sizes[labels[place]] += 1
        for axis in range(axes):
            value = points[inside[place], axis]
            sums[labels[place], axis] += value
            squares += value * value
    improved = True
    while improved:
        improved = False
        for one in range(size):
            home = labels[one]
            best, kind, partner = -1e-10, 0, -1
            if sizes[home] > k:
                out = 0.0
                for axis in range(axes):
                    out += (points[inside[one], axis] - sums[home, axis] / sizes[home]) ** 2
                out *= sizes[home] / (sizes[home] - 1)
                for group in range(many):
                    if group != home:
                        into = 0.0
                        for axis in range(axes):
                            into += (
                                points[inside[one], axis] - sums[group, axis] / sizes[group]
                            ) ** 2
                        cost = into * sizes[group] / (sizes[group] + 1) - out
                        if cost < best:
                            best, kind, partner = cost, 1, group
            for two in range(size):
                other = labels[two]
                if other == home:
                    continue
                a, b = 1.0 / sizes[home], 1.0 / sizes[other]
                gain, length = 0.0, 0.0
                for axis in range(axes):
                    step = points[inside[two], axis] - points[inside[one], axis]
                    gain += (sums[home, axis] * a - sums[other, axis] * b) * step
                    length += step * step
                cost = -2.0 * gain - length * (a + b)
                if cost < best:
                    best, kind, partner = cost, 2, two
            if kind == 0:
                continue
            improved = True
            target = partner if kind == 1 else labels[partner]
            for axis in range(axes):
                step = points[inside[one], axis]
                if kind == 2:
                    step -= points[inside[partner], axis]
                sums[home, axis] -= step
                sums[target, axis] += step
            labels[one] = target
            if kind == 1:
                sizes[home] -= 1
                sizes[target] += 1
            else:
                labels[partner] = home
    total = squares
    for group in range(many):
        for axis in range(axes):
            total -= sums[group, axis] ** 2 / sizes[group]
    return total


@kernel
def iterate(
    points: Array, groups: Array, k: int, near: Array, steps: int, heat: float, seed: Array
) -> Array:
    """Group random regions anew and keep what is better, or worse by little; returns the change."""
    state = _gather(points, groups, k)
    sizes, _, members, _ = state
    widest = 6
    room = widest * members.shape[1]
    labels = np.empty(room, np.int64)
    sums, counts = np.zeros((room, points.shape[1])), np.zeros(room)
    change = 0.0
    for _ in range(steps):
        point = int(_draw(seed) * points.shape[0])
        many = 2 + int(_draw(seed) * (widest - 1))
        chosen, inside = _region(groups, state, near, point, many, seed)
        before = 0.0
        for member in inside:
            for axis in range(points.shape[1]):
                before += points[member, axis] ** 2
        for group in chosen:
            for axis in range(points.shape[1]):
                before -= state[1][group, axis] ** 2 / sizes[group]
        most, least = inside.size // k, -(-inside.size // (2 * k - 1))
        turn = int(_draw(seed) * 4)
        wanted = min(most, max(least, chosen.size + (1 if turn == 0 else (-1 if turn == 1 else 0))))
        _regroup(points, inside, k, wanted, labels, seed)
        after = _settle(points, inside, k, wanted, labels, sums, counts)
        biggest = 0.0
        for group in range(wanted):
            biggest = max(biggest, counts[group])
        if (
            biggest >= members.shape[1]
            or not after < before - heat * np.log(_draw(seed) + 1e-300) - 1e-10
        ):
            continue
        if wanted > chosen.size:
            chosen = _open(chosen, state, wanted)
            if chosen.size < wanted:
                continue
        for member in inside:
            _leave(points, state, member, groups[member])
        for place in range(inside.size):
            _enter(points, groups, state, inside[place], chosen[labels[place]])
        change += after - before
    return change


@kernel
def _open(chosen: Array, state: Array, wanted: int) -> Array:
    sizes = state[0]
    more = np.empty(wanted, np.int64)
    more[: chosen.size] = chosen
    filled = chosen.size
    for group in range(sizes.size):
        if filled == wanted:
            break
        if sizes[group] == 0:
            more[filled] = group
            filled += 1
    return more[:filled]


def improve(
    points: npt.NDArray[np.float64],
    groups: npt.NDArray[np.int64],
    k: int,
    *,
    seconds: float = 0.0,
    clock: Callable[[], float] = time.thread_time,
) -> npt.NDArray[np.int64]:
    """Return a partition at least as good as the given one.

    With `seconds` of 0 the result depends on the data alone; with more it also depends on how far
    the search came in that time. Time is that of the processor, so that a busy machine takes longer
    but does not give a worse result.
    """
    from scipy.spatial import cKDTree

    n = points.shape[0]
    if n < 2 * k:
        return groups
    begin = clock()
    many = min(_NEIGHBOURS, n - 1)
    found = np.asarray(cKDTree(points).query(points, k=many + 1)[1])
    near = np.ascontiguousarray(found[:, 1:])
    best = groups.copy()
    seed = np.array([88172645463325252], np.uint64)
    descend(points, best, k, near, 1000)
    iterate(points, best, k, near, n, 0.0, seed)
    if seconds <= 0:
        return best
    least = error(points, best)
    current = best.copy()
    start = 0.06 * least / n
    while (spent := (clock() - begin) / seconds) < 1:
        heat = start * (1 - spent)
        iterate(points, current, k, near, max(_CHUNK, n // 10), heat, seed)
    descend(points, current, k, near, 1000)
    return current if error(points, current) < least else best
