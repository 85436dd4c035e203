"""The range of each group's sum from the slots of a tree, in one pass over the leaves in order."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.compiling import inner, kernel

__all__ = ["FANOUT", "Stacked", "narrowed"]

Floats = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]
#: Parts of a node above the leaves.
FANOUT = 8
#: What is added up of a group in one node: ends of what it holds, of what it leaves out of parts
#: that it touches, and the slots of these parts.
_LOW, _HIGH, _OUT_LOW, _OUT_HIGH, _LEAST, _MOST = range(6)
#: Where each level begins, and one after the other: sums of the ends of parts, and ends of slots.
Stacked = tuple[Ids, Floats, Floats, Floats, Floats]


@kernel
def narrowed(
    places: Ids, group: Ids, groups: int, leaf: Ids, low: Floats, high: Floats, levels: Stacked
) -> tuple[Floats, Floats]:
    """Return the range of each group's sum.

    At each of the places, which come in the order of their leaves, a group holds some records of a
    leaf, whose cells add up to [low, high]. Records of no leaf (−1) have no value.
    """
    depth = levels[0].size - 1
    # One more level takes what leaves the top of the tree: the result.
    sums = np.zeros((depth + 1, groups, 6))
    touched = np.zeros((depth, groups), np.bool_)
    listed, count = np.empty((depth, groups), np.int64), np.zeros(depth, np.int64)
    current = -1
    for n in range(places.size):
        place = places[n]
        if leaf[place] < 0:
            continue
        if leaf[place] != current:
            if current >= 0:
                _close(current, leaf[place], depth, sums, touched, listed, count, levels)
            current = leaf[place]
        which = group[n]
        if not touched[0, which]:
            touched[0, which] = True
            listed[0, count[0]] = which
            count[0] += 1
        sums[0, which, _LOW] += low[place]
        sums[0, which, _HIGH] += high[place]
    if current >= 0:
        _close(current, -1, depth, sums, touched, listed, count, levels)
    return sums[depth, :, _LOW].copy(), sums[depth, :, _HIGH].copy()


@inner
def _close(
    node: int, following: int, depth: int, sums: npt.NDArray[np.float64],
    touched: npt.NDArray[np.bool_], listed: npt.NDArray[np.int64], count: Ids, levels: Stacked,
) -> None:  # fmt: skip
    """Add a leaf's range for each group to the node above it, and so on for nodes that end there."""
    starts, lows, highs, leasts, mosts = levels
    for level in range(depth):
        if node == following:
            return
        at = starts[level] + node
        least, most = leasts[at], mosts[at]
        for n in range(count[level]):
            which = listed[level, n]
            inside_low, inside_high = sums[level, which, _LOW], sums[level, which, _HIGH]
            if level == 0:
                outside_low, outside_high = lows[at] - inside_low, highs[at] - inside_high
            else:  # parts without any record of the group are outside it as a whole
                outside_low = lows[at] - sums[level, which, _LEAST] + sums[level, which, _OUT_LOW]
                outside_high = highs[at] - sums[level, which, _MOST] + sums[level, which, _OUT_HIGH]
            sums[level + 1, which, _LOW] += max(inside_low, least - outside_high)
            sums[level + 1, which, _HIGH] += min(inside_high, most - outside_low)
            sums[level + 1, which, _OUT_LOW] += max(outside_low, least - inside_high)
            sums[level + 1, which, _OUT_HIGH] += min(outside_high, most - inside_low)
            sums[level + 1, which, _LEAST] += least
            sums[level + 1, which, _MOST] += most
            sums[level, which, :] = 0.0
            touched[level, which] = False
            if level + 1 < depth and not touched[level + 1, which]:
                touched[level + 1, which] = True
                listed[level + 1, count[level + 1]] = which
                count[level + 1] += 1
        count[level] = 0
        node //= FANOUT
        following = following // FANOUT if following >= 0 else -1
