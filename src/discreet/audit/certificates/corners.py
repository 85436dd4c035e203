"""Certificates without programs: corners, for tables of hundreds of thousands of cells.

A deviation along one attribute that leaves its hierarchy in balance (up at one code, down at a
sibling, each carried down to a leaf) can be crossed with one along every other attribute; the
product of their signs leaves the whole table in balance. A corner is such a product around a
sensitive cell, all of whose cells are withheld and have room. Corners are chosen so that few cells
have to be withheld that are not already; what finds no corner is left to linear programs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from discreet.audit.certificates.collection import Certificates
from discreet.audit.knowledge import Contributors
from discreet.data.table import Dimension, Table
from discreet.progress import Progress, silent

__all__ = ["Corners", "corners"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

#: Demands between two reports of progress, and cells of certificates that the log holds meanwhile.
_LOG = 4096, 1 << 20


@dataclasses.dataclass(frozen=True, eq=False)
class Corners:
    """What corners have come to: cells to withhold, demands met, and the certificates."""

    withheld: Bools
    met: Bools
    certificates: Certificates


def corners(
    table: Table,
    demands: tuple[Ints, Floats],
    room: tuple[Floats, Floats],
    *,
    withheld: Bools,
    live: Bools,
    price: Floats,
    free: Floats,
    knowledge: Contributors | None = None,
    progress: Progress = silent,
    log: tuple[int, int] = _LOG,
) -> Corners | None:
    """Meet demands by corners; none where an attribute has several hierarchies.

    Parameters
    ----------
    demands
        Cells, and how far each must be able to move (negative: down).
    room
        How far each cell may fall and rise.
    withheld, live
        Cells that are withheld anyway, and cells that are or may be.
    price, free
        What withholding each cell costs, and what using it costs where it is withheld.
    log
        Demands met between two reports of progress, and cells kept meanwhile (over 8,192).
    """
    if any(len(dimension.parents) != 1 for dimension in table.dimensions):
        return None
    from discreet.audit.certificates import _corner_kernels as kernels

    target, amount = demands
    sizes = [len(dimension.codes) for dimension in table.dimensions]
    radix = np.cumprod([1, *sizes[:0:-1]])[::-1].astype(np.int64)
    withheld = withheld.copy()
    rate = np.where(withheld, free, price)
    by_direction = [np.full(len(table), -1, dtype=np.int64) for _ in range(2)]
    for side, chosen in zip(by_direction, (amount > 0, amount < 0), strict=True):
        side[target[chosen]] = np.flatnonzero(chosen)
    order = np.argsort(-np.abs(amount), kind="stable")
    met = np.zeros(len(order), dtype=bool)
    same, owner, known = _knowledge(knowledge, len(table))
    arguments = (
        *(target, amount, met, *by_direction),
        *(table.codes.astype(np.int64), _trees(table.dimensions), radix),
        kernels.hashed(table.keys),
        *(withheld, free, (*room, rate, live, same), owner, known),
    )
    chunk, cells = log
    kept = np.zeros(chunk + 2, np.int64), np.zeros(cells, np.int64), np.zeros(cells)
    found = Certificates.of([])
    logs, done = [found], 0
    while done < len(order):
        progress("protecting", done, len(order))
        stop = min(done + chunk, len(order))
        done, count, used = kernels.protect(order, done, stop, *arguments, *kept)
        start = np.append(kept[0][:count], used)
        logs.append(Certificates(start, kept[1][:used].copy(), kept[2][:used].copy()))
    return Corners(withheld, met, Certificates.joined(logs))


def _trees(dimensions: Sequence[Dimension]) -> tuple[Ints, ...]:
    """Return the trees of all attributes in arrays of one row each, filled up with −1."""
    trees = [_tree(dimension) for dimension in dimensions]
    width = max(len(dimension.codes) for dimension in dimensions)
    filled = tuple(np.full((len(trees), width), -1, dtype=np.int64) for _ in range(4))
    for row, tree in enumerate(trees):
        for whole, part in zip(filled, tree, strict=True):
            whole[row, : len(part)] = part
    return filled


def _tree(dimension: Dimension) -> tuple[Ints, Ints, Ints, Ints]:
    """Return parents, and the leaves below each code as a range of a list of leaves."""
    parent = dimension.parents[0].astype(np.int64)
    below: list[list[int]] = [[] for _ in parent]
    for code, above in enumerate(parent.tolist()):
        if above >= 0:
            below[above].append(code)
    low, high = np.zeros(len(parent), np.int64), np.zeros(len(parent), np.int64)
    leaves: list[int] = []
    stack = [(int(root), False) for root in np.flatnonzero(parent < 0)]
    while stack:
        code, seen = stack.pop()
        if seen:
            high[code] = len(leaves)
            continue
        low[code] = len(leaves)
        stack.append((code, True))
        if not below[code]:
            leaves.append(code)
        stack.extend((child, False) for child in reversed(below[code]))
    return parent, low, high, np.array(leaves, dtype=np.int64)


def _knowledge(
    known: Contributors | None, size: int
) -> tuple[Ints, Ints, tuple[Ints, Ints, Floats, Bools]]:
    """Return equal cells, owners, and what attackers know of each cell, as arrays."""
    if known is None:
        nothing = np.zeros(0, np.int64), np.zeros(0), np.zeros(0, dtype=bool)
        return np.arange(size), np.full(size, -1), (np.zeros(size + 1, np.int64), *nothing)
    order = np.argsort(known.cell, kind="stable")
    starts = np.searchsorted(known.cell[order], np.arange(size + 1)).astype(np.int64)
    entries = (known.who[order].astype(np.int64), known.fall[order], known.sole[order])
    return known.same.astype(np.int64), known.owner.astype(np.int64), (starts, *entries)
