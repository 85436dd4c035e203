"""How much the contributors of a cell give in all, where some of them give less than nothing.

Gains and losses of one contributor cancel out in a cell before rules look at it: what it gives there is
their sum. Adding up the sizes of its records instead would make the cell look larger, and one or two
contributors in it less dominant than they are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from discreet.data.table import Dimension, Floats, Ints, Table

__all__ = ["magnitudes"]


def magnitudes(
    table: Table, amounts: Floats, contributors: Sequence[str], codes: Sequence[Sequence[str]]
) -> Floats:
    """Return for each cell the sizes of its contributors' sums, added up.

    `amounts`, `contributors` and, per attribute, `codes` have one entry per record.
    """
    _, unit = np.unique(np.array(contributors, dtype=object), return_inverse=True)
    record, keys = _memberships(table, codes)
    known = table.find(keys)
    record, cell = record[known >= 0], known[known >= 0]
    pairs, place = np.unique(
        cell * (int(unit.max(initial=0)) + 1) + unit[record], return_inverse=True
    )
    given = np.bincount(place, weights=amounts[record], minlength=len(pairs))
    cells = pairs // (int(unit.max(initial=0)) + 1)
    size = np.bincount(cells, weights=np.abs(given), minlength=len(table))
    total = np.bincount(cells, weights=given, minlength=len(table))
    # Codes that an engine writes otherwise than Python would be missed: then the least there can be.
    return np.where(np.isclose(total, table.value, rtol=1e-9, atol=1e-9), size, _least(table))


def _memberships(table: Table, codes: Sequence[Sequence[str]]) -> tuple[Ints, Ints]:
    """Return pairs of a record and the key of a cell that it counts into."""
    record = np.arange(len(codes[0]), dtype=np.int64)
    keys = np.zeros(len(record), dtype=np.int64)
    for column, dimension in zip(codes, table.dimensions, strict=True):
        own = np.array([dimension.index.get(code, -1) for code in column], dtype=np.int64)
        above = _ancestors(dimension)
        here = own[record]
        record, keys, here = record[here >= 0], keys[here >= 0], here[here >= 0]
        number = np.array([len(above[code]) for code in here.tolist()], dtype=np.int64)
        record = np.repeat(record, number)
        joined = [above[code] for code in here.tolist()]
        reached = np.concatenate(joined) if joined else np.zeros(0, dtype=np.int64)
        keys = np.repeat(keys, number) * len(dimension.codes) + reached
    return record, keys


def _ancestors(dimension: Dimension) -> Sequence[Ints]:
    """Return each code with everything above it, in any hierarchy."""
    found = []
    for code in range(len(dimension.codes)):
        reached, queue = {code}, [code]
        while queue:
            below = queue.pop()
            for parents in dimension.parents:
                parent = int(parents[below])
                if parent >= 0 and parent not in reached:
                    reached.add(parent)
                    queue.append(parent)
        found.append(np.array(sorted(reached), dtype=np.int64))
    return found


def _least(table: Table) -> Floats:
    """Return the least that the sizes of contributions can add up to, by the largest of them."""
    if table.contributions is None:
        return np.abs(table.value)
    rest = table.value - table.contributions.sum(axis=1)
    return np.asarray(np.abs(table.contributions).sum(axis=1) + np.abs(rest))
