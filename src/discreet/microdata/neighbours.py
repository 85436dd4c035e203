"""Nearest neighbours, exactly: blocks of points in boxes, looked at from the most promising on.

Boxes too far away are passed over; the points of a box are compared all at once by the processor's
vector units. So files whose neighbours are far apart, where trees of single points lose their
advantage, still cost no more than comparing everything.
"""

from __future__ import annotations

import dataclasses
import functools
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from discreet.compiling import Array, kernel

__all__ = ["Boxes", "nearest"]

Numbers = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]

#: Points in a box, and coordinates compared at once.
_BOX = 64
_LANES = 4
#: Distances that differ by less than this share are equal: they come from rounded numbers.
TOLERANCE = 1e-12


@dataclasses.dataclass(frozen=True, eq=False)
class Boxes:
    """Points in boxes, with the tree of boxes above them.

    `points` has one block of coordinates by points for each box, filled up with infinity; `weight`
    belongs to the points. Of each node: its children (or −1 and the box), its corners.
    """

    points: Numbers
    weight: Places
    left: Places
    right: Places
    low: Numbers
    high: Numbers

    @classmethod
    def of(cls, points: Numbers, weight: Places) -> Boxes:
        """Halve the points at the middle of their widest coordinate until they fit into boxes."""
        size, axes = points.shape
        padded = -(-axes // _LANES) * _LANES
        left: list[int] = []
        right: list[int] = []
        low: list[Numbers] = []
        high: list[Numbers] = []
        blocks: list[Numbers] = []
        weights: list[Places] = []
        waiting: list[tuple[Places, int]] = [(np.arange(size), -1)]
        while waiting:
            chosen, parent = waiting.pop()
            own = points[chosen]
            corner, other = own.min(axis=0), own.max(axis=0)
            if parent >= 0:
                if left[parent] < 0:
                    left[parent] = len(left)
                else:
                    right[parent] = len(left)
            place = len(left)
            low.append(corner)
            high.append(other)
            left.append(-1)
            right.append(-1)
            if len(chosen) > _BOX:
                axis = int(np.argmax(other - corner))
                # A multiple of the box, so that all boxes but the last are full.
                half = -(-(len(chosen) // 2) // _BOX) * _BOX
                order = np.argpartition(own[:, axis], half)
                waiting.append((chosen[order[half:]], place))
                waiting.append((chosen[order[:half]], place))
                continue
            block = np.full((padded, _BOX), 0.0)
            block[:axes, : len(chosen)] = own.T
            block[0, len(chosen) :] = np.inf
            right[place] = len(blocks)
            blocks.append(block)
            weights.append(np.pad(weight[chosen], (0, _BOX - len(chosen))))
        return cls(
            np.stack(blocks),
            np.stack(weights),
            np.array(left),
            np.array(right),
            np.pad(np.stack(low), ((0, 0), (0, padded - axes))),
            np.pad(np.stack(high), ((0, 0), (0, padded - axes))),
        )


def nearest(queries: Numbers, spots: Numbers, weight: Places) -> tuple[Numbers, Places]:
    """Return for each query the squared distance of the nearest spot, and the weight found there.

    Spots at the same distance count together.

    >>> away, found = nearest(
    ...     np.array([[1.0]]), np.array([[0.0], [2.0], [5.0]]), np.array([1, 2, 9])
    ... )
    >>> away, found
    (array([1.]), array([3]))
    """
    boxes = Boxes.of(spots, weight)
    padded = boxes.low.shape[1]
    asked = np.zeros((len(queries), padded))
    asked[:, : queries.shape[1]] = queries
    away, found = np.empty(len(queries)), np.empty(len(queries), np.int64)
    search = functools.partial(_search, boxes)
    threads = max(1, min(os.cpu_count() or 1, len(queries) // 1024))
    parts = [(asked[i::threads].copy(), i) for i in range(threads)]
    with ThreadPoolExecutor(threads) as pool:
        for (_, start), (near, many) in zip(
            parts, pool.map(search, (part for part, _ in parts)), strict=True
        ):
            away[start::threads], found[start::threads] = near, many
    return away, found


def _search(boxes: Boxes, queries: Numbers) -> tuple[Numbers, Places]:
    away, found = np.empty(len(queries)), np.empty(len(queries), np.int64)
    _nearest(
        queries,
        boxes.points,
        boxes.weight,
        boxes.left,
        boxes.right,
        boxes.low,
        boxes.high,
        away,
        found,
    )
    return away, found


@kernel
def _distance(low: Array, high: Array, query: Array) -> Array:
    total = 0.0
    for axis in range(query.shape[0]):
        step = max(low[axis] - query[axis], query[axis] - high[axis], 0.0)
        total += step * step
    return total


@kernel
def _compared(block: Array, query: Array, away: Array, bound: float) -> Array:
    """Fill in the distances to a box's points; return whether one is within the bound."""
    for place in range(64):
        away[place] = 0.0
    for axis in range(0, query.shape[0], 4):
        q0, q1, q2, q3 = query[axis], query[axis + 1], query[axis + 2], query[axis + 3]
        s0, s1, s2, s3 = block[axis], block[axis + 1], block[axis + 2], block[axis + 3]
        for place in range(64):
            d0, d1 = s0[place] - q0, s1[place] - q1
            d2, d3 = s2[place] - q2, s3[place] - q3
            away[place] += (d0 * d0 + d1 * d1) + (d2 * d2 + d3 * d3)
    near = 0
    for place in range(64):
        near |= away[place] <= bound
    return near


@kernel
def _nearest(
    queries: Array,
    points: Array,
    weight: Array,
    left: Array,
    right: Array,
    low: Array,
    high: Array,
    away: Array,
    found: Array,
) -> None:
    stack, reach = np.empty(256, np.int64), np.empty(256)
    block_away = np.empty(64)
    for row in range(queries.shape[0]):
        query = queries[row]
        best, many = np.inf, 0
        stack[0], reach[0], depth = 0, 0.0, 1
        while depth > 0:
            depth -= 1
            bound = best * (1 + 1e-12)
            if reach[depth] > bound:
                continue
            node = stack[depth]
            if left[node] < 0:
                box = right[node]
                if _compared(points[box], query, block_away, bound):
                    for place in range(64):
                        distance = block_away[place]
                        if distance < best * (1 - 1e-12) or best == np.inf:
                            if distance < np.inf:
                                best, many = distance, weight[box, place]
                        elif distance <= best * (1 + 1e-12):
                            many += weight[box, place]
                continue
            one, two = left[node], right[node]
            near = _distance(low[one], high[one], query)
            far = _distance(low[two], high[two], query)
            if near > far:
                one, two, near, far = two, one, far, near
            stack[depth], reach[depth] = two, far
            stack[depth + 1], reach[depth + 1] = one, near
            depth += 2
        away[row], found[row] = best, many
