"""Alias tables: drawing from many distributions by one look-up each (Walker 1977, Vose 1991)."""

from __future__ import annotations

import numpy as np

from discreet.compiling import Array, kernel

__all__ = ["alias_table"]


@kernel
def alias_table(odds: Array) -> tuple[Array, Array]:
    """Return thresholds and aliases of each row of odds that add up to 1.

    A slot is drawn with equal odds; a second number below its threshold keeps the slot, otherwise
    its alias is taken.
    """
    rows, width = odds.shape
    threshold = np.ones((rows, width))
    other = np.empty((rows, width), np.int64)
    small = np.empty(width, np.int64)
    large = np.empty(width, np.int64)
    for row in range(rows):
        left = odds[row] * width
        few = many = 0
        for place in range(width):
            other[row, place] = place
            if left[place] < 1.0:
                small[few] = place
                few += 1
            else:
                large[many] = place
                many += 1
        while few > 0 and many > 0:
            few -= 1
            low, high = small[few], large[many - 1]
            threshold[row, low] = left[low]
            other[row, low] = high
            left[high] -= 1.0 - left[low]
            if left[high] < 1.0:
                many -= 1
                small[few] = high
                few += 1
    return threshold, other
