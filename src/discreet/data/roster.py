"""Rosters: the records of a snapshot in an order that is the same whenever they are read.

Each record is known by a keyed mark of its whole row. Records of two snapshots with the same mark are
one unknown; a row that is new or changed is a new one. Rows that are equal are told apart by nothing,
so that it does not matter which of them is which.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.data.dataset import Dataset
from discreet.data.engines.base import ROW
from discreet.data.snapshot import row_marks

__all__ = ["Roster"]

Ints = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True, eq=False)
class Roster:
    """The records of a snapshot, in the order of their marks.

    Examples
    --------
    >>> import pandas as pd
    >>> from discreet.data.dataset import read
    >>> one = Roster.of(read(pd.DataFrame({"a": [1, 2, 2]})), key=b"secret")
    >>> other = Roster.of(read(pd.DataFrame({"a": [2, 3, 2]})), key=b"secret")
    >>> len(one), len(set(one.identities) & set(other.identities))
    (3, 2)
    """

    #: Marks in their order.
    marks: Ints
    #: For each place of the roster, which of the dataset's rows stands there.
    order: Ints
    #: For each place a keyed mark of the unit that the record belongs to; empty without a unit.
    units: Ints = dataclasses.field(default_factory=lambda: np.zeros(0, np.int64))
    #: The dataset with its rows held still.
    dataset: Dataset | None = None

    @classmethod
    def of(cls, dataset: Dataset, *, key: bytes) -> Roster:
        """Read the records once and put them in order."""
        held = dataset if ROW in dataset.relation.columns else dataset.numbered()
        marks = row_marks(held.relation, dataset.columns, key=key)
        order = np.argsort(marks, kind="stable").astype(np.int64)
        unit = dataset.unit
        units = np.zeros(0, np.int64)
        if unit is not None:
            units = row_marks(held.relation, [unit], key=key)[order]
        return cls(marks[order], order, units, held)

    def __len__(self) -> int:
        return len(self.marks)

    def locate(self, other: Roster) -> Ints:
        """Return where each of these records stands in another roster; −1 where it does not."""
        place = np.searchsorted(other.marks, self.marks, side="left") + self.occurrence
        there = place < len(other)
        there[there] = other.marks[place[there]] == self.marks[there]
        return np.where(there, place, -1)

    @property
    def identities(self) -> list[tuple[int, int]]:
        """The mark of each record, and which of the records with that mark it is."""
        return list(zip(self.marks.tolist(), self.occurrence.tolist(), strict=True))

    @property
    def occurrence(self) -> Ints:
        """For each record how many before it have the same mark."""
        first = np.searchsorted(self.marks, self.marks, side="left")
        return np.arange(len(self.marks), dtype=np.int64) - first

    def column(self, name: str) -> Any:
        """Return a column of the records in the order of the roster, as an Arrow array."""
        assert self.dataset is not None
        return self.dataset.arrow([name]).column(0).take(self.order)
