"""What contributors know of one component, in terms of the columns of its program."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import sparse

from discreet.audit.knowledge import Contributors
from discreet.audit.outsider.extremes import ExtremeModel

__all__ = ["Views"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

#: An alternative table is refuted if it moves a cell that the attacker knows by more than this
#: share of its largest move.
_NOISE = 1e-9
#: Coefficients of unbounded columns below this are rounding errors.
_FREE = 1e-11


class Views:
    """Who knows which cells not to move so far; contributors are told by their place in `who`.

    Parameters
    ----------
    equations
        Equations between the cells of the table.
    cells
        The cells of the component, in order; they are told by their place among them.
    room
        How far each of them can fall and rise at most, whoever looks.
    """

    def __init__(
        self,
        knowledge: Contributors,
        equations: sparse.csc_matrix,
        cells: Ints,
        model: ExtremeModel,
        room: tuple[Floats, Floats],
    ) -> None:
        self._knowledge, self._cells, self._model, self._room = knowledge, cells, model, room
        self._columns = sparse.csc_matrix(equations[:, cells])
        self._rows = self._columns.tocsr()
        place = np.searchsorted(cells, knowledge.cell)
        place[place == len(cells)] = 0
        inside = np.flatnonzero(cells[place] == knowledge.cell)
        inside = inside[np.argsort(place[inside], kind="stable")]
        self._place = place[inside]
        self.who, self._by = np.unique(knowledge.who[inside], return_inverse=True)
        self._first = np.searchsorted(self._place, np.arange(len(cells) + 1))
        self._same = knowledge.same[knowledge.cell[inside]]
        self._sole, self._fall = knowledge.sole[inside], knowledge.fall[inside]
        shared = model.shared
        self._column = shared.column[self._place]
        self._lower, self._upper = shared.turned(
            self._place,
            np.where(self._sole, 0.0, -self._fall / model.unit),
            np.where(self._sole, 0.0, np.inf),
        )
        #: The bounds of each column before any attacker's knowledge.
        self._low, self._high = shared.tightest(-room[0] / model.unit, room[1] / model.unit)
        pairs = self._by.astype(np.int64) * shared.number + self._column
        kept, self._pair = np.unique(pairs, return_inverse=True)
        self._pair_who, self._pair_column = kept // shared.number, kept % shared.number

    def strangers(self, place: int) -> Bools:
        """Return the contributors to whom a cell is not known anyway."""
        insiders = self._knowledge.insiders(int(self._cells[place]))
        return ~np.isin(self.who, sorted(insiders))

    def _about(self, place: int) -> Bools:
        """Return which entries tell something about a cell: not those about the cell itself."""
        return np.asarray(self._same != self._knowledge.same[self._cells[place]])

    def refuting(self, place: int, x: Floats) -> Bools:
        """Return the contributors who know that a deviation of columns by `x` is not true."""
        slack = _NOISE * max(1.0, float(np.abs(x).max(initial=0.0)))
        move = x[self._column]
        wrong = (move < self._lower - slack) | (move > self._upper + slack)
        found = np.zeros(len(self.who), dtype=bool)
        found[self._by[wrong & self._about(place)]] = True
        return found

    def limits(self, place: int, chosen: Bools) -> tuple[Ints, Floats, Floats]:
        """Return columns and their bounds, as those chosen know them together."""
        entries = np.flatnonzero(chosen[self._by] & self._about(place))
        at, which = np.unique(self._column[entries], return_inverse=True)
        low, high = self._model.lower[at].copy(), self._model.upper[at].copy()
        np.maximum.at(low, which, self._lower[entries])
        np.minimum.at(high, which, self._upper[entries])
        return at, low, high

    def together(self) -> tuple[Floats, Floats]:
        """Return the bounds of columns by all that anybody knows."""
        low, high = self._model.lower.copy(), self._model.upper.copy()
        np.maximum.at(low, self._column, self._lower)
        np.minimum.at(high, self._column, self._upper)
        return low, high

    def at_most(self, place: int, side: int) -> tuple[float, Floats]:
        """Return how far a cell goes at most for an outsider and for each, by single equations."""
        total = float(self._room[side > 0][place])
        each = np.full(len(self.who), total)
        about = self._about(place)
        for row in self._columns.indices[
            self._columns.indptr[place] : self._columns.indptr[place + 1]
        ]:
            part = slice(self._rows.indptr[row], self._rows.indptr[row + 1])
            members, weight = self._rows.indices[part], self._rows.data[part]
            own = members == place
            up = weight * float(weight[own][0]) * side < 0
            reach = np.where(up, self._room[1][members], self._room[0][members])
            reach[own] = 0.0
            bound = float(reach.sum())
            if np.isfinite(bound):
                entries, member = self._entries(members)
                limit = np.where(
                    self._sole[entries], 0.0, np.where(up[member], np.inf, self._fall[entries])
                )
                less = np.maximum(reach[member] - limit, 0.0)
                less[~about[entries]] = 0.0
                np.minimum.at(each, self._by[entries], bound - less)
        np.minimum.at(each, self._by, self._own(place, side) * self._model.unit)
        return total, each

    def _entries(self, members: npt.NDArray[np.int32]) -> tuple[Ints, Ints]:
        """Return what is known of some cells, and of which of them."""
        counts = self._first[members + 1] - self._first[members]
        member = np.repeat(np.arange(len(members)), counts)
        begin = self._first[members] - np.concatenate([[0], counts.cumsum()[:-1]])
        return np.arange(counts.sum()) + begin[member], member

    def bounds(self, place: int, side: int, slopes: Floats) -> tuple[float, Floats]:
        """Return how far a cell goes at most for an outsider and for each contributor.

        `slopes` say how much of its move hangs on each column.
        """
        up, steep = slopes > 0, np.abs(slopes)
        reach = np.where(up, self._high, -self._low)
        endless = np.isinf(reach)
        steep[endless & (steep < _FREE)] = 0.0
        endless &= steep > 0
        reach[np.isinf(reach)] = 0.0  # also where nothing hangs on the column: 0 times no end is 0
        column = self._column
        limit = np.where(up[column], self._upper, -self._lower)
        known = (limit < np.where(endless, np.inf, reach)[column]) & self._about(place)
        # What one contributor knows of one column, from however many cells, counts once.
        narrow = np.full(len(self._pair_who), np.inf)
        np.minimum.at(narrow, self._pair[known], limit[known])
        pairs = np.flatnonzero(np.isfinite(narrow))
        at, who = self._pair_column[pairs], self._pair_who[pairs]
        total, number = float(steep @ reach), len(self.who)
        each = total - np.bincount(who, steep[at] * (reach[at] - narrow[pairs]), number)
        each[np.bincount(who, endless[at], number) < endless.sum()] = np.inf
        unit = self._model.unit
        outsider = np.inf if endless.any() else total * unit
        return outsider, np.asarray(each * unit, np.float64)

    def _own(self, place: int, side: int) -> Floats:
        """Return how far a cell goes at most by what is known of cells that move with it."""
        shared = self._model.shared
        up = side * shared.sign[place] > 0
        limit = np.maximum(self._upper if up else -self._lower, 0.0)
        about = self._about(place) & (self._column == shared.column[place])
        return np.where(about, limit, np.inf)
