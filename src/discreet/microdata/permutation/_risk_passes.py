"""Compiled passes of the insider attack."""

# Any in the annotations of compiled functions would tell nothing: numba types them itself.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, untyped-decorator"

from __future__ import annotations

import numba
import numpy as np


@numba.njit(cache=True)
def insiders(ordered_classes, starts, u, most):
    """Return for 1 … most insiders the least distinct values left, the least range, the exposed.

    The worst insiders use up the rarest values; for the range, the values at the two ends.
    """
    distinct = np.full(most, np.int64(2**62))
    span = np.full(most, np.inf)
    exposed = np.zeros(most, np.int64)
    for g in range(len(starts) - 1):
        begin, end = starts[g], starts[g + 1]
        d = 1
        for i in range(begin + 1, end):
            if ordered_classes[i] != ordered_classes[i - 1]:
                d += 1
        counts = np.zeros(d, np.int64)
        values = np.empty(d)
        at = -1
        for i in range(begin, end):
            if i == begin or ordered_classes[i] != ordered_classes[i - 1]:
                at += 1
                values[at] = u[ordered_classes[i]]
            counts[at] += 1
        rare = np.zeros(most + 1, np.int64)  # how many values have so many records
        for held in counts:
            if held <= most:
                rare[held] += 1
        for number in range(1, most + 1):
            gone = 0
            unused = number
            for count in range(1, most + 1):
                taken = min(rare[count], unused // count)
                gone += taken
                unused -= taken * count
            gone = min(gone, d - 1)
            left = end - begin - number
            if left <= 0:
                continue
            distinct[number - 1] = min(distinct[number - 1], d - gone)
            if d - gone == 1:
                exposed[number - 1] += left
            # Values used up from below, the rest of the insiders from above.
            low = 0
            low_spent = 0
            while low < d:
                high = d - 1
                high_spent = 0
                while high > low and low_spent + high_spent + counts[high] <= number:
                    high_spent += counts[high]
                    high -= 1
                span[number - 1] = min(span[number - 1], values[high] - values[low])
                low_spent += counts[low]
                low += 1
                if low_spent > number:
                    break
    for number in range(most):
        if distinct[number] == 2**62:
            distinct[number] = 0
            span[number] = 0.0
    return distinct, span, exposed
