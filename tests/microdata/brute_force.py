"""Brute force for the tests: written on its own, record by record, without the library's arrays."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict


def classes(records, quasi):
    """Group records (dicts) by their quasi-identifiers."""
    found = defaultdict(list)
    for record in records:
        found[tuple(record[q] for q in quasi)].append(record)
    return list(found.values())


def distribution(records, column):
    counts = Counter(record[column] for record in records)
    return {value: count / len(records) for value, count in counts.items()}


def k_anonymous(group, whole, k):
    return len(group) >= k


def distinct_diverse(group, whole, column, l):  # noqa: E741
    return len({record[column] for record in group}) >= l


def entropy_diverse(group, whole, column, l):  # noqa: E741
    shares = distribution(group, column).values()
    return -sum(p * math.log(p) for p in shares) >= math.log(l) - 1e-9


def recursive_diverse(group, whole, column, l, c):  # noqa: E741
    counts = sorted(Counter(record[column] for record in group).values(), reverse=True)
    return counts[0] < c * sum(counts[l - 1 :])


def t_close(group, whole, column, t):
    own, all_ = distribution(group, column), distribution(whole, column)
    return sum(abs(own.get(v, 0) - p) for v, p in all_.items()) / 2 <= t + 1e-9


def t_close_ordered(group, whole, column, t):
    own, all_ = distribution(group, column), distribution(whole, column)
    values, moved, cost = sorted(all_), 0.0, 0.0
    for value in values[:-1]:
        moved += own.get(value, 0) - all_[value]
        cost += abs(moved)
    return cost / max(1, len(values) - 1) <= t + 1e-9


def beta_like(group, whole, column, beta, enhanced):
    own, all_ = distribution(group, column), distribution(whole, column)
    for value, q in own.items():
        p = all_[value]
        bound = min(beta, -math.log(p)) if enhanced else beta
        if q > p and (q - p) / p > bound + 1e-9:
            return False
    return True


def delta_disclosed(group, whole, column, delta):
    own, all_ = distribution(group, column), distribution(whole, column)
    return all(v in own and abs(math.log(own[v] / p)) < delta for v, p in all_.items())


def generalized(records, quasi, tables, node):
    """Return copies of the records at a node; tables: column → value → tuple of codes."""
    return [
        {**r, **{q: tables[q][r[q]][level] for q, level in zip(quasi, node, strict=True)}}
        for r in records
    ]


def loss(records, changed, gone, quasi, tables, node):
    score = 1.0
    for q, level in zip(quasi, node, strict=True):
        leaves = tables[q]
        cover = Counter(codes[level] for codes in leaves.values())
        mean = sum(
            1 if i in gone else cover[changed[i][q]] / len(leaves) for i in range(len(records))
        ) / len(records)
        if len(leaves) > 1:
            score *= 1 + (mean - 1 / len(leaves)) / (1 - 1 / len(leaves))
    return score ** (1 / len(quasi)) - 1


def discernibility(records, changed, gone, quasi, tables, node):
    kept = [r for i, r in enumerate(changed) if i not in gone]
    return sum(len(c) ** 2 for c in classes(kept, quasi)) + len(gone) * len(records)


def aecs(records, changed, gone, quasi, tables, node):
    kept = [r for i, r in enumerate(changed) if i not in gone]
    return len(records) / (len(classes(kept, quasi)) + (1 if gone else 0))


def entropy(records, changed, gone, quasi, tables, node):
    bits = 0.0
    for q in quasi:
        old = Counter(r[q] for r in records)
        new = Counter(r[q] for r in changed)
        for a, b in zip(records, changed, strict=True):
            bits -= math.log2(old[a[q]] / new[b[q]])
        lost = Counter(changed[i][q] for i in gone)
        bits -= sum(n * math.log2(n / len(gone)) for n in lost.values())
    return bits


METRICS = {"loss": loss, "discernibility": discernibility, "aecs": aecs, "entropy": entropy}


def exhaustive(records, quasi, tables, promises, metric, limit):
    """Return the least score over all nodes, or None where none is feasible."""
    heights = [len(next(iter(tables[q].values()))) for q in quasi]
    best = None
    for node in itertools.product(*map(range, heights)):
        changed = generalized(records, quasi, tables, node)
        for i, r in enumerate(changed):
            r["#"] = i
        gone = {
            r["#"]
            for group in classes(changed, quasi)
            if not all(promise(group, records) for promise in promises)
            for r in group
        }
        if len(gone) > limit:
            continue
        score = METRICS[metric](records, changed, gone, quasi, tables, node)
        if best is None or score < best:
            best = score
    return best
