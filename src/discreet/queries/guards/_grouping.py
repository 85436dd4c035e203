"""Records put into groups: which profiles each group holds, and sums over them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.compiling import kernel

__all__ = ["Parts", "grouped", "marked", "summed"]

Ids = npt.NDArray[np.int64]
#: Profiles group by group, where each group ends, and the codes of the groups.
Parts = tuple[Ids, Ids, Ids]


@kernel
def grouped(bits: npt.NDArray[np.uint8], codes: npt.NDArray[np.int32], groups: int) -> Parts:
    """Put the profiles whose bits are set into the groups that their codes name."""
    sizes = np.zeros(groups + 1, np.int64)
    for place in range(codes.size):
        if bits[place >> 3] & (128 >> (place & 7)):
            sizes[codes[place] + 1] += 1
    present = np.flatnonzero(sizes[1:])
    starts = np.cumsum(sizes)
    ends = starts[present + 1]
    flat = np.empty(starts[groups], np.int64)
    for place in range(codes.size):
        if bits[place >> 3] & (128 >> (place & 7)):
            code = codes[place]
            flat[starts[code]] = place
            starts[code] += 1
    return flat, ends, present


@kernel
def marked(bits: npt.NDArray[np.uint8], codes: npt.NDArray[np.int32], groups: int) -> Parts:
    """Return the profiles whose bits are set, in order, the group of each, and the groups' codes."""
    size = 0
    present = np.zeros(groups, np.bool_)
    for place in range(codes.size):
        if bits[place >> 3] & (128 >> (place & 7)):
            present[codes[place]] = True
            size += 1
    there = np.flatnonzero(present)
    number = np.empty(groups, np.int64)
    number[there] = np.arange(there.size)
    places, group = np.empty(size, np.int64), np.empty(size, np.int64)
    size = 0
    for place in range(codes.size):
        if bits[place >> 3] & (128 >> (place & 7)):
            places[size], group[size] = place, number[codes[place]]
            size += 1
    return places, group, there


@kernel
def summed(values: npt.NDArray[Any], flat: Ids, ends: Ids) -> npt.NDArray[Any]:
    """Return the sum of each group's values, one value per profile. Any: numbers of one type."""
    out = np.zeros(ends.size, values.dtype)
    start = 0
    for group in range(ends.size):
        total = out[group]
        for place in range(start, ends[group]):
            total += values[flat[place]]
        out[group] = total
        start = ends[group]
    return out
