"""The whole cube of a table: every combination of codes, empty ones too."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import sparse

from discreet.data.table import Bools, Dimension, Floats, Table
from discreet.errors import InputError

__all__ = ["LARGEST", "add_up", "combinations", "complete_cube", "require_size", "views"]

#: Noise for more cells than this takes hours and says nothing: all of them would be noise.
LARGEST = 2_000_000


def combinations(dimensions: Sequence[Dimension]) -> int:
    """Return the number of combinations of codes."""
    return math.prod(len(dimension.codes) for dimension in dimensions)


def require_size(table: Table) -> int:
    """Return the number of combinations of codes, or say that there are too many."""
    number = combinations(table.dimensions)
    if number > LARGEST:
        raise InputError(
            f"the table has {number:,} combinations of codes, too many to add noise to each",
            code="table-too-large",
            hint="cross fewer attributes, use coarser codes, or top-down with large=True",
        )
    return number


def complete_cube(table: Table) -> Table:
    """Return the table with a cell for every combination of codes; what was empty is zero."""
    number = require_size(table)
    sizes = [len(dimension.codes) for dimension in table.dimensions]
    grid = np.indices(sizes).reshape(len(sizes), -1).T.astype(np.int32)
    empty = Table(table.dimensions, grid, np.zeros(number))
    place = table.find(empty.keys)
    there = place >= 0

    def filled(array: Floats | None, nothing: float = 0.0) -> Floats | None:
        if array is None:
            return None
        whole = np.full((number, *array.shape[1:]), nothing, dtype=array.dtype)
        whole[there] = array[place[there]]
        return whole

    value = filled(table.value)
    assert value is not None
    return Table(
        table.dimensions,
        grid,
        value,
        count=filled(table.count),  # type: ignore[arg-type]  # the type of the array stays
        lower=filled(table.lower),
        upper=filled(table.upper),
        status=filled(table.status),  # type: ignore[arg-type]
        statistic=table.statistic,
        measure=table.measure,
    )


def views(table: Table) -> Floats:
    """Return for each cell the number of its view: cells at one combination of levels.

    View 0 are the single cells. A record is in at most one cell of each view: codes at one depth
    of a hierarchy exclude each other, where several hierarchies meet each is a view of its own.
    """
    number = np.zeros(len(table))
    for place, dimension in enumerate(table.dimensions):
        level = _levels(dimension.parents, dimension.is_leaf)
        number = number * (level.max(initial=0) + 1) + level[table.codes[:, place]]
    return np.unique(number, return_inverse=True)[1].astype(np.float64)


def _levels(parents: npt.NDArray[np.int32], is_leaf: Bools) -> Floats:
    """Return 0 for single codes, then one number per hierarchy and depth."""
    size = parents.shape[1]
    level = np.zeros(size)
    used = 0
    for row in parents:
        depth = np.zeros(size, dtype=np.int64)
        for code in range(1, size):  # parents come before children
            if row[code] >= 0:
                depth[code] = depth[row[code]] + 1
        inner = np.zeros(size, dtype=bool)
        inner[row[row >= 0]] = True
        for found in np.unique(depth[inner & ~is_leaf]):
            used += 1
            level[inner & (depth == found) & (level == 0)] = used
    return level


def add_up(table: Table, value: Floats) -> Floats:
    """Return the values with every total replaced by the sum of the single cells below it."""
    entries = table.equations.tocoo()
    parts = entries.data < 0
    total = np.zeros(entries.shape[0], dtype=np.int64)
    total[entries.row[~parts]] = entries.col[~parts]
    sums = sparse.csr_matrix(
        (-entries.data[parts], (entries.row[parts], entries.col[parts])), shape=entries.shape
    )
    result = value.copy()
    while True:  # once per level of totals
        fresh = result.copy()
        fresh[total] = sums @ result
        if np.array_equal(fresh, result):
            return result
        result = fresh
