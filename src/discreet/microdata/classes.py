"""Equivalence classes: records that look alike in the quasi-identifiers, and what they hide.

A privacy model never sees a record. It sees classes: how many people and records each has, and how
many people have each value of a confidential column in it. People are the distinct units where the
schema declares a unit, else every record is a person. That is all that k-anonymity, l-diversity,
t-closeness and their relatives speak about, and it fits in memory when the file does not.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from discreet.data.hierarchy import Hierarchy

__all__ = ["UNITS", "Cells", "Classes", "Domain", "units_of"]

Integers = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]

#: The place of the units among the cells of classes; no column of a file has this name.
UNITS = "\0units"
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
    """How often each value of one confidential column occurs in each class; zeros left out.

    Where people may own several records, each cell is listed once per owner, so that cells can be
    merged without counting anybody twice; `counted` then gives the number of owners.

    >>> domain = Domain("illness", ("flu",), np.array([1.0]))
    >>> ones, zeros = np.ones(3, dtype=np.int64), np.zeros(3, dtype=np.int64)
    >>> owned = Cells(domain, np.array([0, 1, 1]), zeros, ones, np.array([7, 7, 8]))
    >>> owned.merged(np.array([0, 0])).counted().count
    array([2])
    """

    domain: Domain
    place: Integers
    value: Integers
    count: Integers
    #: The unit that owns the records of the cell, where the schema declares units.
    unit: Integers | None = None

    def merged(self, label: Integers) -> Cells:
        """Return the cells after class `i` has become part of class `label[i]`."""
        width = len(self.domain)
        key = label[self.place] * width + self.value
        if self.unit is not None:
            order = np.lexsort((self.unit, key))
            key, unit = key[order], self.unit[order]
            first = np.flatnonzero(_changes(key) | _changes(unit))
            place, value = np.divmod(key[first], width)
            return Cells(self.domain, place, value, np.ones_like(first), unit[first])
        order = np.argsort(key, kind="stable")
        key, count = key[order], self.count[order]
        first = np.flatnonzero(_changes(key))
        place, value = np.divmod(key[first], width)
        return Cells(self.domain, place, value, np.add.reduceat(count, first))

    def counted(self) -> Cells:
        """Return each cell once, with the number of its owners where they are known."""
        if self.unit is None:
            return self
        first = np.flatnonzero(_changes(self.place) | _changes(self.value))
        if not len(first):
            return Cells(self.domain, self.place, self.value, self.count)
        count = np.add.reduceat(self.count, first)
        return Cells(self.domain, self.place[first], self.value[first], count)

    def chosen(self, mask: npt.NDArray[np.bool_]) -> Cells:
        """Return some of the cells."""
        unit = None if self.unit is None else self.unit[mask]
        return Cells(self.domain, self.place[mask], self.value[mask], self.count[mask], unit)


def _changes(values: Integers) -> npt.NDArray[np.bool_]:
    """Return where a value differs from the one before it."""
    found = np.ones(len(values), dtype=bool)
    np.not_equal(values[1:], values[:-1], out=found[1:])
    return found


def units_of(place: Integers, unit: Integers) -> Cells:
    """Return which units have records in which class.

    >>> units_of(np.array([0, 0, 1]), np.array([5, 5, 5])).counted().count
    array([1, 1])
    """
    one = Domain(UNITS, ("",), np.ones(1))
    zeros = np.zeros_like(place)
    found = Cells(one, place, zeros, np.ones_like(place), unit)
    return found.merged(np.arange(place.max(initial=-1) + 1))


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

    @functools.cached_property
    def people(self) -> Integers:
        """The number of people in each class: distinct units where they are declared."""
        if UNITS not in self.cells:
            return self.sizes
        units = self.cells[UNITS]
        return np.bincount(units.place, units.count, minlength=len(self)).astype(np.int64)

    @classmethod
    def of(
        cls, sizes: Integers, cells: Mapping[str, Cells], population: Numbers | None = None
    ) -> Classes:
        """Return classes from cells that may be listed by owner."""
        return cls(sizes, {column: own.counted() for column, own in cells.items()}, population)

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
            stays = old.chosen(mask[old.place])
            cells[column] = dataclasses.replace(stays, place=number[stays.place])
        population = None if self.population is None else self.population[mask]
        return Classes(self.sizes[mask], cells, population)
