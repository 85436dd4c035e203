"""Whether a pattern could have been published of its alternative tables, too.

Equations keep several counts possible for each sensitive cell. Somebody who has this program asks
more: of which of the alternative tables would it have withheld these very cells? An alternative
with a sensitive cell among the published ones is excluded, and so is one that the pattern does not
protect. Where few alternatives exist they are listed here, and those that are excluded are struck
out, until the tables that remain keep for each sensitive cell every count below the minimum and one
that is not. The list depends on the publication alone: the program gives the same answer for each
table on it.
"""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import numpy.typing as npt

from discreet.data.table import Status, Table

__all__ = ["Small", "alternatives"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

#: Cells that are not empty up to which a table counts as small.
CELLS = 60
#: Tables that are listed at most; a publication that leaves more tells little by its pattern.
MOST = 30_000


@dataclasses.dataclass(frozen=True, eq=False)
class Small:
    """A small table of counts in which exactly the counts below a minimum are sensitive."""

    table: Table
    minimum: int
    contributors: bool
    #: The leaves below each cell in which there is anybody.
    people: list[frozenset[int]]

    @classmethod
    def of(cls, table: Table, attacker: str) -> Small | None:
        """Return the table as one of these; none where it is another."""
        if not table.is_whole or table.status is None or table.upper is None:
            return None
        if table.most is not None:
            return (
                None  # numbers of people with one of two values, of which zeros are withheld, too
            )
        if int((table.value > 0).sum()) > CELLS or (table.value < 0).any():
            return None
        sensitive = np.asarray(table.status == Status.PRIMARY)
        ends = np.unique(table.value[sensitive] + table.upper[sensitive])
        if len(ends) != 1 or ((table.value > 0) & (table.value < ends[0]) != sensitive).any():
            return None  # another rule marks cells, whose verdict on alternatives is not known here
        people = _people(table)
        if people is None:
            return None
        return cls(table, int(ends[0]), attacker == "contributors", people)

    def denies(self, withheld: Bools, bounds: tuple[Floats, Floats] | None = None) -> bool | None:
        """Return whether the pattern excludes no promised count; none where that is not listed.

        `bounds` are printed in place of what is withheld.
        """
        hidden = np.flatnonzero(withheld)
        listed = alternatives(self.table, hidden)
        if listed is None:
            return None
        if bounds is not None:
            lower, upper = (end[hidden] for end in bounds)
            listed = listed[((lower <= listed) & (listed <= upper)).all(axis=1)]
        left = self._remaining(hidden, listed)
        return bool((left & (listed == self.table.value[hidden]).all(axis=1)).any())

    def _remaining(self, hidden: Ints, listed: Ints) -> Bools:
        """Return which alternatives are left once all that can be excluded are struck out."""
        small = listed < self.minimum
        # Of a table without sensitive cells nothing is withheld.
        left: Bools = np.asarray(small.any(axis=1))
        while left.any():
            excluded = np.zeros(len(listed), dtype=bool)
            for knows in (None, *range(len(hidden))) if self.contributors else (None,):
                agree = left if knows is None else left & (listed[:, knows] == 1)
                if agree.any():
                    excluded |= agree & self._narrowed(hidden, listed[agree], knows, small)
            if not excluded.any():
                break
            left &= ~excluded
        return left

    def _narrowed(self, hidden: Ints, agree: Ints, knows: int | None, small: Bools) -> Bools:
        """Return the tables that have a sensitive cell of which too few counts are left."""
        own = None if knows is None else self.people[hidden[knows]]
        narrow = []
        for place, cell in enumerate(hidden.tolist()):
            counts, least = agree[:, place], len(self.people[cell])
            kept = np.isin(np.arange(least, self.minimum), counts).all()
            if self.people[cell] != own and not (kept and counts.max() >= self.minimum):
                narrow.append(place)
        return np.asarray(small[:, narrow].any(axis=1))


def _people(table: Table) -> list[frozenset[int]] | None:
    """Return the leaves below each cell that are not empty; none where totals have several kinds."""
    rows = table.equations.tocsr()
    parts: dict[int, list[list[int]]] = {}
    for row in range(rows.shape[0]):
        entries = slice(rows.indptr[row], rows.indptr[row + 1])
        cells, signs = rows.indices[entries], rows.data[entries]
        parts.setdefault(int(cells[signs > 0][0]), []).append(cells[signs < 0].tolist())
    found: dict[int, frozenset[int]] = {}

    def leaves(cell: int) -> frozenset[int]:
        if cell not in found:
            splits = [frozenset().union(*map(leaves, split)) for split in parts.get(cell, ())]
            own = frozenset({cell} if table.value[cell] > 0 else ())
            found[cell] = max(splits, key=len) if splits else own
        return found[cell]

    people = [leaves(cell) for cell in range(len(table))]
    for total, splits in parts.items():
        if any(frozenset().union(*(people[c] for c in one)) != people[total] for one in splits):
            return None  # linked tables: the leaves of one are not those of the other
    return people


def alternatives(table: Table, hidden: Ints, most: int = MOST) -> Ints | None:
    """Return all whole numbers of at least one for the hidden cells that agree with the others.

    One row per table; none where there are more than `most` to look through.

    >>> import pandas as pd
    >>> cells = pd.DataFrame({"act": ["Total", "A", "B", "C"], "n": [9, 1, 3, 5]})
    >>> table = Table.from_cells(cells, by=["act"], value="n", statistic="count")
    >>> sorted(alternatives(table, np.array([1, 2])).tolist())
    [[1, 3], [2, 2], [3, 1]]
    """
    block = table.equations[:, hidden].toarray()
    used = np.abs(block).sum(axis=1) > 0
    shown = np.ones(len(table), dtype=bool)
    shown[hidden] = False
    known = -(table.equations[:, np.flatnonzero(shown)] @ table.value[shown])[used]
    block = block[used]
    low, high = _ranges(block, known)
    if not np.isfinite(high).all():
        return None
    # Solve for the cells with the widest ranges, so that few combinations of the others are tried.
    order = np.argsort(low - high, kind="stable")
    pivots, reduced, right = _reduced(block, known, order)
    free = np.setdiff1d(np.arange(len(hidden)), pivots)
    sizes = (high - low + 1)[free]
    if (sizes < 1).any() or float(np.prod(sizes)) > most:
        return None
    axes = [np.arange(low[cell], high[cell] + 1) for cell in free]
    grid = np.array(list(itertools.product(*axes))).reshape(int(np.prod(sizes)), len(free))
    found = np.zeros((len(grid), len(hidden)))
    found[:, free] = grid
    found[:, pivots] = right - grid @ reduced[:, free].T
    near = np.round(found)
    fits = (np.abs(found - near) < 1e-6).all(axis=1) & (near >= 1).all(axis=1)
    return np.asarray(near[fits], dtype=np.int64)


def _ranges(block: Floats, known: Floats) -> tuple[Floats, Floats]:
    """Return between what each cell lies by bounds passed along the equations."""
    low, high = np.ones(block.shape[1]), np.full(block.shape[1], np.inf)
    for _ in range(4 * block.shape[1] + 4):
        before = low.copy(), high.copy()
        for row, total in zip(block, known, strict=True):
            cells = np.flatnonzero(row)
            for cell in cells:
                others, sign = cells[cells != cell], row[cell]
                least = np.where(row[others] > 0, low[others], high[others]) * row[others]
                greatest = np.where(row[others] > 0, high[others], low[others]) * row[others]
                ends = sorted(((total - greatest.sum()) / sign, (total - least.sum()) / sign))
                low[cell], high[cell] = max(low[cell], ends[0]), min(high[cell], ends[1])
        if np.array_equal(before[0], low) and np.array_equal(before[1], high):
            break
    return np.ceil(low - 1e-9), np.floor(high + 1e-9)


def _reduced(block: Floats, known: Floats, order: Ints) -> tuple[Ints, Floats, Floats]:
    """Return the pivots of Gauss-Jordan elimination, the reduced rows and their right sides."""
    matrix = np.column_stack([block, known])
    pivots: list[int] = []
    for column in order.tolist():
        if len(pivots) == len(matrix):
            break
        row = len(pivots) + int(np.argmax(np.abs(matrix[len(pivots) :, column])))
        if abs(matrix[row, column]) < 1e-9:
            continue
        top = len(pivots)
        matrix[[top, row]] = matrix[[row, top]]
        matrix[top] /= matrix[top, column]
        others = np.arange(len(matrix)) != top
        matrix[others] -= np.outer(matrix[others, column], matrix[top])
        pivots.append(column)
    matrix = matrix[: len(pivots)]
    return np.array(pivots, dtype=np.int64), matrix[:, :-1], matrix[:, -1]
