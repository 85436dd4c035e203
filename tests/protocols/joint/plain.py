"""Random parts of cells and the rules applied to them in plain sight."""

from __future__ import annotations

import itertools

import numpy as np

TOPS = 2


def random_parts(rng, owners, cells):
    """Contributions of each owner in each cell, with empty cells, singletons and giants."""
    parts = []
    for _ in range(owners):
        listed = []
        for _ in range(cells):
            size = rng.choice([0, 0, 1, 1, 2, 3, 5])
            values = rng.integers(0, rng.choice([2, 10, 1000, 10**6]), size)
            listed.append(np.sort(values)[::-1])
        parts.append(listed)
    return parts


def summary(part, tops=TOPS):
    """Count, sum and largest contributions of one owner."""
    count = np.array([len(v) for v in part])
    total = np.array([v.sum() for v in part], dtype=np.int64)
    top = np.array([[v[k] if len(v) > k else 0 for v in part] for k in range(tops)])
    return count, total, top


def asking(values):
    """Contributions of those who asked for protection: by a public mark, here the odd ones."""
    return values[values % 2 == 1]


def forms(rule, count, total, top, asked=0):
    """Whether all inequalities of a rule hold, in Python's unbounded integers."""
    return all(
        form.constant
        + form.count * int(count)
        + form.total * int(total)
        + sum(c * int(x) for c, x in zip(form.largest, top, strict=False))
        + form.requested * int(asked)
        < 0
        for form in rule.inequalities()
    )


def plain_flags(parts, rules, *, collusion=1, tops=TOPS):
    """Sensitive cells by the definition: the total, and what remains for every coalition."""
    owners = range(len(parts))
    flags = []
    for cell in range(len(parts[0])):
        found = False
        for size in range(collusion + 1):
            for coalition in itertools.combinations(owners, size):
                rest = [parts[o][cell] for o in owners if o not in coalition]
                values = np.sort(np.concatenate(rest))[::-1] if rest else np.array([])
                top = [values[k] if len(values) > k else 0 for k in range(tops)]
                asked = max(asking(values), default=0)
                found |= any(forms(rule, len(values), values.sum(), top, asked) for rule in rules)
        flags.append(found)
    return np.array(flags)
