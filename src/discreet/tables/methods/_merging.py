"""Merging two categories of a table without going back to the records."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from discreet.data.hierarchy import Hierarchy
from discreet.data.table import Dimension, Table

__all__ = ["Merge", "candidates", "codes_after", "merge"]

#: So many categories with most sensitive cells are tried in each step.
_TRIED = 6


@dataclasses.dataclass(frozen=True)
class Merge:
    """Two sibling categories of one attribute; or all children of one code, where `second` is None."""

    dimension: int
    first: int
    second: int | None


def candidates(table: Table, keep: Sequence[str] = ()) -> list[Merge]:
    """Return merges worth trying: categories with most sensitive cells, with a sibling each."""
    marked = np.zeros(len(table)) if table.status is None else (table.status == 2).astype(float)
    found: list[Merge] = []
    for place, dimension in enumerate(table.dimensions):
        if dimension.name in keep or len(dimension.hierarchies) != 1 or len(dimension.codes) < 3:
            continue
        parents = dimension.parents[0]
        number = np.bincount(table.codes[:, place], marked, minlength=len(dimension.codes))
        weight = np.bincount(
            table.codes[:, place],
            np.abs(table.value) if table.count is None else table.count,
            minlength=len(dimension.codes),
        )
        leaves = np.flatnonzero(dimension.is_leaf & (number > 0))
        for code in leaves[np.argsort(-number[leaves], kind="stable")][:_TRIED]:
            siblings = np.flatnonzero(parents == parents[code])
            if not dimension.is_leaf[siblings].all():
                continue  # their branches are merged first
            if len(siblings) <= 2:
                found.append(Merge(place, int(parents[code]), None))
                continue
            at = int(np.flatnonzero(siblings == code)[0])
            near = [siblings[i] for i in (at - 1, at + 1) if 0 <= i < len(siblings)]
            small = siblings[siblings != code]
            near.append(small[np.argmin(weight[small])])
            found += [Merge(place, int(code), int(other)) for other in dict.fromkeys(near)]
    return list(dict.fromkeys(found))


def merge(table: Table, step: Merge) -> Table:
    """Return the table with two categories added up into one, or a branch cut off below a code."""
    dimension = table.dimensions[step.dimension]
    pairs = dimension.hierarchies[0].pairs()
    codes = list(dimension.codes)
    if step.second is None:
        above = codes[step.first]
        gone = {child for child, parent in pairs if parent == above}
        smaller = [(child, parent) for child, parent in pairs if child not in gone]
        kept = ~np.isin(
            table.codes[:, step.dimension], [place for place, c in enumerate(codes) if c in gone]
        )
        names = {code: code for code in codes if code not in gone}
    else:
        one, two = sorted((step.first, step.second))
        name = f"{codes[one]} + {codes[two]}"
        parent = dict(pairs)[codes[one]]
        smaller = [pair for pair in pairs if pair[0] not in (codes[one], codes[two])]
        smaller.append((name, parent))
        kept = np.ones(len(table), dtype=bool)
        names = {code: code for code in codes} | {codes[one]: name, codes[two]: name}
    new = Dimension.of(dimension.name, Hierarchy.from_pairs(smaller))
    moved = np.array([new.index[names[c]] if c in names else -1 for c in codes], dtype=np.int32)
    places = table.codes[kept].copy()
    places[:, step.dimension] = moved[places[:, step.dimension]]
    dimensions = list(table.dimensions)
    dimensions[step.dimension] = new
    return _added(table, np.flatnonzero(kept), tuple(dimensions), places)


def _added(
    table: Table,
    rows: npt.NDArray[np.int64],
    dimensions: tuple[Dimension, ...],
    places: npt.NDArray[np.int32],
) -> Table:
    frame = Table(dimensions, places, table.value[rows])
    keys, first, cell = np.unique(frame.keys, return_index=True, return_inverse=True)
    size = len(keys)
    cell = cell.ravel()

    def added(array: npt.NDArray[np.float64] | None) -> npt.NDArray[np.float64] | None:
        return None if array is None else total(array)

    def total(array: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return np.bincount(cell, array[rows], minlength=size).astype(np.float64)

    count = added(None if table.count is None else table.count.astype(np.float64))
    return Table(
        dimensions,
        places[first],
        total(table.value),
        count=None if count is None else np.round(count).astype(np.int64),
        contributions=_largest(table.contributions, rows, cell, size),
        cost=added(table.cost),
        magnitude=added(table.magnitude),
        requested=_largest_asked(table.requested, rows, cell, size),
        statistic=table.statistic,
        measure=table.measure,
        confidential=table.confidential,
    )


def _largest_asked(
    requested: npt.NDArray[np.float64] | None,
    rows: npt.NDArray[np.int64],
    cell: npt.NDArray[np.int64],
    size: int,
) -> npt.NDArray[np.float64] | None:
    """Return the largest contribution of cells added up among those who asked for protection."""
    if requested is None:
        return None
    largest = np.zeros(size)
    np.maximum.at(largest, cell, np.abs(requested[rows]))
    return largest


def _largest(
    contributions: npt.NDArray[np.float64] | None,
    rows: npt.NDArray[np.int64],
    cell: npt.NDArray[np.int64],
    size: int,
) -> npt.NDArray[np.float64] | None:
    """Return the largest contributions of cells added up: the largest of all of theirs."""
    if contributions is None:
        return None
    width = contributions.shape[1]
    amount = contributions[rows].ravel()
    owner = np.repeat(cell, width)
    order = np.lexsort((-np.abs(amount), owner))
    owner, amount = owner[order], amount[order]
    start = np.searchsorted(owner, np.arange(size))
    rank = np.arange(len(owner)) - start[owner]
    kept = rank < width
    largest = np.zeros((size, width))
    largest[owner[kept], rank[kept]] = amount[kept]
    return largest


def _parts(code: str, before: Dimension) -> list[str]:
    """Return the codes that were merged into one; their own names may hold a plus, too.

    >>> _parts("f + m + m/f + x", Dimension.of("sex", Hierarchy.flat(["f", "f + m", "m/f", "x"])))
    ['f + m', 'm/f', 'x']
    """
    words, found = code.split(" + "), []
    while words:
        for size in range(len(words), 0, -1):
            name = " + ".join(words[:size])
            if name in before.index or size == 1:
                found.append(name)
                words = words[size:]
                break
    return found


def codes_after(before: Dimension, after: Dimension) -> dict[str, str]:
    """Return what has become of each single code: itself, the merged one it is in, or a total."""
    merged = [code for code in after.codes if code not in before.index]
    inside = {part: code for code in merged for part in _parts(code, before)}
    result = {}
    for code in (before.codes[place] for place in np.flatnonzero(before.is_leaf)):
        chain = before.hierarchies[0].ancestors(code)
        result[code] = next(
            found for up in chain if (found := up if up in after.index else inside.get(up))
        )
    return result
