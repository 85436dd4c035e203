"""Equivalence classes: records that look alike in the quasi-identifiers, and what they hide.

A privacy model never sees a record. It sees classes: how many records each has, and how often each
value of a confidential column occurs in it. That is all that k-anonymity, l-diversity,
t-closeness and their relatives speak about, and it fits in memory when the file does not.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from discreet.data.hierarchy import Hierarchy

__all__ = ["Cells", "Classes", "Domain"]

Integers = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]

#: Histograms are looked at in blocks of about this many cells, whatever the number of classes.
BLOCK = 1 << 22


@dataclasses.dataclass(frozen=True, eq=False)
class Domain:
    """The values of a confidential column: their order and their share in the whole file.

    Parameters
    ----------
    name
        The column.
    values
        The values, as text, in their order (numbers by size, others alphabetically).
    shares
        The share of each in the file that the models compare with.
    hierarchy
        The column's hierarchy, where it has one.
    """

    name: str
    values: tuple[str, ...]
    shares: Numbers
    hierarchy: Hierarchy | None = None

    def __len__(self) -> int:
        return len(self.values)


@dataclasses.dataclass(frozen=True, eq=False)
class Cells:
    """How often each value of one confidential column occurs in each class; zeros left out."""

    domain: Domain
    place: Integers
    value: Integers
    count: Integers

    def merged(self, label: Integers) -> Cells:
        """Return the cells after class `i` has become part of class `label[i]`."""
        width = len(self.domain)
        key = label[self.place] * width + self.value
        order = np.argsort(key, kind="stable")
        key, count = key[order], self.count[order]
        first = np.flatnonzero(np.concatenate(([True], key[1:] != key[:-1])))
        place, value = np.divmod(key[first], width)
        return Cells(self.domain, place, value, np.add.reduceat(count, first))


@dataclasses.dataclass(frozen=True, eq=False)
class Classes:
    """Classes with their sizes, the cells of each confidential column, and population counts.

    Examples
    --------
    >>> domain = Domain("illness", ("asthma", "flu"), np.array([0.4, 0.6]))
    >>> cells = Cells(domain, np.array([0, 1, 1]), np.array([1, 0, 1]), np.array([2, 2, 1]))
    >>> classes = Classes(np.array([2, 3]), {"illness": cells})
    >>> classes.distinct("illness")
    array([1, 2])
    >>> next(classes.histograms("illness"))[1]
    array([[0., 2.],
           [2., 1.]])
    """

    sizes: Integers
    cells: Mapping[str, Cells] = dataclasses.field(default_factory=dict)
    #: Records of the population in each class, for k-map.
    population: Numbers | None = None

    def __len__(self) -> int:
        return len(self.sizes)

    def distinct(self, column: str) -> Integers:
        """Return the number of different values in each class."""
        return np.bincount(self.cells[column].place, minlength=len(self)).astype(np.int64)

    def histograms(self, column: str) -> Iterator[tuple[slice, Numbers]]:
        """Yield blocks of classes with their counts of every value, one row per class."""
        cells = self.cells[column]
        width = max(1, len(cells.domain))
        step = max(1, BLOCK // width)
        for start in range(0, len(self), step):
            stop = min(start + step, len(self))
            low, high = np.searchsorted(cells.place, (start, stop))
            block = np.zeros((stop - start, width))
            block[cells.place[low:high] - start, cells.value[low:high]] = cells.count[low:high]
            yield slice(start, stop), block

    def chosen(self, mask: npt.NDArray[np.bool_]) -> Classes:
        """Return some of the classes."""
        number = np.cumsum(mask) - 1
        cells = {}
        for column, old in self.cells.items():
            stays = mask[old.place]
            cells[column] = Cells(
                old.domain, number[old.place[stays]], old.value[stays], old.count[stays]
            )
        population = None if self.population is None else self.population[mask]
        return Classes(self.sizes[mask], cells, population)
