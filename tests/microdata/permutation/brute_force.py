"""Every partition of a handful of records, tried one by one."""

from __future__ import annotations

import itertools

import numba
import numpy as np


@numba.njit(cache=False)
def all_partitions(values, k, e):
    """Least sum and least largest range over all set partitions (restricted growth strings)."""
    n = len(values)
    label = np.zeros(n, np.int64)
    top = np.zeros(n, np.int64)  # largest label before each place
    best_sum = np.inf
    best_max = np.inf
    while True:
        groups = max(top[n - 1], label[n - 1]) + 1
        total = 0.0
        largest = 0.0
        valid = True
        for g in range(groups):
            low = np.inf
            high = -np.inf
            distinct = 0
            for i in range(n):
                if label[i] != g:
                    continue
                fresh = True
                for j in range(i):
                    if label[j] == g and values[j] == values[i]:
                        fresh = False
                if fresh:
                    distinct += 1
                low = min(low, values[i])
                high = max(high, values[i])
            if distinct < k or high - low < e:
                valid = False
                break
            total += high - low
            largest = max(largest, high - low)
        if valid:
            best_sum = min(best_sum, total)
            best_max = min(best_max, largest)
        place = n - 1
        while place > 0 and label[place] > top[place]:
            place -= 1
        if place == 0:
            return best_sum, best_max
        label[place] += 1
        for i in range(place + 1, n):
            top[i] = max(top[i - 1], label[i - 1])
            label[i] = 0


def contiguous(values, k, e):
    """Least weighted sum, least largest range over runs of the sorted records."""
    ordered = sorted(values)
    n = len(ordered)
    best_weighted = best_max = np.inf
    for cuts in itertools.product((False, True), repeat=n - 1):
        places = [0, *(i + 1 for i, cut in enumerate(cuts) if cut), n]
        groups = [ordered[a:b] for a, b in itertools.pairwise(places)]
        if all(len(set(g)) >= k and g[-1] - g[0] >= e for g in groups):
            best_weighted = min(best_weighted, sum(len(g) * (g[-1] - g[0]) for g in groups))
            best_max = min(best_max, max(g[-1] - g[0] for g in groups))
    return best_weighted, best_max
