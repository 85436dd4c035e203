"""The auditor of sums, written out: exact linear algebra on the answered sets, and brute force.

Slow and short. `Reference` works over the rationals and tries every set of fewer than k records.
`Elimination` works modulo a fixed prime and knows only k ≤ 3, where a combination of answers on
fewer than k records shows in the reduced row echelon form; it follows histories of hundreds of
answers.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np


def rank(rows):
    """Rank over the rationals, by elimination."""
    rows = [[Fraction(int(x)) for x in row] for row in rows]
    done = 0
    for column in range(len(rows[0]) if rows else 0):
        chosen = next((i for i in range(done, len(rows)) if rows[i][column]), None)
        if chosen is None:
            continue
        rows[done], rows[chosen] = rows[chosen], rows[done]
        for i in range(done + 1, len(rows)):
            factor = rows[i][column] / rows[done][column]
            if factor:
                rows[i] = [a - factor * b for a, b in zip(rows[i], rows[done], strict=True)]
        done += 1
        if done == len(rows):
            break
    return done


def low_weight_sets(sizes, k):
    """Yield the sets of columns that hold fewer than k records in all."""
    for size in range(1, k):
        for columns in itertools.combinations(range(len(sizes)), size):
            if sum(sizes[c] for c in columns) < k:
                yield set(columns)


def has_low_weight(rows, sizes, k):
    """Whether a combination of independent rows is zero but on fewer than k records."""
    full = rank(rows)
    for columns in low_weight_sets(sizes, k):
        rest = [[x for c, x in enumerate(row) if c not in columns] for row in rows]
        if rank(rest) < full:
            return True
    return False


def isolates(rows, records, k):
    """Whether some combination of the rows is zero but on fewer than k of the records."""
    return has_low_weight(rows, [1] * records, k)


class Reference:
    """What `Auditor` decides, from the definition."""

    def __init__(self, counts, k):
        self.counts, self.k = [int(c) for c in counts], k
        self.rows = [[int(c > 0) for c in self.counts]]  # the total is taken as known

    @property
    def rank(self):
        return rank(self.rows)

    @property
    def atoms(self):
        """Records with the same memberships; profiles without records are none."""
        return len({m for c, m in zip(self.counts, zip(*self.rows, strict=True), strict=True) if c})

    def row(self, inside):
        return [int(j in set(inside) and c > 0) for j, c in enumerate(self.counts)]

    def decide(self, inside):
        """Return whether the sum may be answered, and whether it follows from what was."""
        row = self.row(inside)
        total = sum(c for c, x in zip(self.counts, row, strict=True) if x)
        apart = sum(self.counts) - total
        if total < max(self.k, 1) or 0 < apart < self.k:
            return False, False
        if rank([*self.rows, row]) == self.rank:
            return True, True
        for columns in low_weight_sets(self.counts, self.k):
            # Some combination with the new row lives on these columns.
            rest = [[x for c, x in enumerate(r) if c not in columns] for r in [*self.rows, row]]
            if rank(rest) == rank(rest[:-1]):
                return False, False
        return True, False

    def accept(self, inside):
        self.rows.append(self.row(inside))


class Elimination:
    """What `Auditor` decides for single records and k ≤ 3, by reduced row echelon form."""

    PRIME = 2**31 - 1

    def __init__(self, records, k):
        assert k in (2, 3)
        self.n, self.k = records, k
        self.rows = np.ones((1, records), np.int64)
        self.pivots = [0]

    def decide(self, inside):
        """Return whether the sum may be answered, and whether it follows from what was."""
        total = len(set(inside))
        if total < self.k or 0 < self.n - total < self.k:
            return False, False
        rows, pivots = self.with_row(inside)
        known = len(pivots) == len(self.pivots)
        return known or not self.isolates(rows, pivots), known

    def accept(self, inside):
        self.rows, self.pivots = self.with_row(inside)

    def with_row(self, inside):
        """Return the reduced form with one more row, and its pivots."""
        p = self.PRIME
        row = np.zeros(self.n, np.int64)
        row[list(inside)] = 1
        for pivot, other in zip(self.pivots, self.rows, strict=True):
            row = (row - row[pivot] * other) % p
        if not row.any():
            return self.rows, self.pivots
        pivot = int(np.flatnonzero(row)[0])
        row = row * pow(int(row[pivot]), -1, p) % p
        rows = (self.rows - np.outer(self.rows[:, pivot], row) % p) % p
        return np.vstack([rows, row]), [*self.pivots, pivot]

    def isolates(self, rows, pivots):
        """Whether a combination is zero but at one record (k = 2), or at two at most (k = 3)."""
        beside = np.delete(rows, pivots, axis=1)
        entries = (beside != 0).sum(axis=1)
        if (entries == 0).any():
            return True
        if self.k == 2:
            return False
        if (entries == 1).any():
            return True
        # Two rows make a word on their two pivots if they are proportional everywhere else.
        lead = beside[np.arange(len(beside)), (beside != 0).argmax(axis=1)]
        scaled = {
            tuple((row * pow(int(first), -1, self.PRIME) % self.PRIME).tolist())
            for row, first in zip(beside, lead, strict=True)
        }
        return len(scaled) < len(beside)
