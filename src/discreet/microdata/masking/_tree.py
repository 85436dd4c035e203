"""A k-d tree that shrinks: points are removed and every box stays tight around the rest.

MDAV asks two questions of the points that remain, the nearest few and the farthest one, and
removes what it took. Boxes that shrink with the points keep both answers exact and quick. Ties
go to the smaller index, so that the answers are those of a plain scan.
"""

from __future__ import annotations

import numpy as np

from discreet.compiling import Array, kernel

__all__ = ["build", "farthest", "nearest", "remove", "squared"]

#: Points in a leaf: small enough that a box is tight, large enough that the tree stays shallow.
LEAF = 12


@kernel
def squared(points: Array, first: int, other: Array) -> Array:
    """Return the squared distance between a point of the file and another place."""
    total = 0.0
    for axis in range(points.shape[1]):
        step = points[first, axis] - other[axis]
        total += step * step
    return total


@kernel
def _fit_leaf(points: Array, slot: Array, start: int, count: int, low: Array, high: Array) -> None:
    for axis in range(points.shape[1]):
        smallest, largest = np.inf, -np.inf
        for place in range(start, start + count):
            value = points[slot[place], axis]
            smallest = min(smallest, value)
            largest = max(largest, value)
        low[axis] = smallest
        high[axis] = largest


@kernel
def build(points: Array) -> Array:
    """Return the tree as arrays.

    Returns slot (points in the order of the leaves), where (each point's place in slot), leaf
    (each point's leaf), start, count, left, right, parent (of each node), low, high (its box).
    """
    n, axes = points.shape
    slot = np.arange(n)
    most = 2 * (n // (LEAF // 2) + 2)
    start = np.zeros(most, np.int64)
    count = np.zeros(most, np.int64)
    left = np.full(most, -1, np.int64)
    right = np.full(most, -1, np.int64)
    parent = np.full(most, -1, np.int64)
    low = np.empty((most, axes))
    high = np.empty((most, axes))
    leaf = np.empty(n, np.int64)
    start[0], count[0] = 0, n
    nodes, place = 1, 0
    while place < nodes:
        begin, size = start[place], count[place]
        _fit_leaf(points, slot, begin, size, low[place], high[place])
        if size <= LEAF:
            for position in range(begin, begin + size):
                leaf[slot[position]] = place
        else:
            axis = np.argmax(high[place] - low[place])
            part = slot[begin : begin + size]
            part = part[np.argsort(points[part, axis])]
            slot[begin : begin + size] = part
            half = size // 2
            for side in range(2):
                child = nodes + side
                parent[child] = place
                start[child] = begin + side * half
                count[child] = half if side == 0 else size - half
            left[place], right[place] = nodes, nodes + 1
            nodes += 2
        place += 1
    where = np.empty(n, np.int64)
    for position in range(n):
        where[slot[position]] = position
    return slot, where, leaf, start, count, left, right, parent, low, high


@kernel
def remove(points: Array, tree: Array, point: Array) -> None:
    """Take a point out and tighten the boxes above it."""
    slot, where, leaf, start, count, left, right, parent, low, high = tree
    node = leaf[point]
    last = start[node] + count[node] - 1
    place, moved = where[point], slot[last]
    slot[place], slot[last] = moved, point
    where[moved], where[point] = place, last
    count[node] -= 1
    _fit_leaf(points, slot, start[node], count[node], low[node], high[node])
    node = parent[node]
    changed = True
    while node >= 0:
        count[node] -= 1
        if changed:
            one, two = left[node], right[node]
            changed = False
            for axis in range(points.shape[1]):
                smallest = min(low[one, axis], low[two, axis])
                largest = max(high[one, axis], high[two, axis])
                if smallest != low[node, axis] or largest != high[node, axis]:
                    low[node, axis], high[node, axis] = smallest, largest
                    changed = True
        node = parent[node]


@kernel
def _closest(low: Array, high: Array, place: Array) -> Array:
    total = 0.0
    for axis in range(place.shape[0]):
        step = max(low[axis] - place[axis], place[axis] - high[axis], 0.0)
        total += step * step
    return total


@kernel
def _remotest(low: Array, high: Array, place: Array) -> Array:
    total = 0.0
    for axis in range(place.shape[0]):
        step = max(high[axis] - place[axis], place[axis] - low[axis])
        total += step * step
    return total


@kernel
def farthest(points: Array, tree: Array, place: Array, stack: Array) -> Array:
    """Return the remaining point farthest from a place, the smallest index among equals."""
    slot, _, _, start, count, left, right, _, low, high = tree
    best, found = -1.0, -1
    stack[0] = 0
    depth = 1
    while depth > 0:
        depth -= 1
        node = stack[depth]
        if count[node] == 0 or _remotest(low[node], high[node], place) < best:
            continue
        if left[node] < 0:
            for position in range(start[node], start[node] + count[node]):
                point = slot[position]
                distance = squared(points, point, place)
                if distance > best or (distance == best and point < found):
                    best, found = distance, point
            continue
        one, two = left[node], right[node]
        if _remotest(low[one], high[one], place) > _remotest(low[two], high[two], place):
            one, two = two, one
        stack[depth], stack[depth + 1] = one, two  # the more promising child comes off first
        depth += 2
    return found


@kernel
def nearest(
    points: Array,
    tree: Array,
    centre: int,
    many: int,
    group: Array,
    ranks: Array,
    stack: Array,
) -> None:
    """Fill `group` with a point and the remaining points nearest to it, itself first."""
    slot, _, _, start, count, left, right, _, low, high = tree
    place = points[centre]
    filled = 0
    stack[0] = 0
    depth = 1
    while depth > 0:
        depth -= 1
        node = stack[depth]
        if count[node] == 0:
            continue
        if filled == many and _closest(low[node], high[node], place) > ranks[many - 1]:
            continue
        if left[node] < 0:
            for position in range(start[node], start[node] + count[node]):
                point = slot[position]
                # The centre is in its own group even where others lie on the same spot.
                distance = -1.0 if point == centre else squared(points, point, place)
                if filled == many:
                    worst = ranks[many - 1]
                    if distance > worst or (distance == worst and point > group[many - 1]):
                        continue
                    at = many - 1
                else:
                    at = filled
                    filled += 1
                while at > 0 and (
                    ranks[at - 1] > distance
                    or (ranks[at - 1] == distance and group[at - 1] > point)
                ):
                    ranks[at], group[at] = ranks[at - 1], group[at - 1]
                    at -= 1
                ranks[at], group[at] = distance, point
            continue
        one, two = left[node], right[node]
        if _closest(low[one], high[one], place) < _closest(low[two], high[two], place):
            one, two = two, one
        stack[depth], stack[depth + 1] = one, two
        depth += 2
