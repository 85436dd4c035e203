"""Counting records that look alike when a missing key matches every value.

Records are told apart by which of their keys are missing. A record whose missing keys are S and
one whose missing keys are Q match when they agree on every key outside of both, so counting takes
one look-up for each pair of patterns that occur, whatever the number of records.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from discreet.microdata.classes import Integers
from discreet.microdata.frequency_set import code_column, labels
from discreet.microdata.models import Model
from discreet.microdata.models._base import ModelCheck

if TYPE_CHECKING:
    from discreet.data.dataset import Dataset

__all__ = ["Keys", "wildcard_check"]


class Keys:
    """The keys of a file as numbers, some of them missing.

    Examples
    --------
    >>> keys = Keys(np.array([[0, 0], [0, 1], [0, 1]]), [1, 2])
    >>> keys.matches(np.arange(3)).tolist()
    [1, 2, 2]
    >>> keys.remove(np.array([1]), 0b10)
    >>> keys.matches(np.arange(3)).tolist()
    [2, 3, 2]
    """

    def __init__(
        self, codes: Integers, sizes: Sequence[int], missing: Integers | None = None
    ) -> None:
        self.codes = codes
        self.sizes = list(sizes)
        #: For each record the set of its missing keys, as bits.
        self.missing = np.zeros(len(codes), dtype=np.int64) if missing is None else missing.copy()

    @property
    def width(self) -> int:
        """Number of keys."""
        return int(self.codes.shape[1])

    def remove(self, records: Integers, pattern: int) -> None:
        """Make some keys of some records missing."""
        self.missing[records] |= pattern

    def agree(self, records: Integers, pattern: int) -> Integers:
        """Give records one number when they agree on every key outside a pattern."""
        chosen = [j for j in range(self.width) if not pattern >> j & 1]
        return labels(
            [self.codes[records, j] for j in chosen],
            [self.sizes[j] for j in chosen],
            len(records),
        )[0]

    def matches(self, records: Integers, removed: int = 0) -> Integers:
        """Return how many records of the file match each of these, itself included.

        With `removed`, as if these keys of the one record were missing too; all the records
        asked for must then have had every key.
        """
        found = np.zeros(len(records), dtype=np.int64)
        patterns = np.unique(self.missing)
        groups = [(int(q), np.flatnonzero(self.missing == q)) for q in patterns]
        own = self.missing[records] | removed
        for s in np.unique(own):
            asked = np.flatnonzero(own == s)
            for q, there in groups:
                found[asked] += self._count(records[asked], there, int(s) | q)
        return found

    def _count(self, records: Integers, there: Integers, pattern: int) -> Integers:
        """Return for each record how many of those `there` agree with it outside a pattern."""
        label = self.agree(np.concatenate((there, records)), pattern)
        sizes = np.bincount(label[: len(there)], minlength=int(label.max()) + 1)
        return sizes[label[len(there) :]]

    def class_of(self) -> Integers:
        """Return each record's class, 0 and up, when a missing key is a value of its own."""
        gone = (self.missing[:, None] >> np.arange(self.width)) & 1
        codes = np.where(gone, 0, self.codes + 1)
        return labels(list(codes.T), [size + 1 for size in self.sizes], len(codes))[0]

    def classes(self) -> Integers:
        """Return the size of each record's class when a missing key is a value of its own."""
        label = self.class_of()
        sizes: Integers = np.bincount(label)[label] if len(label) else label
        return sizes


def keys_of(dataset: Dataset, names: Sequence[str]) -> Keys:
    """Return the keys of a dataset, in the order of `arrow()`."""
    rows = dataset.arrow(list(names))
    return keys_of_table([rows.column(name) for name in names], names)


def keys_of_table(columns: Sequence[npt.ArrayLike], names: Sequence[str]) -> Keys:
    """Return Arrow columns as keys."""
    codes, sizes = [], []
    missing = np.zeros(len(columns[0]), dtype=np.int64)  # type: ignore[arg-type]  # Arrow columns have a length
    for j, (name, column) in enumerate(zip(names, columns, strict=True)):
        coded = code_column(name, column)
        codes.append(coded.codes)
        sizes.append(len(coded.values))
        if coded.values.null_count:
            missing |= (coded.codes == len(coded.values) - 1).astype(np.int64) << j
    return Keys(np.stack(codes, axis=1), sizes, missing)


def wildcard_check(released: Dataset, model: Model, names: Sequence[str]) -> ModelCheck:
    """Check k-anonymity when a missing key matches every value."""
    keys = keys_of(released, names)
    matches = keys.matches(np.arange(len(keys.codes)))
    low = matches < model.smallest
    return ModelCheck(
        model.name,
        f"{model.promise}, a missing key matching every value",
        not bool(low.any()),
        float(matches.min()) if len(matches) else float("nan"),
        len(matches),
        len(np.unique(keys.agree(np.arange(len(matches)), 0))),
        int(low.sum()),
        int(low.sum()),
    )
