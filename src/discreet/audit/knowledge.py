"""What attackers know beforehand: bounds on values, and their own contributions.

An outsider knows that values are not negative (where none is). A contributor knows more: a cell of
which it is the only contributor is no secret to it, and a cell holds at least what it gave. So two
single-contributor cells do not hide each other: each respondent takes its own away.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse import csgraph

from discreet.data.table import Status, Table
from discreet.errors import InputError

__all__ = [
    "ATTACKERS",
    "Bounds",
    "Contributors",
    "a_priori",
    "aliases",
    "least",
    "most",
    "needs",
    "within",
]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

#: Who may attack: somebody with the publication only, or also each contributor.
ATTACKERS = ("contributors", "outsider")
Bounds = tuple[Floats, Floats]


def a_priori(table: Table, value: Floats, bounds: Bounds | None = None) -> tuple[Floats, Floats]:
    """Return how far each cell may fall and rise by what everybody knows.

    Without given bounds values are at least zero, unless the table has negative ones; a count
    that is not zero is at least one, since zeros are not withheld (`least`).
    """
    if bounds is None:
        lower, upper = least(table, value), most(table)
    else:
        lower, upper = within(table, (np.asarray(b, np.float64) for b in bounds))
        if lower.shape != value.shape or upper.shape != value.shape:
            raise InputError(
                f"bounds need one entry per cell, {len(table)}, found {lower.shape} and {upper.shape}",
                code="bounds-shape",
            )
        # Values completed by a program keep their bounds only up to its tolerance.
        slack = 1e-7 * np.maximum(1.0, np.abs(value))
        if table.is_whole:
            # Between bounds that are no whole numbers lie the whole numbers within them.
            lower, upper = np.ceil(lower - 1e-9), np.floor(upper + 1e-9)
        outside = np.flatnonzero((value < lower - slack) | (value > upper + slack))
        if outside.size:
            raise InputError(
                f"{outside.size} cells lie outside their bounds, such as "
                + " × ".join(table.labels(int(outside[0]))),
                code="outside-bounds",
                hint="an attacker's bounds must hold for the true values",
            )
    return np.maximum(value - lower, 0.0), np.maximum(upper - value, 0.0)


def least(table: Table, value: Floats) -> Floats:
    """Return what everybody knows each cell not to fall below.

    In a table of counts empty cells are published as such, unless a rule makes zeros sensitive.
    So whatever is withheld counts somebody, and an alternative with a zero in its place is none.

    >>> import pandas as pd
    >>> cells = pd.DataFrame({"age": ["Total", "0-19", "20-64", "65+"], "n": [9, 5, 4, 0]})
    >>> table = Table.from_cells(cells, by=["age"], value="n", statistic="count")
    >>> least(table, table.value).tolist()
    [2.0, 1.0, 1.0, 0.0]
    """
    if table.least is not None:
        return table.least
    if value.min(initial=0.0) < 0:
        return np.full(len(value), -np.inf)
    if table.statistic != "count" or (value != np.round(value)).any():
        return np.zeros(len(value))
    if table.status is not None and ((table.status == Status.PRIMARY) & (value == 0)).any():
        return np.zeros(len(value))
    return _added_up(table, np.minimum(value, 1.0))


def most(table: Table) -> Floats:
    """Return what everybody knows each cell not to exceed.

    How many people a cell has is known elsewhere; so is how much they give together at most where
    a measure has few values.
    """
    return np.full(len(table), np.inf) if table.most is None else table.most


def within(table: Table, bounds: Iterable[Floats]) -> Bounds:
    """Return bounds that a publication gives, narrowed by what a measure with few values can be."""
    lower, upper = bounds
    if table.least is None or lower.shape != table.least.shape:
        return lower, upper
    return np.maximum(lower, table.least), np.minimum(upper, most(table))


def _added_up(table: Table, low: Floats) -> Floats:
    """Return lower bounds in which no total is below the sum of the bounds of its parts."""
    entries = table.equations.tocoo()
    parts = entries.data < 0
    total = np.zeros(entries.shape[0], dtype=np.int64)
    total[entries.row[~parts]] = entries.col[~parts]
    below = sparse.csr_matrix(
        (-entries.data[parts], (entries.row[parts], entries.col[parts])), shape=entries.shape
    )
    while True:  # once per level of totals
        raised = low.copy()
        np.maximum.at(raised, total, below @ low)
        if np.array_equal(raised, low):
            return low
        low = raised


def needs(table: Table, value: Floats, room: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """Return how far below and above its value each sensitive cell must remain possible.

    Nobody needs protection beyond what everybody knows, so a level reaches no further than the
    room to move. A sensitive cell without levels must at least not be told exactly: it gets a
    thousandth of its value, or of the middle value where it is zero. Counts are whole numbers, and
    so are their levels; another one than the true count must always remain possible.
    """
    size = len(value)
    lower = np.zeros(size) if table.lower is None else np.abs(table.lower)
    upper = np.zeros(size) if table.upper is None else np.abs(table.upper)
    none = (lower <= 0) & (upper <= 0)
    magnitude = np.abs(value)
    middle = float(np.median(magnitude[magnitude > 0])) if magnitude.any() else 1.0
    slight = 1e-3 * np.where(magnitude > 0, magnitude, middle)
    lower, upper = np.where(none, slight, lower), np.where(none, slight, upper)
    if not table.is_whole:
        return np.minimum(lower, room[0]), np.minimum(upper, room[1])
    lower, upper = np.ceil(lower - 1e-9), np.ceil(upper - 1e-9)
    lower, upper = np.minimum(lower, room[0]), np.minimum(upper, room[1])
    stuck = (lower < 1) & (upper < 1)
    upper = np.where(stuck, np.minimum(1.0, room[1]), upper)
    return np.where(stuck & (upper < 1), np.minimum(1.0, room[0]), lower), upper


def aliases(equations: sparse.csr_matrix, live: Bools) -> Ints:
    """Return for each cell the first of the cells that always equal it.

    An equation with two cells that are not known zeros, one the total of the other, says that they
    are equal. `live` are the cells that are not known zeros, published or not.
    """
    block = equations[:, np.flatnonzero(live)].tocsr()
    sums = np.asarray(block.sum(axis=1)).ravel()
    pairs = np.flatnonzero((np.diff(block.indptr) == 2) & (sums == 0))
    first = block.indices[block.indptr[pairs]]
    second = block.indices[block.indptr[pairs] + 1]
    size = int(live.sum())
    graph = sparse.csr_matrix((np.ones(len(pairs)), (first, second)), shape=(size, size))
    _, label = csgraph.connected_components(graph, directed=False)
    places = np.flatnonzero(live)
    lead = np.full(label.max(initial=-1) + 1, -1, dtype=np.int64)
    lead[label[::-1]] = places[::-1]
    result = np.arange(len(live), dtype=np.int64)
    result[places] = lead[label]
    return result


@dataclasses.dataclass(frozen=True, eq=False)
class Contributors:
    """What each contributor knows of the table: cells it can take away, and floors of others.

    Entry e says that attacker `who[e]` knows that cell `cell[e]` cannot fall by more than
    `fall[e]`, nor move at all where `sole[e]`.
    """

    who: Ints
    cell: Ints
    fall: Floats
    sole: Bools
    #: For each cell the attacker that is its only contributor, −1 where there is none.
    owner: Ints
    same: Ints
    #: Attackers who put together what they know, and the number under which they do.
    pool: frozenset[int] = frozenset()
    pool_number: int = -2

    def pooled(self, members: Iterable[int]) -> Contributors:
        """Return the same knowledge with one more attacker: some contributors acting together."""
        pool = frozenset(int(member) for member in members)
        unknown = sorted(pool - set(self.who.tolist()))
        if unknown:
            raise InputError(
                f"the coalition has {len(unknown)} members that contribute to no cell, "
                f"such as {unknown[0]}",
                code="unknown-contributor",
                hint="name units as in table.contributors, or single-contributor cells by place",
            )
        number = int(self.who.max(initial=0)) + 1
        entries = np.flatnonzero(np.isin(self.who, sorted(pool)))
        return dataclasses.replace(
            self,
            who=np.concatenate([self.who, np.full(len(entries), number)]),
            cell=np.concatenate([self.cell, self.cell[entries]]),
            fall=np.concatenate([self.fall, self.fall[entries]]),
            sole=np.concatenate([self.sole, self.sole[entries]]),
            pool=pool,
            pool_number=number,
        )

    def insiders(self, target: int) -> frozenset[int]:
        """Return the attackers to whom a cell is no secret anyway."""
        owner = int(self.owner[target])
        return frozenset({owner, self.pool_number}) if owner in self.pool else frozenset({owner})

    @classmethod
    def of(cls, table: Table, value: Floats, live: Bools) -> Contributors:
        """Read from counts, contributions and (where given) contributors who knows what."""
        if table.count is None:
            raise InputError(
                "contributors as attackers need the number of contributors of each cell",
                code="count-missing",
                hint='give the column with count=…, or write attacker="outsider"',
            )
        same = aliases(table.equations, live)
        single = live & (table.count == 1)
        number = len(table)
        if table.contributors is not None:
            first = np.where(table.contributors[:, 0] >= 0, table.contributors[:, 0], -1)
            # Cells whose unit is not told are an attacker of their own.
            unit = np.where(first >= 0, first, number + int(first.max(initial=0)) + 1 + same)
        else:
            unit = same
        owner = np.where(single, unit, -1)
        cells = np.flatnonzero(single)
        who, cell = [owner[cells]], [cells]
        fall, sole = [np.zeros(len(cells))], [np.ones(len(cells), dtype=bool)]
        if table.contributions is not None and value.min(initial=0.0) >= 0:
            ranks = 1 if table.contributors is None else table.contributions.shape[1]
            for rank in range(ranks):
                part = table.contributions[:, rank]
                cells = np.flatnonzero(live & (table.count > 1) & (part > 0) & (part <= value))
                if table.contributors is None:
                    # Attackers of their own, numbered after all the owners.
                    ids = 4 * number + same[cells]
                else:
                    cells = cells[table.contributors[cells, rank] >= 0]
                    ids = table.contributors[cells, rank]
                who.append(ids)
                cell.append(cells)
                fall.append(value[cells] - part[cells])
                sole.append(np.zeros(len(cells), dtype=bool))
        return cls(
            np.concatenate(who),
            np.concatenate(cell),
            np.concatenate(fall),
            np.concatenate(sole),
            owner,
            same,
        )

    @functools.cached_property
    def _by_cell(self) -> tuple[Ints, Ints]:
        order = np.argsort(self.cell, kind="stable")
        starts = np.searchsorted(self.cell[order], np.arange(len(self.owner) + 1))
        return order, starts

    @functools.cached_property
    def _by_who(self) -> dict[int, Ints]:
        order = np.argsort(self.who, kind="stable")
        ids, starts = np.unique(self.who[order], return_index=True)
        return dict(zip(ids.tolist(), np.split(order, starts[1:]), strict=True))

    def refuting(self, target: int, cells: Ints, moves: Floats) -> frozenset[int]:
        """Return the attackers who know that a deviation is not true, its target's own owner aside."""
        order, starts = self._by_cell
        other = self.same[cells] != self.same[target]
        cells, moves = cells[other], moves[other]
        counts = starts[cells + 1] - starts[cells]
        if not counts.sum():
            return frozenset()
        offsets = np.repeat(starts[cells] - np.concatenate([[0], counts.cumsum()[:-1]]), counts)
        entries = order[np.arange(counts.sum()) + offsets]
        move = np.repeat(moves, counts)
        slack = 1e-9 * np.maximum(1.0, np.abs(move))
        wrong = self.sole[entries] | (move < -self.fall[entries] - slack)
        return frozenset(self.who[entries[wrong]].tolist()) - self.insiders(target)

    def view(self, who: int, target: int) -> tuple[Ints, tuple[Ints, Floats]]:
        """Return the cells an attacker holds fixed and the falls it allows, the target aside."""
        entries = self._by_who[who]
        entries = entries[self.same[self.cell[entries]] != self.same[target]]
        sole = self.sole[entries]
        bounded = entries[~sole]
        return self.cell[entries[sole]], (self.cell[bounded], self.fall[bounded])
