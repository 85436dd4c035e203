"""Which cells move together when a withheld cell takes another value and no opened one does.

Choose two leaves in each dimension, one below the cell and one beside it. Adding an amount to the
corners of this hypercube of leaves with alternating signs keeps every total in which both leaves of
some dimension lie; the cells that move are the corners and the subtotals of one leaf of each pair.
A dimension may also have one leaf only: then all totals above it move too. Everything here is public:
codes, trees, and the pattern of withheld cells.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import sparse

from discreet.data.hierarchy import Hierarchy

__all__ = ["NONE", "Candidates", "Lattice"]

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]
#: Hypercubes that are looked at for one cell; of longer lists the cheapest ends in each dimension.
_MOST = 20_000
_NEVER = 1e12
#: In the place of a corner: there is none.
NONE = -1


@dataclasses.dataclass(frozen=True, eq=False)
class Candidates:
    """Hypercubes of one cell, cheapest first: their leaf corners and all cells that move."""

    #: One line for each; `NONE` where a hypercube has fewer.
    corners: Places
    #: For each dimension and hypercube the codes of which some move.
    moving: tuple[Bools, ...]

    def __len__(self) -> int:
        return len(self.corners)

    def moved(self, place: int, lattice: Lattice) -> Places:
        """Return the cells that a hypercube moves."""
        return lattice.cross([np.flatnonzero(of[place]) for of in self.moving])


@dataclasses.dataclass(frozen=True, eq=False)
class Lattice:
    """The cells of a cross of trees, numbered with the last dimension fastest."""

    trees: tuple[Hierarchy, ...]

    @functools.cached_property
    def shape(self) -> tuple[int, ...]:
        """The number of codes of each dimension."""
        return tuple(len(tree) for tree in self.trees)

    @functools.cached_property
    def above(self) -> tuple[Bools, ...]:
        """For each dimension whether the first code is the second or above it."""
        found = []
        for tree in self.trees:
            inside = np.eye(len(tree), dtype=np.bool_)
            for place in range(len(tree) - 1, 0, -1):  # children come after their parents
                inside[tree.parents[place]] |= inside[place]
            found.append(inside)
        return tuple(found)

    @functools.cached_property
    def leaves(self) -> Bools:
        """Whether each cell is one of single codes."""
        whole = [tree.is_leaf for tree in self.trees]
        return np.asarray(functools.reduce(np.multiply.outer, whole)).reshape(-1)

    @functools.cached_property
    def weights(self) -> Floats:
        """How many single cells each cell adds up: what withholding it costs."""
        below = [
            (inside & tree.is_leaf).sum(axis=1).astype(np.float64)
            for inside, tree in zip(self.above, self.trees, strict=True)
        ]
        return np.asarray(functools.reduce(np.multiply.outer, below))

    def added(self, values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the values of single cells with those of totals put in: what they add up to."""
        found = np.where(self.leaves, values, 0).reshape(self.shape)
        for axis, inside in enumerate(self.above):
            moved = np.tensordot(inside.astype(np.int64), found, axes=(1, axis))
            found = np.moveaxis(moved, 0, axis)
        return np.ascontiguousarray(found).reshape(-1)

    def cross(self, places: Sequence[npt.NDArray[np.intp]]) -> Places:
        """Return the numbers of the cells of a cross of codes."""
        return np.asarray(np.ravel_multi_index(np.ix_(*places), self.shape)).reshape(-1)

    def related(self, cell: int) -> Places:
        """Return a cell, all that it adds up, and all totals of these."""
        at = np.unravel_index(cell, self.shape)
        return self.cross(
            [
                np.flatnonzero(inside[place] | inside[:, place])
                for inside, place in zip(self.above, at, strict=True)
            ]
        )

    def candidates(self, cell: int, withheld: Bools, empty: Bools, most: int) -> Candidates:
        """Return the cheapest hypercubes of a cell that have no corner known to be empty.

        The order is by what is withheld besides what already is, then by the order of the codes.
        """
        at = [int(one) for one in np.unravel_index(cell, self.shape)]
        cost = np.where(withheld.reshape(self.shape), 0.0, self.weights)
        cost = cost + np.where(
            empty.reshape(self.shape) & self.leaves.reshape(self.shape), _NEVER, 0
        )
        each = max(int(_MOST ** (1 / len(at))), 2)
        pairs, moving = [], []
        for axis, place in enumerate(at):
            ends, moved = self._options(axis, place)
            line = cost[tuple(slice(None) if d == axis else one for d, one in enumerate(at))]
            order = np.argsort(moved @ np.minimum(line, _NEVER), kind="stable")[:each]
            pairs.append(ends[order])
            moving.append(moved[order])
        for axis, moved in enumerate(moving):
            cost = _added_along(cost, moved, axis)
        flat = cost.reshape(-1)
        order = np.argsort(flat, kind="stable")
        order = order[flat[order] < _NEVER][:most]
        chosen = np.unravel_index(order, cost.shape)
        chosen_ends = [of[one] for of, one in zip(pairs, chosen, strict=True)]
        corners = np.stack(
            [
                np.ravel_multi_index(
                    tuple(e[:, s] for e, s in zip(chosen_ends, side, strict=True)), self.shape
                )
                for side in itertools.product((0, 1), repeat=len(at))
            ],
            axis=1,
        )
        if self.leaves[cell]:  # the first corner is the cell itself, of which nothing is asked
            corners = np.where(corners == cell, NONE, corners)[:, 1:]
        return Candidates(corners, tuple(of[one] for of, one in zip(moving, chosen, strict=True)))

    def _options(self, axis: int, place: int) -> tuple[Places, Bools]:
        """Return the pairs of leaves of a dimension for a code, and the codes that each moves."""
        inside = self.above[axis]
        leaves = np.flatnonzero(self.trees[axis].is_leaf)
        below = leaves[inside[place, leaves]]
        beside = leaves[~inside[place, leaves]]
        two = np.array(list(itertools.product(below, beside)), dtype=np.int64).reshape(-1, 2)
        ends = np.concatenate([two, np.stack([below, below], axis=1)])
        first, second = inside[:, ends[:, 0]].T, inside[:, ends[:, 1]].T
        alone = (ends[:, 0] == ends[:, 1])[:, None]
        return ends, np.where(alone, first, first ^ second)


def _added_along(values: Floats, chosen: Bools, axis: int) -> Floats:
    """Return sums over the codes that each line chooses along an axis; lines choose few."""
    front = np.moveaxis(values, axis, 0)
    found = sparse.csr_array(chosen.astype(np.float64)) @ front.reshape(len(front), -1)
    return np.moveaxis(np.asarray(found).reshape(len(chosen), *front.shape[1:]), 0, axis)
