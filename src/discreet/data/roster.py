"""Rosters: the records of a snapshot in an order that is the same whenever they are read.

Each record is known by a keyed mark of its whole row, and of its unit where there is one. Records of
two snapshots with the same mark are one unknown; a row that is new or changed is a new one, unless
marks of its unit and amount tell that what is added up is the same (`amounts`). Rows that are equal are told apart by nothing,
so that it does not matter which of them is which.
"""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.data.dataset import Dataset
from discreet.data.engines.base import ROW
from discreet.data.snapshot import row_marks

__all__ = ["CHANGE", "Roster", "locate_marks"]

Ints = npt.NDArray[np.int64]

#: Amounts that changed by no more than this share between snapshots are nearly the same.
CHANGE = 0.1


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
    #: The dataset with its rows held still, and the secret of the marks.
    dataset: Dataset | None = None
    key: bytes = dataclasses.field(default=b"", repr=False)

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
        return cls(marks[order], order, units, held, key)

    def __len__(self) -> int:
        return len(self.marks)

    def locate(self, other: Roster) -> Ints:
        """Return where each of these records stands in another roster; −1 where it does not.

        Of records whose rows have changed, those of the same unit are taken for each other.
        """
        place = locate_marks(self.marks, other.marks)
        if not len(self.units) or not len(other.units):
            return place
        here = np.flatnonzero(place < 0)
        there = np.setdiff1d(np.arange(len(other)), place)
        found = locate_marks(self.units[here], other.units[there])
        place[here[found >= 0]] = there[found[found >= 0]]
        return place

    def amounts(self, columns: Sequence[str]) -> Ints:
        """Return a keyed mark of each record's unit and columns; none where there is no unit."""
        held = self.dataset
        if held is None or held.unit is None or not set(columns) <= set(held.columns):
            return np.zeros(0, np.int64)
        names = list(dict.fromkeys([held.unit, *columns]))
        return row_marks(held.relation, names, key=self.key)[self.order]

    def nearly(self, columns: Sequence[str]) -> Ints:
        """Return two keyed marks of each record's unit and rough amount; none without a unit.

        The amount is the product of the columns. Amounts that differ by less than `CHANGE` have the
        same mark in at least one of the two rows.
        """
        held = self.dataset
        if (
            held is None
            or held.unit is None
            or not columns
            or not set(columns) <= set(held.columns)
        ):
            return np.zeros((0, 0), np.int64)
        amount = np.ones(len(self))
        for name in columns:
            column = held.arrow([name]).column(0).cast("float64").fill_null(0.0)
            amount = amount * column.to_numpy()
        amount = amount[self.order]
        with np.errstate(divide="ignore"):
            size = np.log(np.abs(amount)) / (2 * np.log1p(CHANGE))
        found = []
        for shift in (0.0, 0.5):
            step = np.where(amount == 0, -(2.0**40), np.floor(size + shift)).astype(np.int64)
            found.append(_keyed(self.units, step * 2 + (amount < 0), self.key))
        return np.stack(found)

    @property
    def identities(self) -> list[tuple[int, int]]:
        """The mark of each record, and which of the records with that mark it is."""
        return list(zip(self.marks.tolist(), self.occurrence.tolist(), strict=True))

    @property
    def occurrence(self) -> Ints:
        """For each record how many before it have the same mark."""
        return _occurrence(self.marks)

    def column(self, name: str) -> Any:
        """Return a column of the records in the order of the roster, as an Arrow array."""
        assert self.dataset is not None
        return self.dataset.arrow([name]).column(0).take(self.order)


def _keyed(units: Ints, steps: Ints, key: bytes) -> Ints:
    """Return a keyed mark of each pair, of few bits: it stands beside the mark of the unit."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    secret = hmac.new(key, b"rough amounts", hashlib.sha256).digest()
    # Single blocks, each a pair of its own: a permutation under a key, as a block cipher is.
    cipher = Cipher(algorithms.AES(secret), modes.ECB()).encryptor()  # noqa: S305
    blocks = np.stack([units, steps], axis=1).astype("<i8").tobytes()
    marks = np.frombuffer(cipher.update(blocks) + cipher.finalize(), dtype="<i8")[::2]
    return marks.astype(np.int64) & 0x7FFFFFFF


def locate_marks(these: Ints, those: Ints) -> Ints:
    """Return where each mark stands among others, equal ones one by one; −1 where it does not.

    >>> locate_marks(np.array([7, 5, 7, 9]), np.array([5, 7])).tolist()
    [1, 0, -1, -1]
    """
    mine, order = np.argsort(these, kind="stable"), np.argsort(those, kind="stable")
    wanted, known = these[mine], those[order]
    place = np.searchsorted(known, wanted, side="left") + _occurrence(wanted)
    there = place < len(known)
    there[there] = known[place[there]] == wanted[there]
    found = np.full(len(these), -1, dtype=np.int64)
    found[mine[there]] = order[place[there]]
    return found


def _occurrence(marks: Ints) -> Ints:
    """For each of sorted marks how many before it are equal."""
    first = np.searchsorted(marks, marks, side="left")
    return np.arange(len(marks), dtype=np.int64) - first
