"""Classes at any node of the generalisation lattice, each made from an earlier, finer grouping.

A node says how far each attribute is generalised. Its classes are found by generalising one
attribute after another in a fixed order, and what has been found on the way is kept: nodes that
agree in the first attributes share that part of the work, and each step starts from classes
instead of records.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from discreet.microdata.classes import Cells, Classes, Integers, Numbers
from discreet.microdata.frequency_set import FrequencySet
from discreet.microdata.search.attribute import Attribute

__all__ = ["Grouping", "Rollup"]

# Bits of a key: one 64-bit word takes this many, further attributes go to further words.
_WORD = 62
# So many classes are few: generalising them costs about as much as the calls it takes.
_FEW = 1000


@dataclasses.dataclass(eq=False)
class Grouping:
    """The classes at one node: packed places of their first values, sorted, and their sizes."""

    words: tuple[Integers, ...]
    sizes: Integers
    population: Numbers | None
    _cells: dict[str, Cells]
    _finer: Grouping | None = None
    _label: Integers | None = None

    def __len__(self) -> int:
        return len(self.sizes)

    def cells(self, column: str) -> Cells:
        """Return the cells of a confidential column, merged from the finer grouping's."""
        if column not in self._cells:
            assert self._finer is not None
            assert self._label is not None
            self._cells[column] = self._finer.cells(column).merged(self._label)
        return self._cells[column]

    def classes(self, columns: Sequence[str]) -> Classes:
        """Return the classes as privacy models see them."""
        cells = {column: self.cells(column) for column in columns}
        return Classes.of(self.sizes, cells, self.population)

    @property
    def bytes(self) -> int:
        """Memory held, roughly."""
        words = sum(word.nbytes for word in self.words) + self.sizes.nbytes
        return words + (0 if self._label is None else self._label.nbytes)


class Rollup:
    """Groupings at the nodes of a lattice, from a frequency set.

    Parameters
    ----------
    table
        The frequency set.
    attributes
        Its quasi-identifiers along their hierarchies.
    memory
        Bytes of groupings to keep for later nodes.
    """

    def __init__(
        self, table: FrequencySet, attributes: Sequence[Attribute], *, memory: int = 1 << 29
    ) -> None:
        self.attributes = tuple(attributes)
        # The attribute with most values goes into the lowest bits and is generalised first: its
        # neighbours are then neighbours in the whole order, and nothing needs sorting.
        self._order = sorted(
            range(len(attributes)), key=lambda j: (-len(attributes[j].rank), attributes[j].name)
        )
        self._word, self._shift, self._mask = self._pack()
        self._labelled = bool(table.cells)
        self._kept: dict[tuple[tuple[int, int], ...], Grouping] = {}
        self._memory, self._held = memory, 0
        self._base = self._first(table)

    def _pack(self) -> tuple[list[int], list[int], list[int]]:
        bits = [max(1, (len(a.rank) - 1).bit_length()) for a in self.attributes]
        word, shift = [0] * len(bits), [0] * len(bits)
        at, used = 0, 0
        for j in self._order:
            if used + bits[j] > _WORD:
                at, used = at + 1, 0
            word[j], shift[j] = at, used
            used += bits[j]
        mask = [(1 << size) - 1 for size in bits]
        return word, shift, mask

    def _first(self, table: FrequencySet) -> Grouping:
        words = [np.zeros(len(table.count), dtype=np.int64) for _ in range(max(self._word) + 1)]
        for j, (coded, attribute) in enumerate(zip(table.quasi, self.attributes, strict=True)):
            places = attribute.first[0][attribute.rank[coded.codes]]
            words[self._word[j]] |= places << self._shift[j]
        return self._merged(words, table.count, table.population, dict(table.cells), None)

    def places(self, grouping: Grouping, j: int) -> Integers:
        """Return the place of each class's first value of an attribute."""
        return (grouping.words[self._word[j]] >> self._shift[j]) & self._mask[j]

    def at(self, node: Sequence[int]) -> Grouping:
        """Return the classes at a node."""
        path = tuple((j, node[j]) for j in self._order if node[j] > 0)
        depth = len(path)
        while depth and path[:depth] not in self._kept:
            depth -= 1
        found = self._kept[path[:depth]] if depth else self._base
        while depth < len(path):
            # Where few classes are left, one step to the end is cheaper than steps worth keeping.
            end = depth + 1 if len(found) > _FEW else len(path)
            found = self._generalized(found, path[depth:end])
            self._keep(path[:end], found)
            depth = end
        return found

    def _keep(self, path: tuple[tuple[int, int], ...], grouping: Grouping) -> None:
        if self._held > self._memory:
            self._kept.clear()
            self._held = 0
        self._kept[path] = grouping
        self._held += grouping.bytes

    def _generalized(self, finer: Grouping, steps: Sequence[tuple[int, int]]) -> Grouping:
        words = list(finer.words)
        for j, level in steps:
            places = self.places(finer, j)
            moved = (self.attributes[j].first[level][places] - places) << self._shift[j]
            words[self._word[j]] = words[self._word[j]] + moved
        sorts = any(j != self._order[0] for j, _ in steps)
        return self._merged(words, finer.sizes, finer.population, {}, finer, sorts=sorts)

    def _merged(
        self,
        words: list[Integers],
        sizes: Integers,
        population: Numbers | None,
        cells: dict[str, Cells],
        finer: Grouping | None,
        *,
        sorts: bool = True,
    ) -> Grouping:
        """Merge rows with equal keys into classes, in the order of the keys."""
        order = None
        if sorts:
            # A stable sort merges the sorted runs that the finer grouping left.
            order = np.argsort(words[0], kind="stable") if len(words) == 1 else np.lexsort(words)
            words = [word[order] for word in words]
            sizes = sizes[order]
            population = None if population is None else population[order]
        new = np.ones(len(sizes), dtype=bool)
        if len(sizes):
            np.not_equal(words[0][1:], words[0][:-1], out=new[1:])
            for word in words[1:]:
                new[1:] |= word[1:] != word[:-1]
        first = np.flatnonzero(new)
        label = None
        if self._labelled:
            number = np.cumsum(new) - 1
            label = number if order is None else np.empty_like(number)
            if order is not None:
                label[order] = number
            if finer is None:
                cells = {column: found.merged(label) for column, found in cells.items()}
        return Grouping(
            tuple(word[first] for word in words),
            np.add.reduceat(sizes, first) if len(first) else sizes,
            None
            if population is None
            else np.add.reduceat(population, first)
            if len(first)
            else population,
            cells,
            finer,
            label if finer is not None else None,
        )
