"""Partitions of records into groups of at least k: MDAV, its variable-size form, and the exact one-column optimum.

The centroid of what remains moves little from step to step, so the record farthest from it is
found by walking a list sorted by the distance to an earlier centroid: the triangle inequality says
where to stop, and the list is sorted anew when walks get long.
"""

from __future__ import annotations

import numpy as np

from discreet.compiling import Array, kernel
from discreet.microdata.masking._tree import build, farthest, nearest, remove, squared

__all__ = ["hansen_mukherjee", "mdav", "variable_mdav"]

#: A walk over this many times the remaining records pays for sorting them anew.
_PATIENCE = 4


@kernel
def _sorted_from(points: Array, alive: Array, many: int, centre: Array) -> Array:
    # Exact sums again, so that subtraction never adds up to an error that matters.
    axes = points.shape[1]
    centre[:] = 0.0
    kept = np.empty(many, np.int64)
    filled = 0
    for point in range(points.shape[0]):
        if alive[point]:
            kept[filled] = point
            filled += 1
            for axis in range(axes):
                centre[axis] += points[point, axis]
    total = centre.copy()
    centre /= many
    away = np.empty(many)
    for place in range(many):
        away[place] = -np.sqrt(squared(points, kept[place], centre))
    order = np.argsort(away)
    return total, kept[order], -away[order]


@kernel
def _outermost(
    points: Array,
    alive: Array,
    listed: Array,
    away: Array,
    head: int,
    shift: float,
    centre: Array,
) -> Array:
    """Return the remaining record farthest from the centroid, and how far the walk went."""
    best, found, place = -1.0, -1, head
    slack = shift * (1 + 1e-12) + 1e-300
    while place < listed.size:
        reach = away[place] * (1 + 1e-12) + slack
        if reach * reach < best:
            break
        point = listed[place]
        if alive[point]:
            distance = squared(points, point, centre)
            if distance > best or (distance == best and point < found):
                best, found = distance, point
        place += 1
    return found, place - head


@kernel
def _distance(one: Array, two: Array) -> Array:
    total = 0.0
    for axis in range(one.shape[0]):
        total += (one[axis] - two[axis]) ** 2
    return np.sqrt(total)


@kernel
def mdav(points: Array, k: int) -> Array:
    """Return the group of each record by Maximum Distance to Average Vector.

    While 3k records remain: the one farthest from their centroid takes its k−1 nearest, then the
    one farthest from it does the same. Of 2k or more left over, the farthest from the centroid
    takes its nearest; the others are the last group.
    """
    n, axes = points.shape
    groups = np.full(n, -1, np.int64)
    tree = build(points)
    alive = np.ones(n, np.bool_)
    stack = np.empty(256, np.int64)
    group, ranks = np.empty(k, np.int64), np.empty(k)
    reference = np.zeros(axes)
    total, listed, away = _sorted_from(points, alive, n, reference)
    head, walked, many, made = 0, 0, n, 0
    while many >= 2 * k:
        if walked > _PATIENCE * many + 1000:
            total, listed, away = _sorted_from(points, alive, many, reference)
            head, walked = 0, 0
        centre = total / many
        while not alive[listed[head]]:
            head += 1
        shift = _distance(centre, reference)
        first, steps = _outermost(points, alive, listed, away, head, shift, centre)
        walked += steps
        rounds = 2 if many >= 3 * k else 1
        second = farthest(points, tree, points[first], stack) if rounds == 2 else -1
        for turn in range(rounds):
            leader = first
            if turn == 1:
                # With many equal records the first group may have taken it.
                leader = second if alive[second] else farthest(points, tree, points[first], stack)
            nearest(points, tree, leader, k, group, ranks, stack)
            for member in group:
                groups[member] = made
                alive[member] = False
                remove(points, tree, member)
                for axis in range(axes):
                    total[axis] -= points[member, axis]
            made += 1
            many -= k
        if rounds == 1:
            break
    for point in range(n):
        if alive[point]:
            groups[point] = made
    return groups


@kernel
def variable_mdav(points: Array, k: int, gamma: float) -> Array:
    """Return the group of each record by V-MDAV: groups grow to 2k−1 where records lie close.

    A record joins a group when its distance to it is less than gamma times its distance to the
    nearest record outside. The centroid is that of the whole file throughout.
    """
    n, axes = points.shape
    groups = np.full(n, -1, np.int64)
    tree = build(points)
    alive = np.ones(n, np.bool_)
    stack = np.empty(256, np.int64)
    group, ranks = np.empty(k, np.int64), np.empty(k)
    pair, pair_ranks = np.empty(2, np.int64), np.empty(2)
    members = np.empty(2 * k, np.int64)
    centre = np.zeros(axes)
    _, listed, _ = _sorted_from(points, alive, n, centre)
    head, many, made = 0, n, 0
    while many >= k:
        while not alive[listed[head]]:
            head += 1
        nearest(points, tree, listed[head], k, group, ranks, stack)
        size = k
        for place in range(k):
            members[place] = group[place]
            alive[group[place]] = False
            groups[group[place]] = made
            remove(points, tree, group[place])
        many -= k
        while size < 2 * k - 1 and many >= 2:
            # The remaining record nearest to any member of the group.
            inside, joins = np.inf, -1
            for place in range(size):
                found, distance = _nearest_other(points, tree, members[place], stack)
                if distance < inside or (distance == inside and found < joins):
                    inside, joins = distance, found
            nearest(points, tree, joins, 2, pair, pair_ranks, stack)
            if not inside < gamma * gamma * pair_ranks[1]:
                break
            members[size] = joins
            groups[joins] = made
            alive[joins] = False
            remove(points, tree, joins)
            size += 1
            many -= 1
        made += 1
    if many > 0:
        _join_nearest(points, groups, alive, made)
    return groups


@kernel
def _nearest_other(points: Array, tree: Array, centre: int, stack: Array) -> Array:
    one, rank = np.empty(1, np.int64), np.empty(1)
    nearest(points, tree, centre, 1, one, rank, stack)
    return one[0], rank[0]


@kernel
def _join_nearest(points: Array, groups: Array, alive: Array, made: int) -> None:
    axes = points.shape[1]
    centres, sizes = np.zeros((made, axes)), np.zeros(made)
    for point in range(points.shape[0]):
        if not alive[point]:
            sizes[groups[point]] += 1
            centres[groups[point]] += points[point]
    for group in range(made):
        centres[group] /= sizes[group]
    for point in range(points.shape[0]):
        if alive[point]:
            best, chosen = np.inf, 0
            for group in range(made):
                distance = squared(points, point, centres[group])
                if distance < best:
                    best, chosen = distance, group
            groups[point] = chosen


@kernel
def hansen_mukherjee(values: Array, k: int) -> Array:
    """Return the groups of least squared error for one sorted column: the shortest path.

    Groups of an optimal partition are runs of k to 2k−1 values (Hansen and Mukherjee 2003).
    """
    n = values.size
    middle = values.mean()
    first, second = np.zeros(n + 1), np.zeros(n + 1)
    for place in range(n):
        value = values[place] - middle  # centred, so that the squares do not cancel
        first[place + 1] = first[place] + value
        second[place + 1] = second[place] + value * value
    cost = np.full(n + 1, np.inf)
    back = np.zeros(n + 1, np.int64)
    cost[0] = 0.0
    for end in range(k, n + 1):
        for begin in range(max(0, end - 2 * k + 1), end - k + 1):
            total = first[end] - first[begin]
            here = cost[begin] + (second[end] - second[begin]) - total * total / (end - begin)
            if here < cost[end]:
                cost[end], back[end] = here, begin
    groups = np.empty(n, np.int64)
    end, group = n, 0
    while end > 0:
        groups[back[end] : end] = group
        end, group = back[end], group + 1
    return groups
