"""The compiled loops of the partitions, written out with lists."""

from __future__ import annotations

from collections import Counter


def is_valid(records, classes, u, k, e):
    """Whether records have k distinct values that span e."""
    values = {u[classes[r]] for r in records}
    return len(values) >= k and max(values) - min(values) >= e


def labels_of(groups, n):
    labels = [-1] * n
    for label, group in enumerate(groups):
        for record in group:
            labels[record] = label
    return labels


def scan(order, breaks, classes, u, k, e):
    """Groups closed as soon as they are valid; what a strip leaves joins its last group."""
    groups, unfinished, closed = [], [], False
    for t, record in enumerate(order):
        if t in breaks:
            if closed and unfinished:
                groups[-1] += unfinished
                unfinished = []
            closed = False
        unfinished.append(record)
        if is_valid(unfinished, classes, u, k, e):
            groups.append(unfinished)
            unfinished, closed = [], True
    if unfinished:
        groups[-1] += unfinished
    return labels_of(groups, len(order))


def merge_to_cap(labels, order, classes, k):
    """Neighbouring groups joined until no value makes up more than 1/k of a group."""

    def is_capped(records):
        return max(Counter(classes[r] for r in records).values()) * k <= len(records)

    done, current = [], []
    for t, record in enumerate(order):
        current.append(record)
        ends = t + 1 == len(order) or labels[order[t + 1]] != labels[record]
        if ends and is_capped(current):
            done.append(current)
            current = []
    while current and not is_capped(current):
        current = done.pop() + current
    return labels_of([*done, current] if current else done, len(order))


def cells(place, classes, u, k, e, width):
    """Cells cut along the axis and at the place that lower Σ size·extent most."""

    def cut(part):
        best, halves = 0.0, None
        if len(part) < 2 * width or len(part) < 2 * k:
            return [part]
        for axis in range(len(place[0])):
            ordered = sorted(part, key=lambda r: place[r][axis])
            key = [place[r][axis] for r in ordered]
            for p in range(width, len(part) - width + 1):
                if p == 0 or p == len(part) or key[p - 1] == key[p]:
                    continue
                gain = (
                    len(part) * (key[-1] - key[0])
                    - p * (key[p - 1] - key[0])
                    - (len(part) - p) * (key[-1] - key[p])
                )
                if gain > best and all(
                    is_valid(half, classes, u, k, e) for half in (ordered[:p], ordered[p:])
                ):
                    best, halves = gain, (ordered[:p], ordered[p:])
        return [part] if halves is None else [*cut(halves[0]), *cut(halves[1])]

    return cut(list(range(len(place))))
