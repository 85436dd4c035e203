"""A judge of suppression patterns that shares no code with the auditor.

It is written from the manual: what outsiders and single contributors know, which alternative tables
they cannot exclude, and how much of that they could exclude before. One linear program per connected
set of withheld cells is asked for each sensitive cell, direction and attacker; counts are decided by
integer programs where the solution is not whole.
"""

from __future__ import annotations

from collections import defaultdict

import highspy
import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

SLACK = 2e-6


class Attackers:
    """Who knows what: cells that are the attacker's own, and floors of others."""

    def __init__(self, table, live):
        value, count = table.value, table.count
        self.same = _equal_cells(table, live)
        self.owner, self.own = {}, defaultdict(set)
        self.floor = defaultdict(dict)
        units = table.contributors
        for cell in np.flatnonzero(live & (count == 1)).tolist():
            who = ("cell", int(self.same[cell]))
            if units is not None and units[cell, 0] >= 0:
                who = ("unit", int(units[cell, 0]))
            self.owner[cell] = who
            self.own[who].add(cell)
        if table.contributions is None or value.min(initial=0) < 0:
            return
        for cell in np.flatnonzero(live & (count > 1)).tolist():
            ranks = 1 if units is None else table.contributions.shape[1]
            for rank in range(ranks):
                part = float(table.contributions[cell, rank])
                if not 0 < part <= value[cell]:
                    continue
                if units is None:
                    self.floor[("leader", int(self.same[cell]))][cell] = part
                elif units[cell, rank] >= 0:
                    self.floor[("unit", int(units[cell, rank]))][cell] = part

    def everybody(self):
        return set(self.own) | set(self.floor)

    def knowledge(self, who, target, value):
        """Cells that do not move, and how far others fall at most; about the target itself nothing."""
        same = self.same[target]
        held = [c for c in self.own.get(who, ()) if self.same[c] != same]
        falls = {
            c: value[c] - p for c, p in self.floor.get(who, {}).items() if self.same[c] != same
        }
        return held, falls


def _equal_cells(table, live):
    """Cells that an equation with two cells that are not empty makes equal."""
    block = table.equations[:, np.flatnonzero(live)].tocsr()
    pairs = [row for row in range(block.shape[0]) if block.indptr[row + 1] - block.indptr[row] == 2]
    pairs = [r for r in pairs if block.data[block.indptr[r] : block.indptr[r + 1]].sum() == 0]
    ends = np.array([block.indices[block.indptr[r] : block.indptr[r + 1]] for r in pairs])
    size = int(live.sum())
    ends = ends.reshape(-1, 2)
    graph = sparse.csr_matrix((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(size, size))
    label = csgraph.connected_components(graph, directed=False)[1]
    same = np.full(len(table), -1, dtype=np.int64)
    same[live] = label
    return same


class Model:
    """How cells of one set can move while all others stay."""

    def __init__(self, equations, cells, down, up, whole):
        self.cells, self.whole = cells, whole
        self.place = {int(c): i for i, c in enumerate(cells)}
        self.down, self.up = down[cells], up[cells]
        self.unit = 1.0
        block = equations[:, cells].tocsr()
        block = block[np.diff(block.indptr) > 0].tocsc()
        self.block = block
        self.highs = self._highs(integer=False)

    def _highs(self, *, integer):
        highs = highspy.Highs()
        highs.setOptionValue("output_flag", False)
        highs.setOptionValue("threads", 1)
        size, rows, block = len(self.cells), self.block.shape[0], self.block
        highs.passModel(
            size, rows, block.nnz, 1, 1, 0.0,
            np.zeros(size), -self.down, self.up, np.zeros(rows), np.zeros(rows),
            block.indptr.astype(np.int32), block.indices.astype(np.int32),
            block.data.astype(np.float64), np.full(size, int(integer), dtype=np.int32),
        )  # fmt: skip
        return highs

    def reaches(self, target, move, held=(), falls=None):
        """Whether the target can move so far; the moves, or none."""
        changed = {}
        for cell in held:
            if cell in self.place:
                changed[self.place[cell]] = (0.0, 0.0)
        for cell, fall in (falls or {}).items():
            if cell in self.place and self.place[cell] not in changed:
                at = self.place[cell]
                changed[at] = (-min(self.down[at], fall), self.up[at])
        at = self.place[target]
        low, high = changed.get(at, (-self.down[at], self.up[at]))
        changed[at] = (max(low, move), high) if move > 0 else (low, min(high, move))
        if changed[at][0] > changed[at][1] + 1e-12:
            return None
        found = self._solved(self.highs, changed)
        for place in changed:
            self.highs.changeColBounds(place, -self.down[place], self.up[place])
        if found is None or not self.whole or np.abs(found - np.round(found)).max() < 1e-6:
            return found
        return self._solved(self._highs(integer=True), changed)

    def _solved(self, highs, changed):
        for place, (low, high) in changed.items():
            highs.changeColBounds(place, low, high)
        highs.run()
        if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        return np.array(highs.getSolution().col_value)

    def farthest(self, target, side, held, falls):
        """How far the target goes at most."""
        at = self.place[target]
        changed = {self.place[c]: (0.0, 0.0) for c in held if c in self.place}
        for cell, fall in falls.items():
            if cell in self.place and self.place[cell] not in changed:
                place = self.place[cell]
                changed[place] = (-min(self.down[place], fall), self.up[place])
        self.highs.changeColCost(at, -float(side))
        found = self._solved(self.highs, changed)
        self.highs.changeColCost(at, 0.0)
        for place in changed:
            self.highs.changeColBounds(place, -self.down[place], self.up[place])
        if found is None:  # nothing bounds it
            return np.inf
        return abs(float(found[at]))


def unsafe_cells(table, withheld, attacker="contributors", only=None):
    """Return the sensitive cells that an outsider or a contributor brings within their levels.

    Of tables that are too large for all of them: of these cells `only`.
    """
    value, whole = table.value, table.is_whole
    least = np.zeros(len(value)) if value.min(initial=0) >= 0 else np.full(len(value), -np.inf)
    if whole and table.statistic == "count" and not ((table.status == 2) & (value == 0)).any():
        least = np.minimum(value, 1.0)
    down, up = value - least, np.full(len(value), np.inf)
    if not np.isfinite(down).all():
        down = np.full(len(value), np.inf)
    sensitive = np.flatnonzero(table.status == 2)
    lower, upper = table.lower.copy(), table.upper.copy()
    none = (lower <= 0) & (upper <= 0)
    slight = 1e-3 * np.where(value != 0, np.abs(value), np.median(np.abs(value[value != 0])))
    lower, upper = np.where(none, slight, lower), np.where(none, slight, upper)
    if whole:
        lower, upper = np.ceil(lower - 1e-9), np.ceil(upper - 1e-9)
    lower = np.minimum(lower, down)
    live = withheld | (value != 0) | (table.count > 0)
    people = Attackers(table, live) if attacker == "contributors" else None
    before = Model(table.equations, np.flatnonzero(live), down, up, whole=False)
    hidden = np.flatnonzero(withheld)
    wrong = []
    judged = set(sensitive.tolist()) & set(sensitive.tolist() if only is None else only)
    for cells in _sets(table.equations, hidden):
        inside = [c for c in cells.tolist() if c in judged]
        if not inside:
            continue
        model = Model(table.equations, cells, down, up, whole)
        for target in inside:
            for side, need in ((1, upper[target]), (-1, lower[target])):
                if need > 0 and not _protected(model, before, people, value, target, side * need):
                    wrong.append(target)
                    break
    lost = set(sensitive.tolist()) - set(hidden.tolist())
    return sorted({*wrong, *lost})


def _protected(model, before, people, value, target, amount):
    amount *= 1 - SLACK if not model.whole else 1
    moves = model.reaches(target, amount)
    if moves is None:
        return False
    if people is None:
        return True
    shown = dict(zip(model.cells.tolist(), moves.tolist(), strict=True))
    own = people.owner.get(target)
    for who in people.everybody() - {own}:
        held, falls = people.knowledge(who, target, value)
        if _believes(shown, held, falls):
            continue
        if model.reaches(target, amount, held, falls) is not None:
            continue
        # It may have known as much before anything was published.
        reach = before.farthest(target, 1 if amount > 0 else -1, held, falls)
        if model.whole:
            reach = np.floor(reach + 1e-6)
        if reach >= abs(amount) * (1 - SLACK):
            return False
        less = np.sign(amount) * reach * (1 if model.whole else 1 - 2 * SLACK)
        if abs(less) > SLACK * abs(amount) and model.reaches(target, less, held, falls) is None:
            return False
    return True


def _believes(shown, held, falls):
    return all(abs(shown.get(c, 0.0)) < 1e-9 for c in held) and all(
        shown.get(c, 0.0) >= -fall - 1e-9 * max(1.0, fall) for c, fall in falls.items()
    )


def _sets(equations, hidden):
    """Connected sets of withheld cells."""
    block = abs(equations[:, hidden]).tocsr()
    graph = block.T @ block
    label = csgraph.connected_components(graph, directed=False)[1]
    return [hidden[label == number] for number in range(label.max(initial=-1) + 1)]
