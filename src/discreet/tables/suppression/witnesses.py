"""Which tables a pattern could have been published of, without listing them.

A table is excluded where it has a sensitive cell of which too few counts are left; with it all
tables are in which that cell is small, since counts are left by the publication and not by the
truth. So what remains is always described by few conditions: certain cells are not small, and of
certain pairs the one is not alone or the other is not small. For each count that must remain a table
that meets them, a witness, is found by a linear or integer program; a count without one adds a
condition, until every count has its witness. All of it depends on the publication alone.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse

from discreet.audit.outsider.deviations import components
from discreet.audit.solver import LinearProgram, solve_integer
from discreet.data.table import Table

__all__ = ["Conditions", "remaining"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

#: Nodes of one integer program; a count for which they do not suffice counts as excluded.
_NODES = 500


class Conditions:
    """What the tables that remain have in common, beside the publication."""

    def __init__(self, hidden: Ints, minimum: int) -> None:
        self.hidden, self.minimum = hidden, minimum
        #: Cells that are not small.
        self.large = np.zeros(len(hidden), dtype=bool)
        #: At (k, c): where k counts one, c is not small.
        self.pairs = np.zeros((len(hidden),) * 2, dtype=bool)
        #: Cells for which the equations alone leave too few counts: causes of all other conditions.
        self.causes = np.zeros(len(hidden), dtype=bool)

    def met_by(self, value: Floats) -> bool:
        """Return whether a table, given by all of its values, meets the conditions."""
        row = value[self.hidden]
        small = row < self.minimum
        return not ((small & self.large) | ((row == 1) & (self.pairs @ small))).any()


def remaining(
    table: Table,
    withheld: Bools,
    minimum: int,
    people: list[frozenset[int]],
    *,
    contributors: bool,
    bounds: tuple[Floats, Floats] | None = None,
) -> Conditions:
    """Return the conditions that tables meet of which the same cells could be withheld.

    Parameters
    ----------
    table
        Counts, of which exactly those below `minimum` are sensitive.
    withheld
        The pattern, which may be of this table or of another that agrees with the publication.
    people
        The leaves below each cell in which there is anybody.
    contributors
        Whether the one person in a cell is an attacker, too.
    bounds
        Ends printed in place of what is withheld.
    """
    hidden = np.flatnonzero(withheld)
    found = Conditions(hidden, minimum)
    groups, determined = components(table.equations, hidden)
    found.large[np.searchsorted(hidden, determined)] = True
    unknown = withheld.copy()
    unknown[determined] = False
    parts = [_Part(table, unknown, cells, found, people, contributors, bounds) for cells in groups]
    for part in parts:
        part.settle(alone=False)
    can = [part for part in parts if part.can_be_small]
    if len(can) == 1:  # of a table without sensitive cells nothing is withheld
        can[0].settle(alone=True)
    return found


class _Part:
    """Withheld cells that equations tie together, and the witnesses among them."""

    def __init__(
        self,
        table: Table,
        unknown: Bools,
        cells: Ints,
        found: Conditions,
        people: list[frozenset[int]],
        contributors: bool,
        bounds: tuple[Floats, Floats] | None,
    ) -> None:
        self._found, self._minimum = found, found.minimum
        self._at = np.searchsorted(found.hidden, cells)
        rows = table.equations.tocsr()
        used = np.asarray(abs(rows[:, cells]).sum(axis=1)).ravel() > 0
        shown = np.where(unknown, 0.0, table.value)
        self._matrix = sparse.csc_matrix(rows[used][:, cells])
        self._known = -(rows[used] @ shown)
        self._least = np.array([len(people[cell]) for cell in cells], dtype=np.float64)
        self._low, self._high = self._least.copy(), np.full(len(cells), np.inf)
        if bounds is not None:
            self._low, self._high = np.maximum(self._low, bounds[0][cells]), bounds[1][cells]
        #: The one person in a cell as attacker, and whether it is the same as those of another cell.
        names = {group: number for number, group in enumerate({people[c] for c in cells})}
        who = np.array([names[people[c]] for c in cells])
        self._strange = who[:, None] != who
        self._knowing = np.flatnonzero(self._least == 1) if contributors else np.zeros(0, int)
        self._draw = np.random.default_rng(0)
        self._program = LinearProgram(
            self._matrix,
            rows=(self._known, self._known),
            columns=(self._low, self._high),
            cost=np.zeros(len(cells)),
        )
        self._rows: list[Floats] = []
        self._seen = self._none_seen()

    @property
    def can_be_small(self) -> bool:
        """Whether a table remains in which one of these cells is small."""
        return bool((self._seen[-1] & self._wanted()).any())

    def _large(self) -> Bools:
        return self._found.large[self._at]

    def _pairs(self) -> Bools:
        return self._found.pairs[np.ix_(self._at, self._at)]

    def _none_seen(self) -> Bools:
        """Which counts have a witness: by who attacks (the last: an outsider), cell and count."""
        return np.zeros((len(self._at) + 1, len(self._at), self._minimum + 1), dtype=bool)

    def _wanted(self) -> Bools:
        """Return which counts a cell must keep; the minimum stands for all that are larger."""
        counts = np.arange(self._minimum + 1)
        return np.asarray((counts >= self._least[:, None]) & ~self._large()[:, None])

    def _keep(self, row: Floats) -> None:
        self._rows.append(row)
        knows = np.append(row == 1, True)
        counts = np.minimum(row, self._minimum).astype(np.int64)
        self._seen[np.ix_(knows, np.arange(len(row)))] |= np.eye(self._minimum + 1, dtype=bool)[
            counts
        ]

    def settle(self, *, alone: bool) -> None:
        """Add conditions until every count that must remain has a witness.

        `alone` says that no other cells of the table can be small.
        """
        first = not alone
        self._again(alone)
        while self._add(alone, first=first):
            first = False
            self._again(alone)

    def _again(self, alone: bool) -> None:
        """Forget the witnesses that meet the conditions no longer."""
        rows, self._rows, self._seen = self._rows, [], self._none_seen()
        for row in rows:
            if self._fits(row, alone):
                self._keep(row)

    def _fits(self, row: Floats, alone: bool) -> bool:
        small = row < self._minimum
        if (small & self._large()).any() or (alone and not small.any()):
            return False
        return not ((row == 1) & (self._pairs() @ small)).any()

    def _add(self, alone: bool, *, first: bool) -> bool:
        """Look for the witnesses that are missing; return whether a condition had to be added."""
        large, added = self._large(), False
        for knower in (None, *self._knowing.tolist()):
            if knower is not None and large[knower]:
                continue
            place = -1 if knower is None else knower
            missing = self._wanted() & ~self._seen[place]
            if knower is not None:
                missing &= self._strange[knower][:, None] & ~self._pairs()[knower][:, None]
            for cell in np.flatnonzero(missing.any(axis=1)).tolist():
                if all(
                    self._seen[place, cell, count] or self._search(knower, cell, count, alone)
                    for count in np.flatnonzero(missing[cell]).tolist()
                ):
                    continue
                added = True
                if first:
                    self._found.causes[self._at[cell]] = True
                if knower is None:
                    self._found.large[self._at[cell]] = True
                else:
                    self._found.pairs[self._at[knower], self._at[cell]] = True
            if added and knower is None:
                break  # most pairs follow from cells
        return added

    def _search(self, knower: int | None, cell: int, count: int, alone: bool) -> bool:
        """Look for a table with a count in a cell that an attacker's own cell agrees with."""
        low, high = self._low.copy(), self._high.copy()
        low[self._large()] = np.maximum(low[self._large()], self._minimum)
        low[cell] = max(low[cell], count)
        if count < self._minimum:
            high[cell] = min(high[cell], count)
        if knower is not None:
            high[knower] = min(high[knower], 1)
            low = np.where(self._pairs()[knower], np.maximum(low, self._minimum), low)
        if (low > high).any():
            return False
        row = self._solve(low, high)
        if row is None or self._fits(row, alone):
            self._keep(row) if row is not None else None
            return row is not None
        return self._smaller(low, high) if alone and not (row < self._minimum).any() else False

    def _smaller(self, low: Floats, high: Floats) -> bool:
        """Look for a table in which some cell is small."""
        for other in np.flatnonzero(low < self._minimum).tolist():
            ends = high.copy()
            ends[other] = min(ends[other], self._minimum - 1)
            row = self._solve(low, ends)
            if row is not None:
                self._keep(row)
                return True
        return False

    def _solve(self, low: Floats, high: Floats) -> Floats | None:
        """Return a table of whole numbers between two ends that meets the pairs, drawn at random."""
        every = np.arange(len(low))
        cost = self._draw.uniform(-1, 1, len(low))
        cost = np.where(np.isfinite(high), cost, np.abs(cost))
        self._program.set_bounds(every, low, high)
        self._program.set_cost(every, cost)
        found = self._program.solve()
        if found.status != "optimal":
            return None
        row = np.round(found.x)
        pairs = self._pairs()
        if (np.abs(found.x - row) < 1e-6).all() and not (
            (row == 1) & (pairs @ (row < self._minimum))
        ).any():
            return row
        return self._whole(low, high, cost, np.argwhere(pairs))

    def _whole(self, low: Floats, high: Floats, cost: Floats, pairs: Ints) -> Floats | None:
        """Solve in whole numbers, with one variable per pair that says which of the two holds."""
        size, many, room = len(low), len(pairs), self._minimum - self._low
        each, ones = np.arange(many), np.ones(many)
        # The first of a pair is at least two, or the second at least the minimum.
        apart = sparse.csc_matrix(
            (np.r_[ones, -ones], (np.r_[each, each], np.r_[pairs[:, 0], size + each])),
            shape=(many, size + many),
        )
        above = sparse.csc_matrix(
            (np.r_[ones, room[pairs[:, 1]]], (np.r_[each, each], np.r_[pairs[:, 1], size + each])),
            shape=(many, size + many),
        )
        empty = sparse.csc_matrix((self._matrix.shape[0], many))
        matrix = sparse.vstack([sparse.hstack([self._matrix, empty]), apart, above]).tocsc()
        open_ends = np.full(2 * many, np.inf)
        found = solve_integer(
            matrix,
            rows=(
                np.r_[self._known, ones, self._minimum * ones],
                np.r_[self._known, open_ends],
            ),
            columns=(np.r_[low, 0 * ones], np.r_[high, ones]),
            cost=np.r_[cost, 0 * ones],
            integer=np.ones(size + many, dtype=bool),
            nodes=_NODES,
            gap=1.0,
        )
        return np.round(found.x[:size]) if len(found.x) else None
