"""Whether a pattern could have been published of its alternative tables, too.

Equations keep several counts possible for each sensitive cell. Somebody who has this program asks
more: of which of the alternative tables would it have withheld these very cells? An alternative
with a sensitive cell among the published ones is excluded, and so is one that the pattern does not
protect. Those are struck out (`witnesses`), until the tables that remain keep for each sensitive
cell every count below the minimum and one that is not. What remains depends on the publication
alone: the program gives the same answer for each of these tables.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from discreet.data.table import Status, Table
from discreet.tables.suppression.witnesses import Conditions, remaining

__all__ = ["CELLS", "Frequencies"]

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

#: Withheld cells up to which contributors are judged, too, and up to which anything is: programs
#: are asked for each pair of cells, and for each cell.
CONTRIBUTORS, CELLS = 400, 3_000


@dataclasses.dataclass(frozen=True, eq=False)
class Frequencies:
    """A table of counts in which exactly the counts below a minimum are sensitive."""

    table: Table
    minimum: int
    contributors: bool
    #: The leaves below each cell in which there is anybody.
    people: list[frozenset[int]]

    @classmethod
    def of(cls, table: Table, attacker: str) -> Frequencies | None:
        """Return the table as one of these; none where it is another."""
        if not table.is_whole or table.status is None or table.upper is None:
            return None
        if table.most is not None or (table.value < 0).any():
            return None  # `most`: a measure with few values, of which zeros are withheld, too
        sensitive = np.asarray(table.status == Status.PRIMARY)
        ends = np.unique(table.value[sensitive] + table.upper[sensitive])
        if len(ends) != 1 or ((table.value > 0) & (table.value < ends[0]) != sensitive).any():
            return None  # another rule marks cells, whose verdict on alternatives is not known here
        people = _people(table)
        if people is None:
            return None
        return cls(table, int(ends[0]), attacker == "contributors", people)

    def conditions(
        self, withheld: Bools, bounds: tuple[Floats, Floats] | None = None
    ) -> Conditions | None:
        """Return what the tables have in common of which the pattern could be published, too.

        `bounds` are printed in place of what is withheld. None where the pattern is too large.
        """
        if not self.judges(withheld):
            return None
        return remaining(
            self.table,
            withheld,
            self.minimum,
            self.people,
            contributors=self.contributors and int(withheld.sum()) <= CONTRIBUTORS,
            bounds=bounds,
        )

    def judges(self, withheld: Bools) -> bool:
        """Return whether a pattern is small enough to be judged."""
        return int(withheld.sum()) <= CELLS

    def denies(self, withheld: Bools, bounds: tuple[Floats, Floats] | None = None) -> bool | None:
        """Return whether the pattern excludes no promised count; none where that is not judged."""
        found = self.conditions(withheld, bounds)
        return None if found is None else found.met_by(self.table.value)


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
