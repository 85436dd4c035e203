"""The tree of places and the histograms of a table, as arrays."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from discreet.data.table import Dimension, Floats, Ints, Table
from discreet.dp.hierarchical.basis import Basis, along
from discreet.dp.hierarchical.budget import Budget
from discreet.dp.hierarchical.tree import Spine
from discreet.errors import InputError

__all__ = ["Places"]

T = TypeVar("T", np.int64, np.float64)


@dataclasses.dataclass(frozen=True, eq=False)
class Places:
    """How cells of a table are nodes of a tree and cells of histograms.

    A leaf above the last level stands below itself on every further level.

    Examples
    --------
    >>> from discreet.data.hierarchy import Hierarchy
    >>> tree = Hierarchy.from_levels({"Land": {"N": ["n1", "n2"], "S": {}}})
    >>> sex = Dimension.of("sex", Hierarchy.flat(["f", "m"]))
    >>> places = Places.of((Dimension.of("region", tree), sex), 0)
    >>> places.spine.sizes, places.basis.sizes
    ((1, 2, 3), (2,))
    """

    dimensions: tuple[Dimension, ...]
    #: Which dimension is the spine.
    place: int
    spine: Spine
    #: Per level the code of each node.
    nodes: tuple[Ints, ...]
    basis: Basis

    @classmethod
    def of(cls, dimensions: tuple[Dimension, ...], place: int) -> Places:
        """Read the tree of one dimension; the others are the attributes of its histograms."""
        spine, nodes = _tree(dimensions[place])
        others = [d for number, d in enumerate(dimensions) if number != place]
        return cls(
            dimensions, place, spine, nodes, Basis(tuple(int(d.is_leaf.sum()) for d in others))
        )

    @property
    def name(self) -> str:
        """The name of the spine."""
        return self.dimensions[self.place].name

    @functools.cached_property
    def attributes(self) -> tuple[Dimension, ...]:
        """The other dimensions."""
        return tuple(d for number, d in enumerate(self.dimensions) if number != self.place)

    @functools.cached_property
    def sums(self) -> tuple[Floats, ...]:
        """For each attribute which single values (columns) a code (row) sums."""
        return tuple(_sums(dimension) for dimension in self.attributes)

    @functools.cached_property
    def level_of(self) -> npt.NDArray[np.int64]:
        """The first level on which each code of the spine stands."""
        level = np.full(len(self.dimensions[self.place].codes), -1, dtype=np.int64)
        for number in range(self.spine.depth - 1, -1, -1):
            level[self.nodes[number]] = number
        return level

    @functools.cached_property
    def node_of(self) -> npt.NDArray[np.int64]:
        """The node of each code on that level."""
        node = np.zeros(len(self.dimensions[self.place].codes), dtype=np.int64)
        for number, codes in enumerate(self.nodes):
            here = self.level_of[codes] == number
            node[codes[here]] = np.flatnonzero(here)
        return node

    @property
    def size(self) -> int:
        """Number of cells that are published."""
        return int(np.prod([float(len(d.codes)) for d in self.dimensions]))

    def draws(self, budget: Budget) -> int:
        """Return how many numbers get noise."""
        return sum(
            self.spine.sizes[one.level] * math.prod(self.basis.sizes[a] for a in one.query)
            for one in budget.measures
        )

    def leaves(self, table: Table) -> Ints:
        """Return the counts of single cells, one row per leaf."""
        return np.round(self.single(table)).astype(np.int64)

    def single(self, table: Table) -> Floats:
        """Return the values of single cells, whole or not, one row per leaf."""
        leaf = np.ones(len(table), dtype=bool)
        for number, dimension in enumerate(table.dimensions):
            leaf &= dimension.is_leaf[table.codes[:, number]]
        return self.histograms(list(table.codes[leaf].T), table.value[leaf])

    def histograms(
        self, codes: Sequence[npt.NDArray[np.integer]], counts: npt.NDArray[T]
    ) -> npt.NDArray[T]:
        """Return one row per leaf, from counts of single cells with the codes of each dimension."""
        row = cell = np.zeros(len(counts), dtype=np.int64)
        for number, dimension in enumerate(self.dimensions):
            if number == self.place:
                rank = np.zeros(len(dimension.codes), dtype=np.int64)
                rank[self.nodes[-1]] = np.arange(len(self.nodes[-1]))
                row = rank[codes[number]]
            else:
                order = np.cumsum(dimension.is_leaf) - 1
                cell = cell * int(dimension.is_leaf.sum()) + order[codes[number]]
        found = np.zeros((self.spine.sizes[-1], self.basis.cells), dtype=counts.dtype)
        np.add.at(found, (row, cell), counts)
        return found

    def gathered(self, levels: tuple[npt.NDArray[np.generic], ...]) -> npt.NDArray[np.generic]:
        """Return one row per code of the spine, from rows per node of each level."""
        found = np.zeros(
            (len(self.level_of), levels[0].shape[1]), dtype=np.result_type(*levels[:1])
        )
        for number, level in enumerate(levels):
            here = self.level_of == number
            full = np.broadcast_to(level, (self.spine.sizes[number], level.shape[1]))
            found[here] = full[self.node_of[here]]
        return found

    def cube(self, rows: Floats, matrices: tuple[Floats, ...] | None = None) -> Floats:
        """Return all cells in the order of the whole cube, from one row per code of the spine."""
        whole = along(rows, self.sums if matrices is None else matrices)
        shape = (len(rows), *(len(d.codes) for d in self.attributes))
        return np.moveaxis(whole.reshape(shape), 0, self.place).reshape(-1)

    def possible(self, zeros: tuple[dict[str, tuple[str, ...]], ...]) -> npt.NDArray[np.bool_]:
        """Return which cells of a histogram may hold somebody, given impossible combinations."""
        found = np.ones(self.basis.sizes, dtype=bool)
        for combination in zeros:
            hit = np.ones(self.basis.sizes, dtype=bool)
            for number, dimension in enumerate(self.attributes):
                codes = combination.get(dimension.name)
                if codes is None:
                    continue
                rows = [dimension.index[code] for code in codes]
                here = self.sums[number][rows].any(axis=0)
                shape = [1] * len(self.basis.sizes)
                shape[number] = -1
                hit &= here.reshape(shape)
            found &= ~hit
        return found.reshape(-1)


def _sums(dimension: Dimension) -> Floats:
    leaves = np.flatnonzero(dimension.is_leaf)
    found = np.zeros((len(dimension.codes), len(leaves)))
    found[leaves, np.arange(len(leaves))] = 1
    for parents in dimension.parents:
        climbing = leaves.copy()
        for _ in range(len(dimension.codes)):
            climbing = np.where(climbing >= 0, parents[climbing], -1)
            there = climbing >= 0
            if not there.any():
                break
            found[climbing[there], np.flatnonzero(there)] = 1
    return found


def _tree(dimension: Dimension) -> tuple[Spine, tuple[Ints, ...]]:
    """Return the tree of a dimension, with the code of each node."""
    if len(dimension.hierarchies) != 1:
        raise InputError(
            f"the spine {dimension.name!r} needs exactly one hierarchy, found "
            f"{len(dimension.hierarchies)}",
            code="bad-spine",
            hint="declare one tree of places for it, or choose another spine",
            column=dimension.name,
        )
    above = dimension.parents[0].astype(np.int64)
    order = np.argsort(above, kind="stable")
    count = np.bincount(above[above >= 0], minlength=len(above))
    first = np.searchsorted(above[order], np.arange(len(above)))
    levels, parents = [np.zeros(1, dtype=np.int64)], []
    while not dimension.is_leaf[levels[-1]].all():
        codes = levels[-1]
        width = np.maximum(count[codes], 1)
        parent = np.repeat(np.arange(len(codes)), width)
        rank = np.arange(len(parent)) - np.repeat(np.cumsum(width) - width, width)
        leaf = dimension.is_leaf[codes][parent]
        child = order[np.minimum(first[codes][parent] + rank, len(order) - 1)]
        levels.append(np.where(leaf, codes[parent], child))
        parents.append(parent)
    return Spine(tuple(parents)), tuple(levels)
