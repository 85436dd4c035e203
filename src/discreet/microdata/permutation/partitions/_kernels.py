"""Compiled loops of the partitions over the distinct values u[0] < … < u[d−1], m[i] records each.

Groups that are contiguous in the order of the values begin and end at *boundaries*: number 2i is
the gap before value i, number 2i+1 a place inside value i, which exists where m[i] ≥ 2 and gives
the value to both neighbours. A group from boundary a to boundary b holds the values
a // 2 … (b − 1) // 2.
"""

# Any in the annotations of compiled functions would tell nothing: numba types them itself.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, untyped-decorator"

from __future__ import annotations

import numba
import numpy as np


@numba.njit(cache=True)
def min_sum(u, m, k, e, share):
    """Return the boundaries of the partition with the least sum of ranges.

    The sum is the whole range less the gaps at the cuts, so gaps are collected; among equals the
    partition with most groups wins. With `share` two groups may share a value, which costs nothing.
    """
    d = len(u)
    last = 2 * d
    gain = np.full(last + 1, -np.inf)
    groups = np.zeros(last + 1, np.int64)
    back = np.full(last + 1, -1, np.int64)
    gain[0] = 0.0
    left = -1  # the largest value a group that ends at `right` may begin with
    offered = 0
    best = -1
    for b in range(1, last + 1):
        right = (b - 1) // 2
        if b % 2 == 1 and (m[right] < 2 or not share):
            continue
        while left + 1 <= right - k + 1 and u[right] - u[left + 1] >= e:
            left += 1
        while offered <= 2 * left + 1:
            a = offered
            offered += 1
            if gain[a] == -np.inf:
                continue
            if (
                best < 0
                or gain[a] > gain[best]
                or (gain[a] == gain[best] and groups[a] >= groups[best])
            ):
                best = a
        if best < 0:
            continue
        back[b] = best
        groups[b] = groups[best] + 1
        gain[b] = gain[best]
        if b % 2 == 0 and b < last:
            gain[b] += u[b // 2] - u[b // 2 - 1]
    return _trace(back, last)


@numba.njit(cache=True)
def min_max(u, m, k, e):
    """Return the boundaries of the contiguous partition whose largest range is least.

    Among candidates a later one with no larger cost is always as good, so the deque rises in cost
    and falls in range; the best is where the two cross, and that place only moves on.
    """
    d = len(u)
    last = 2 * d
    cost = np.full(last + 1, np.inf)
    back = np.full(last + 1, -1, np.int64)
    cost[0] = 0.0
    window = np.empty(last + 1, np.int64)
    head = tail = 0
    left = -1
    offered = 0
    for b in range(1, last + 1):
        right = (b - 1) // 2
        if b % 2 == 1 and m[right] < 2:
            continue
        while left + 1 <= right - k + 1 and u[right] - u[left + 1] >= e:
            left += 1
        while offered <= 2 * left + 1:
            a = offered
            offered += 1
            if cost[a] == np.inf:
                continue
            while tail > head and cost[window[tail - 1]] >= cost[a]:
                tail -= 1
            window[tail] = a
            tail += 1
        while tail - head > 1 and u[right] - u[window[head + 1] // 2] >= cost[window[head + 1]]:
            head += 1
        if tail == head:
            continue
        back[b] = window[head]
        cost[b] = max(cost[window[head]], u[right] - u[window[head] // 2])
        if tail - head > 1:
            other = window[head + 1]
            rival = max(cost[other], u[right] - u[other // 2])
            if rival <= cost[b]:  # of equals the later: smaller groups
                cost[b] = rival
                back[b] = other
    return _trace(back, last)


@numba.njit(cache=True)
def _trace(back, last):
    size = 0
    b = last
    while b > 0:
        b = back[b]
        size += 1
    found = np.empty(size + 1, np.int64)
    b = last
    for place in range(size, -1, -1):
        found[place] = b
        b = back[b]
    return found


@numba.njit(cache=True)
def starts_of(boundaries, m):
    """Return where each group begins in the sorted records; a shared value is cut in half."""
    d = len(m)
    offsets = np.zeros(d + 1, np.int64)
    for i in range(d):
        offsets[i + 1] = offsets[i] + m[i]
    starts = np.empty(len(boundaries) - 1, np.int64)
    for g in range(len(starts)):
        b = boundaries[g]
        starts[g] = offsets[b // 2]
        if b % 2 == 1:
            starts[g] += m[b // 2] // 2
    return starts


@numba.njit(cache=True)
def _places(m):
    # Places where a group may begin: a gap, after the first and before the last record of a value.
    # Between those two the cost is linear in the place, so no other can be better.
    d = len(m)
    size = d + 1
    for i in range(d):
        size += min(m[i] - 1, 2)
    place = np.empty(size, np.int64)
    first = np.empty(size, np.int64)  # the value a group that begins here begins with
    final = np.empty(size, np.int64)  # the value a group that ends here ends with
    c = 0
    offset = 0
    for i in range(d):
        place[c], first[c], final[c] = offset, i, i - 1
        c += 1
        if m[i] >= 2:
            place[c], first[c], final[c] = offset + 1, i, i
            c += 1
        if m[i] >= 3:
            place[c], first[c], final[c] = offset + m[i] - 1, i, i
            c += 1
        offset += m[i]
    place[c], first[c], final[c] = offset, d, d - 1
    return place, first, final


@numba.njit(cache=True, inline="always")
def _weight(cost, place, first, final, u, a, b):
    return cost[a] + (place[b] - place[a]) * (u[final[b]] - u[first[a]])


@numba.njit(cache=True)
def weighted(u, m, k, e):
    """Return where each group begins for the least Σ size·range over contiguous partitions.

    The cost obeys the quadrangle inequality: once a later candidate is better it stays better. A
    queue holds the candidates with the place from which each is best.
    """
    place, first, final = _places(m)
    size = len(place)
    cost = np.full(size, np.inf)
    cost[0] = 0.0
    back = np.full(size, -1, np.int64)
    queue = np.empty(size, np.int64)
    since = np.empty(size, np.int64)
    head = tail = 0
    left = -1
    offered = 0
    for b in range(1, size):
        right = final[b]
        while left + 1 <= right - k + 1 and u[right] - u[left + 1] >= e:
            left += 1
        while offered < size and first[offered] <= left:
            a = offered
            offered += 1
            if cost[a] == np.inf:
                continue
            while (
                tail > head
                and since[tail - 1] >= b
                and _weight(cost, place, first, final, u, a, since[tail - 1])
                <= _weight(cost, place, first, final, u, queue[tail - 1], since[tail - 1])
            ):
                tail -= 1
            if tail == head:
                queue[tail], since[tail] = a, b
                tail += 1
                continue
            rival = queue[tail - 1]
            low, high = max(since[tail - 1], b), size  # first place where `a` is better
            if _weight(cost, place, first, final, u, a, size - 1) > _weight(
                cost, place, first, final, u, rival, size - 1
            ):
                continue
            while low < high:
                middle = (low + high) // 2
                if _weight(cost, place, first, final, u, a, middle) <= _weight(
                    cost, place, first, final, u, rival, middle
                ):
                    high = middle
                else:
                    low = middle + 1
            if low < size:
                queue[tail], since[tail] = a, low
                tail += 1
        if tail == head:
            continue
        while tail - head > 1 and since[head + 1] <= b:
            head += 1
        back[b] = queue[head]
        cost[b] = _weight(cost, place, first, final, u, queue[head], b)
    found = _trace(back, size - 1)
    return place[found[:-1]]


@numba.njit(cache=True)
def scan(order, breaks, classes, u, k, e):
    """Return groups closed as soon as they are valid, scanning records in order.

    A place in `breaks` ends the scan of a strip: what is unfinished there joins the last group of
    the strip, or goes on into the next strip where the strip has none.
    """
    n = len(order)
    labels = np.empty(n, np.int64)
    seen = np.full(len(u), -1, np.int64)
    group = 0
    round_ = 0
    distinct = 0
    low = high = 0.0
    begin = 0
    strip = 0
    closed_in_strip = False
    for t in range(n):
        if strip < len(breaks) and t == breaks[strip]:
            while strip < len(breaks) and breaks[strip] == t:
                strip += 1
            if closed_in_strip and distinct > 0:
                for p in range(begin, t):
                    labels[order[p]] = group - 1
                begin = t
                round_ += 1
                distinct = 0
            closed_in_strip = False
        c = classes[order[t]]
        if seen[c] != round_:
            seen[c] = round_
            low = u[c] if distinct == 0 else min(low, u[c])
            high = u[c] if distinct == 0 else max(high, u[c])
            distinct += 1
        labels[order[t]] = group
        if distinct >= k and high - low >= e:
            group += 1
            round_ += 1
            distinct = 0
            begin = t + 1
            closed_in_strip = True
    if distinct > 0:
        for p in range(begin, n):
            labels[order[p]] = group - 1
    return labels


@numba.njit(cache=True)
def merge_to_cap(labels, order, classes, distinct, k):
    """Join neighbouring groups until no value makes up more than 1/k of a group.

    Joining keeps a group valid and keeps the cap where both have it, and the whole table has it.
    """
    n = len(order)
    merged = np.empty(n, np.int64)
    count = np.zeros(distinct, np.int64)
    stack = np.empty(n + 1, np.int64)  # where the finished blocks begin
    height = 0
    begin = 0
    most = 0
    for t in range(n):
        c = classes[order[t]]
        count[c] += 1
        most = max(most, count[c])
        ends = t + 1 == n or labels[order[t + 1]] != labels[order[t]]
        if ends and most * k <= t + 1 - begin:
            stack[height] = begin
            height += 1
            for p in range(begin, t + 1):
                count[classes[order[p]]] = 0
            begin = t + 1
            most = 0
    while begin < n and most * k > n - begin:
        height -= 1
        for p in range(stack[height], begin):
            c = classes[order[p]]
            count[c] += 1
            most = max(most, count[c])
        begin = stack[height]
    if begin < n:
        stack[height] = begin
        height += 1
    for g in range(height):
        end = stack[g + 1] if g + 1 < height else n
        for p in range(stack[g], end):
            merged[order[p]] = g
    return merged


@numba.njit(cache=True)
def chain(u, m, k, e, most):
    """Whether groups of which only neighbours overlap can all have ranges of at most `most`.

    A group begins with value a; its predecessor ends with value p and took t single records of the
    values a … p. Nothing else of the past matters, and of two pasts with the same a and t the one
    with the smaller p leaves more freedom. Returns for every state its predecessor, and the last.
    """
    d = len(u)
    single = np.zeros(d + 1, np.int64)
    for i in range(d):
        single[i + 1] = single[i] + (1 if m[i] == 1 else 0)
    width = k + 1
    end = np.full((d + 1, width), -1, np.int64)  # p + 1, or −1 where the state is out of reach
    back = np.full((d + 1, width, 2), -1, np.int64)
    end[0, 0] = 0
    for a in range(d):
        lowest = d + 1
        for t in range(width):
            p = end[a, t]
            if p < 0 or p >= lowest:
                continue
            lowest = p
            for b in range(max(a + 1, p), d):
                if u[b] - u[a] > most:
                    break
                if u[b] - u[a] < e:
                    continue
                for s in range(max(p, a + 1), b + 2):  # where the next group begins
                    need = k - (s - a - t)
                    taken = 0
                    if s <= b:
                        alone = single[b + 1] - single[s]
                        need -= b + 1 - s - alone
                        if m[s] == 1:
                            alone -= 1
                            if s == b:
                                continue
                        taken = max(need, 1 if m[b] == 1 else 0)
                        if taken > alone:
                            continue
                    elif need > 0:
                        continue
                    if end[s, taken] < 0 or b + 1 < end[s, taken]:
                        end[s, taken] = b + 1
                        back[s, taken, 0] = a
                        back[s, taken, 1] = t
    return end, back


@numba.njit(cache=True)
def _valid_after(part, classes, u, k, e, seen, stamp):
    """Return how many of the records, taken in order, make the first valid group; −1 if none do."""
    low = np.inf
    high = -np.inf
    distinct = 0
    for p in range(len(part)):
        c = classes[part[p]]
        if seen[c] != stamp:  # stamped, so that nothing is cleared between calls
            seen[c] = stamp
            distinct += 1
            low = min(low, u[c])
            high = max(high, u[c])
            if distinct >= k and high - low >= e:
                return p + 1
    return -1


@numba.njit(cache=True)
def cells(place, classes, u, k, e, width):
    """Return records ordered by cell, and where each cell begins.

    A cell is cut along the axis and at the place that lower Σ size·extent most, as long as both
    halves hold `width` records and are valid: the extent of a cell on an axis is how likely a range
    on that axis ends inside it. `place` holds one column of comparable coordinates per axis.
    """
    n, axes = place.shape
    index = np.arange(n)
    seen = np.full(len(u), -1, np.int64)
    stamp = 0
    starts = np.zeros(n, np.bool_)
    starts[0] = True
    stack = [(0, n)]
    while len(stack) > 0:
        begin, end = stack.pop()
        size = end - begin
        if size < 2 * width or size < 2 * k:
            continue
        best = 0.0
        cut = -1
        part = index[begin:end].copy()
        halves = part
        for axis in range(axes):
            key = place[part, axis]
            order = np.argsort(key, kind="mergesort")
            low, high = key[order[0]], key[order[size - 1]]
            if size * (high - low) <= best:
                continue
            ordered = part[order]
            stamp += 2
            first = max(_valid_after(ordered, classes, u, k, e, seen, stamp), width)
            after = _valid_after(ordered[::-1], classes, u, k, e, seen, stamp + 1)
            for p in range(first, size - max(after, width) + 1):
                before, behind = key[order[p - 1]], key[order[p]]
                if before == behind:
                    continue
                gain = size * (high - low) - p * (before - low) - (size - p) * (high - behind)
                if gain > best:
                    best, cut = gain, p
                    halves = ordered
        if cut > 0:
            index[begin:end] = halves
            starts[begin + cut] = True
            stack.append((begin, begin + cut))
            stack.append((begin + cut, end))
    return index, np.flatnonzero(starts)


@numba.njit(cache=True)
def weighted_within(index, starts, classes, u, k, e):
    """Return groups made inside each cell by `weighted`, numbered through."""
    n = len(index)
    labels = np.empty(n, np.int64)
    group = 0
    for s in range(len(starts)):
        begin = starts[s]
        end = starts[s + 1] if s + 1 < len(starts) else n
        size = end - begin
        own = np.empty(size, np.int64)
        for p in range(size):
            own[p] = classes[index[begin + p]]
        order = np.argsort(own, kind="mergesort")
        values = np.empty(size)
        counts = np.zeros(size, np.int64)
        distinct = 0
        for p in range(size):
            c = own[order[p]]
            if p == 0 or c != own[order[p - 1]]:
                values[distinct] = u[c]
                distinct += 1
            counts[distinct - 1] += 1
        inner = weighted(values[:distinct], counts[:distinct], k, e)
        for g in range(len(inner)):
            stop = inner[g + 1] if g + 1 < len(inner) else size
            for p in range(inner[g], stop):
                labels[index[begin + order[p]]] = group
            group += 1
    return labels
