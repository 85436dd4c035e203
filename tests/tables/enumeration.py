"""All tables of counts that agree with a publication, one after the other, without any solver."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from discreet.tables.suppression import choosing
from discreet.tables.suppression.choosing import Coins
from discreet.tables.table import Table

MOST = 200_000


def counts(leaves, *, name="d"):
    """A table of counts over crossed attributes with every total, from an array of its leaves."""
    leaves = np.asarray(leaves, dtype=float)
    full = leaves
    for axis in range(leaves.ndim):
        full = np.concatenate([full.sum(axis=axis, keepdims=True), full], axis=axis)
    by = [f"{name}{axis}" for axis in range(leaves.ndim)]
    rows = [
        [*("Total" if i == 0 else f"c{i}" for i in at), full[at]]
        for at in itertools.product(*(range(size + 1) for size in leaves.shape))
    ]
    frame = pd.DataFrame(rows, columns=[*by, "n"])
    return Table.from_cells(frame, by=by, value="n", count="n", statistic="count")


def orders(square):
    """The 2 × 2 tables that are one table up to the order of its codes and of its attributes."""
    a, b, c, d = square
    turned = [(a, b, c, d), (b, a, d, c), (c, d, a, b), (d, c, b, a)]
    return turned + [(w, y, x, z) for w, x, y, z in turned]


def squares(most):
    """Every 2 × 2 table of counts up to its orders, with the number of tables it stands for."""
    return Counter(min(orders(s)) for s in itertools.product(range(most + 1), repeat=4))


class Publication:
    """What is known of a table of counts: published cells, equations, and that withheld is not zero."""

    def __init__(self, table, withheld):
        self.value, self.withheld = table.value, np.asarray(withheld)
        rows = table.equations.tocsr()
        self.rows = []
        for row in range(rows.shape[0]):
            part = slice(rows.indptr[row], rows.indptr[row + 1])
            entries = list(zip(rows.indices[part].tolist(), rows.data[part].tolist(), strict=True))
            open_ = [(c, w) for c, w in entries if self.withheld[c]]
            if open_:
                known = sum(w * self.value[c] for c, w in entries if not self.withheld[c])
                self.rows.append((open_, known))
        self.of_cell = {
            int(c): [r for r, (cells, _) in enumerate(self.rows) if any(c == o for o, _ in cells)]
            for c in np.flatnonzero(self.withheld)
        }

    def extremes(self, target, span, fixed=()):
        """The least and the greatest count of a cell over all tables, within a span of the truth.

        `fixed` are cells that the attacker knows.
        """
        found = []
        for side in (-1, 1):
            best = self.value[target]
            for move in range(1, span + 1):
                if self.has(target, side * move, span + 2, fixed):
                    best = self.value[target] + side * move
            found.append(best)
        return found

    def has(self, target, move, span, fixed=()):
        """Whether there is a table in which a cell is moved by so much."""
        low = {c: max(1.0, self.value[c] - span) for c in self.of_cell}
        high = {c: self.value[c] + span for c in self.of_cell}
        for cell in fixed:
            if cell in low:
                low[cell] = high[cell] = self.value[cell]
        if not low[target] <= self.value[target] + move <= high[target]:
            return False
        low[target] = high[target] = self.value[target] + move
        self.steps = 0
        return self._search(low, high, [target])

    def _search(self, low, high, touched):
        self.steps += 1
        assert self.steps < MOST, "too many tables to enumerate"
        if not self._narrow(low, high, touched):
            return False
        left = [c for c in low if low[c] < high[c]]
        if not left:
            return True
        cell = min(left, key=lambda c: (high[c] - low[c], c))
        # The truth first: alternative tables differ from it in few cells.
        choices = np.arange(low[cell], high[cell] + 1)
        for choice in sorted(choices.tolist(), key=lambda v: abs(v - self.value[cell])):
            below, above = dict(low), dict(high)
            below[cell] = above[cell] = choice
            if self._search(below, above, [cell]):
                return True
        return False

    def _narrow(self, low, high, touched):
        """Pass bounds on along equations; whether any table is left."""
        queue = {r for c in touched for r in self.of_cell[c]}
        while queue:
            cells, known = self.rows[queue.pop()]
            least = known + sum(w * (low[c] if w > 0 else high[c]) for c, w in cells)
            most = known + sum(w * (high[c] if w > 0 else low[c]) for c, w in cells)
            if least > 0 or most < 0:
                return False
            for c, w in cells:
                # The others of the equation leave w * x between these two.
                ends = (w * (high[c] if w > 0 else low[c]) - most,)
                ends += (w * (low[c] if w > 0 else high[c]) - least,)
                new_low, new_high = sorted(end / w for end in ends)
                if new_low > low[c] or new_high < high[c]:
                    low[c], high[c] = max(low[c], new_low), min(high[c], new_high)
                    if low[c] > high[c]:
                        return False
                    queue |= set(self.of_cell[c])
        return True


def forced(pattern):
    """Coins that ask for exactly these cells: the key tosses any coins, so also these."""
    return iter([Coins(np.array(pattern), np.array(pattern))])


def hidden_by(method, table, *, key=0, coins=None):
    """The cells that the method withholds under a key, or by given coins; none where nothing is safe."""
    tossed = choosing.tosses if coins is None else lambda *_: coins
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choosing, "tosses", tossed)
        try:
            return method.hide(table, rng=dc.Randomness.seeded(key)).withheld
        except dc.InfeasibleError:
            return None
