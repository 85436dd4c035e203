"""Compiled passes over the records, ordered by group."""

# Any in the annotations of compiled functions would tell nothing: numba types them itself.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, untyped-decorator"

from __future__ import annotations

import numba
import numpy as np


@numba.njit(cache=True)
def by_group(labels, groups):
    """Return the records ordered by group (stable), and where each group begins."""
    starts = np.zeros(groups + 1, np.int64)
    for label in labels:
        starts[label + 1] += 1
    for g in range(groups):
        starts[g + 1] += starts[g]
    place = starts[:-1].copy()
    order = np.empty(len(labels), np.int64)
    for i in range(len(labels)):
        order[place[labels[i]]] = i
        place[labels[i]] += 1
    return order, starts


@numba.njit(cache=True)
def shuffle(order, starts, words):
    """Put the records of each group in random order, each order equally likely.

    A word modulo a group's size favours small remainders by less than size / 2**64.
    """
    for g in range(len(starts) - 1):
        for i in range(starts[g + 1] - 1, starts[g], -1):
            j = starts[g] + np.int64(words[i] % np.uint64(i - starts[g] + 1))
            order[i], order[j] = order[j], order[i]


@numba.njit(cache=True)
def help_sums(ordered_low, ordered_high, starts):
    """Return Σ of the h smallest (rounded down) and h largest (rounded up) of each group."""
    low = np.empty(len(ordered_low), np.int64)
    high = np.empty(len(ordered_low), np.int64)
    for g in range(len(starts) - 1):
        begin, end = starts[g], starts[g + 1]
        total = 0
        for i in range(begin, end):
            total += ordered_low[i]
            low[i] = total
        total = 0
        for i in range(end - begin):
            total += ordered_high[end - 1 - i]
            high[begin + i] = total
    return low, high


@numba.njit(cache=True)
def group_facts(ordered_classes, starts, u):
    """Return for each group its distinct values, its range and its most frequent value's count."""
    groups = len(starts) - 1
    distinct = np.zeros(groups, np.int64)
    span = np.zeros(groups)
    most = np.zeros(groups, np.int64)
    for g in range(groups):
        run = 0
        for i in range(starts[g], starts[g + 1]):
            if i == starts[g] or ordered_classes[i] != ordered_classes[i - 1]:
                distinct[g] += 1
                run = 0
            run += 1
            most[g] = max(most[g], run)
        span[g] = u[ordered_classes[starts[g + 1] - 1]] - u[ordered_classes[starts[g]]]
    return distinct, span, most


@numba.njit(cache=True)
def hits_of_codes(codes, accepted, starts):
    """Count for each group the records whose code is accepted."""
    hits = np.zeros(len(starts) - 1, np.int64)
    for g in range(len(starts) - 1):
        count = 0
        for i in range(starts[g], starts[g + 1]):
            count += accepted[codes[i]]
        hits[g] = count
    return hits


@numba.njit(cache=True)
def hits_by_key(codes, accepted, keys, key_count, starts):
    """Count the accepted records of each group by key: (key, group, hits) where there are any."""
    groups = len(starts) - 1
    out_key = np.empty(min(len(keys), key_count * groups), np.int64)
    out_group = np.empty(len(out_key), np.int64)
    out_hits = np.empty(len(out_key), np.int64)
    count = np.zeros(key_count, np.int64)
    found = 0
    for g in range(groups):
        if key_count <= 4 * (starts[g + 1] - starts[g]):
            for i in range(starts[g], starts[g + 1]):
                count[keys[i]] += accepted[codes[i]]
            for key in range(key_count):
                if count[key] > 0:
                    out_key[found], out_group[found], out_hits[found] = key, g, count[key]
                    found += 1
                    count[key] = 0
            continue
        before = found  # many keys and a small group: remember which were met
        for i in range(starts[g], starts[g + 1]):
            if accepted[codes[i]]:
                key = keys[i]
                if count[key] == 0:
                    out_key[found], out_group[found] = key, g
                    found += 1
                count[key] += 1
        for place in range(before, found):
            out_hits[place] = count[out_key[place]]
            count[out_key[place]] = 0
    return out_key[:found], out_group[:found], out_hits[:found]


@numba.njit(cache=True)
def ends_by_key(codes, accepted, keys, key_count, values):
    """Return the least and the greatest value of the accepted records of each key."""
    low = np.full(key_count, values.max() if len(values) else 0)
    high = np.full(key_count, values.min() if len(values) else 0)
    for i in range(len(values)):
        if accepted[codes[i]]:
            key = keys[i]
            low[key] = min(low[key], values[i])
            high[key] = max(high[key], values[i])
    return low, high


@numba.njit(cache=True)
def sum_by_key(key, value, key_count):
    """Return exact sums of whole numbers by key."""
    total = np.zeros(key_count, np.int64)
    for i in range(len(key)):
        total[key[i]] += value[i]
    return total
