"""How far the totals of a table narrow what bounded noise leaves of a cell, over all keys.

A printed count leaves every value within the largest deviation. Totals that hold the count are
printed with noise of their own, and leave every value within theirs: the values that remain are
those that all of them leave. A draw at the very edge of the noise excludes values that another
draw does not, so that what remains in one release is a matter of luck. What is a property of the
method is how often it happens over all keys, and that follows from the probabilities alone.

The bound is for somebody who knows every other leaf of the table: the count and all totals that hold
it move together, and nothing else does. Who knows less can exclude no more. Of sums, whose noise is a
share of the largest contribution, totals with several contributors leave so much that it can be said
how far a cell can move with every key.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse

from discreet.audit.sliding import levels
from discreet.data.table import Floats, Ints, Table
from discreet.tables.methods._base import is_total, least_of, sensitive

__all__ = ["left_by_totals", "narrowing"]

#: For each cell the probability that its noise excludes a move by a given amount.
Excluding = Callable[[float], Floats]


def narrowing(table: Table, rise: Excluding, fall: Excluding) -> Floats:
    """Return for each sensitive cell the share of keys that exclude a value of its levels, at most.

    Parameters
    ----------
    table
        The true table with its sensitive cells and protection levels.
    rise, fall
        The probability, cell by cell, that what is printed of it excludes a value that much larger
        or smaller than the true one.
    """
    cells = np.flatnonzero(sensitive(table))
    found = np.zeros(len(table))
    if not cells.size:
        return found
    leaves, holds = _leaves(table)
    spare = table.value[leaves] - least_of(table)[leaves]
    below, above = (np.ceil(level - 1e-9) for level in levels(table))
    for level in np.unique(above[cells]):
        one = cells[above[cells] == level]
        found[one] += _cheapest(holds[one], holds.T @ _excluded(rise, level))
    for level in np.unique(below[cells]):
        one = cells[below[cells] == level]
        chance = holds.T @ _excluded(fall, level)
        found[one] += _cheapest(holds[one], np.where(spare >= level, chance, np.inf))
    return np.minimum(found, 1.0)


def left_by_totals(table: Table, slack: Floats) -> Floats:
    """Return for each sensitive cell how far it can move, either way, by what totals leave.

    `slack` says how far each cell can move by what is printed of it. Totals of the same records have
    the same noise and tell nothing new.
    """
    found = np.full(len(table), np.inf)
    leaves, holds = _leaves(table)
    held_by = sparse.csr_matrix(holds.T)
    # Cells of the same records hold the same leaves that are not empty.
    marks = np.random.default_rng(0).random(len(leaves)) * (table.value[leaves] != 0)
    same = holds @ marks
    for cell in np.flatnonzero(sensitive(table)).tolist():
        paths = held_by[holds.indices[holds.indptr[cell] : holds.indptr[cell + 1]]]
        on_path = paths.indices
        own = np.abs(same[on_path] - same[cell]) <= 1e-9 * max(same[cell], 1.0)
        room = np.where(own, np.inf, slack[on_path])
        found[cell] = np.minimum.reduceat(room, paths.indptr[:-1]).max()
    return found


def _excluded(excluding: Excluding, level: float) -> Floats:
    if level <= 0:
        return np.zeros_like(excluding(0.0))
    return excluding(level) if np.isfinite(level) else np.ones_like(excluding(0.0))


def _leaves(table: Table) -> tuple[Ints, sparse.csr_matrix]:
    """Return the cells that are no totals, and for every cell which of them it holds."""
    total = is_total(table)
    leaves = np.flatnonzero(~total)
    entries = table.equations.tocoo()
    # One equation tells the parts of a total; others tell the same leaves.
    parents = entries.col[entries.data > 0]
    first = np.full(len(table), -1)
    first[parents[::-1]] = entries.row[entries.data > 0][::-1]
    parent_of = np.full(table.equations.shape[0], -1)
    parent_of[first[first >= 0]] = np.flatnonzero(first >= 0)
    part = (entries.data < 0) & (parent_of[entries.row] >= 0)
    ones = np.ones(int(part.sum()))
    parts = sparse.csr_matrix(
        (ones, (parent_of[entries.row[part]], entries.col[part])), shape=(len(table),) * 2
    )
    step = sparse.csr_matrix(
        (np.ones(len(leaves)), (leaves, np.arange(len(leaves)))), shape=(len(table), len(leaves))
    )
    holds = step
    while (step := parts @ step).nnz:
        holds = holds + step
    return leaves, sparse.csr_matrix(holds)


def _cheapest(holds: sparse.csr_matrix, chance: Floats) -> Floats:
    """Return for each row the least chance among the leaves that it holds; one where there is none."""
    padded = np.append(chance[holds.indices], np.inf)
    least = np.minimum.reduceat(padded, np.minimum(holds.indptr[:-1], holds.nnz))
    return np.where(np.diff(holds.indptr) > 0, np.minimum(least, 1.0), 1.0)
