"""MDAV on numbers and categories: categories are compared by their codes, not as coordinates.

A category stands for a corner of a simplex, so two records are as far apart in it as a code that
differs says, and the distance to a centroid needs only the share of the record's own category.
With many categories that is a small part of the work that coordinates would take, and no tree
helps in so many dimensions: what remains is looked through.
"""

from __future__ import annotations

import numpy as np

from discreet.compiling import Array, kernel

__all__ = ["mixed_mdav"]


@kernel
def _away(points: Array, codes: Array, share: Array, many: int, one: Array, away: Array) -> None:
    """Fill in the squared distances of what remains to one of them, by its place."""
    away[:many] = 0.0
    for axis in range(points.shape[0]):
        here, value = points[axis], points[axis, one]
        for place in range(many):
            step = here[place] - value
            away[place] += step * step
    for column in range(codes.shape[0]):
        own, code, apart = codes[column], codes[column, one], share[column]
        for place in range(many):
            away[place] += apart if own[place] != code else 0.0


@kernel
def _from_centre(
    points: Array, codes: Array, share: Array, many: int, sums: Array, counts: Array, away: Array
) -> None:
    """Fill in the squared distances to the centroid, less what is the same for every record."""
    away[:many] = 0.0
    for axis in range(points.shape[0]):
        here, middle = points[axis], sums[axis] / many
        for place in range(many):
            step = here[place] - middle
            away[place] += step * step
    for column in range(codes.shape[0]):
        # |corner − centroid|² falls with the share of the record's own category.
        own, count, weight = codes[column], counts[column], share[column] / many
        for place in range(many):
            away[place] -= weight * count[own[place]]


@kernel
def _farthest(rows: Array, many: int, away: Array) -> Array:
    """Return the place of the largest distance, the smallest record among equals."""
    best, found = -np.inf, -1
    for place in range(many):
        distance = away[place]
        if distance > best or (distance == best and rows[place] < rows[found]):
            best, found = distance, place
    return found


@kernel
def _closest(
    rows: Array, many: int, away: Array, centre: Array, group: Array, ranks: Array
) -> None:
    """Fill in the record and those nearest to it, the smallest number among equals."""
    k = group.size
    filled = 0
    for place in range(many):
        row = rows[place]
        distance = -1.0 if row == centre else away[place]
        if filled == k:
            if distance > ranks[k - 1] or (distance == ranks[k - 1] and row > group[k - 1]):
                continue
            at = k - 1
        else:
            at = filled
            filled += 1
        while at > 0 and (
            ranks[at - 1] > distance or (ranks[at - 1] == distance and group[at - 1] > row)
        ):
            ranks[at], group[at] = ranks[at - 1], group[at - 1]
            at -= 1
        ranks[at], group[at] = distance, row


@kernel
def mixed_mdav(points: Array, codes: Array, share: Array, k: int) -> Array:
    """Return the group of each record; see `mdav`.

    Both have a row per column of the file; what is taken makes place for the last that remains.
    `codes` has the categories, `share` the squared distance at which two different ones lie.
    """
    n = codes.shape[1]
    groups = np.full(n, -1, np.int64)
    rows, where = np.arange(n), np.arange(n)
    away, group, ranks = np.empty(n), np.empty(k, np.int64), np.empty(k)
    sums = np.zeros(points.shape[0])
    counts = np.zeros((codes.shape[0], np.int64(codes.max()) + 1))
    for axis in range(points.shape[0]):
        sums[axis] = points[axis].sum()
    for column in range(codes.shape[0]):
        for row in range(n):
            counts[column, codes[column, row]] += 1
    many, made = n, 0
    while many >= 2 * k:
        _from_centre(points, codes, share, many, sums, counts, away)
        first = rows[_farthest(rows, many, away)]
        _away(points, codes, share, many, where[first], away)
        rounds = 2 if many >= 3 * k else 1
        # The one farthest from the first, were the first group gone already.
        second = rows[_farthest(rows, many, away)]
        for turn in range(rounds):
            leader = first
            if turn == 1:
                # With many equal records the first group may have it; the others are as far.
                leader = second if groups[second] < 0 else rows[:many].min()
                _away(points, codes, share, many, where[leader], away)
            _closest(rows, many, away, leader, group, ranks)
            for taken in range(k):
                row = group[taken]
                groups[row] = made
                many -= 1
                place = where[row]
                for axis in range(points.shape[0]):
                    sums[axis] -= points[axis, place]
                    points[axis, place] = points[axis, many]
                for column in range(codes.shape[0]):
                    counts[column, codes[column, place]] -= 1
                    codes[column, place] = codes[column, many]
                rows[place] = rows[many]
                where[rows[place]] = place
            made += 1
        if rounds == 1:
            break
    for place in range(many):
        groups[rows[place]] = made
    return groups
