"""Linked tables: several tables that share cells, joined into one and taken apart again.

Two cells are the same when they have the same codes wherever they are not totals: the row total
of sector × region and that of sector × size are both "sector". Joined over all attributes, the
tables are one table again, with every equation of each, so that methods and the auditor treat
them together without knowing of links.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.data.hierarchy import Hierarchy
from discreet.data.table import Dimension, Ints, Table
from discreet.errors import InputError

__all__ = ["Linked", "link"]


@dataclasses.dataclass(frozen=True, eq=False)
class Linked:
    """Several tables as one."""

    table: Table
    #: For each table the place of each of its cells in the joint one.
    places: tuple[Ints, ...]
    tables: tuple[Table, ...]

    @property
    def shared(self) -> int:
        """How many cells stand in more than one table."""
        return int((np.bincount(np.concatenate(self.places)) > 1).sum())


def link(tables: Sequence[Table], *, tolerance: float = 1e-6) -> Linked:
    """Join tables that share cells; cells that are the same must have the same value.

    Examples
    --------
    >>> import pandas as pd
    >>> one = pd.DataFrame({"sector": ["Total", "IT", "Fin"], "value": [10.0, 7.0, 3.0]})
    >>> two = pd.DataFrame({"region": ["Total", "N", "S"], "value": [10.0, 4.0, 6.0]})
    >>> joint = link(
    ...     [
    ...         Table.from_cells(one, by=["sector"], value="value"),
    ...         Table.from_cells(two, by=["region"], value="value"),
    ...     ]
    ... )
    >>> joint.table, joint.shared
    (Table(5 cells over sector × region, 2 equations), 1)
    """
    if not tables:
        raise InputError("there is no table to link", code="no-tables")
    kinds = {(table.statistic, table.measure) for table in tables}
    if len(kinds) > 1:
        found = ", ".join(sorted(f"{s} of {m or 'records'}" for s, m in kinds))
        raise InputError(
            f"linked tables show the same thing, found {found}",
            code="linked-measures",
            hint="protect tables of different measures one by one",
        )
    names = list(dict.fromkeys(name for table in tables for name in table.by))
    dimensions = tuple(_join(name, tables) for name in names)
    codes = np.concatenate([_recode(table, dimensions) for table in tables])
    sizes = np.array([len(table) for table in tables])
    frame = Table(dimensions, codes, np.concatenate([table.value for table in tables]))
    _, first, inverse = np.unique(frame.keys, return_index=True, return_inverse=True)
    order = np.argsort(np.argsort(first))  # cells in order of first appearance
    place = order[inverse]
    first = np.sort(first)
    _require_consistent(frame, place, first, tolerance)
    joint = _merge(frame, tables, place, first)
    parts = np.split(place, np.cumsum(sizes)[:-1])
    return Linked(joint, tuple(parts), tuple(tables))


def _join(name: str, tables: Sequence[Table]) -> Dimension:
    """Return one dimension with the codes and the ways of adding up of all tables."""
    found = [d for table in tables for d in table.dimensions if d.name == name]
    roots = list(dict.fromkeys(d.total for d in found))
    inner = {code for d in found for code in d.codes[1:]}
    top = [root for root in roots if root not in inner]
    if len(top) != 1:
        raise InputError(
            f"linked tables need one total of {name!r}, found "
            + (", ".join(repr(root) for root in top) or "none"),
            code="linked-totals",
            hint="name the total alike in every table, or make one a part of the other",
            column=name,
        )
    codes = list(dict.fromkeys([top[0], *(code for d in found for code in d.codes)]))
    index = {code: place for place, code in enumerate(codes)}
    rows: list[npt.NDArray[np.int32]] = []
    hierarchies: list[Hierarchy] = []
    for d in found:
        moved = np.array([index[code] for code in d.codes], dtype=np.int32)
        for parents in d.parents:
            row = np.full(len(codes), -1, dtype=np.int32)
            has = parents >= 0
            row[moved[has]] = moved[parents[has]]
            if not any(_implies(other, row) for other in rows):
                rows = [other for other in rows if not _implies(row, other)] + [row]
        hierarchies += [h for h in d.hierarchies if h not in hierarchies]
    return Dimension(name, tuple(codes), np.stack(rows), tuple(hierarchies))


def _implies(one: npt.NDArray[np.int32], other: npt.NDArray[np.int32]) -> bool:
    """Whether every sum of the second way of adding up is a sum of the first."""
    used = np.unique(other[other >= 0])
    return all(np.array_equal(one == parent, other == parent) for parent in used)


def _recode(table: Table, dimensions: Sequence[Dimension]) -> npt.NDArray[np.int32]:
    columns = []
    for dimension in dimensions:
        if dimension.name not in table.by:
            columns.append(np.zeros(len(table), dtype=np.int32))
            continue
        place = table.by.index(dimension.name)
        own = table.dimensions[place]
        moved = np.array([dimension.index[code] for code in own.codes], dtype=np.int32)
        columns.append(moved[table.codes[:, place]])
    return np.stack(columns, axis=1)


def _require_consistent(frame: Table, place: Ints, first: Ints, tolerance: float) -> None:
    value = frame.value[first][place]
    gap = np.abs(frame.value - value)
    wrong = np.flatnonzero(gap > tolerance * np.maximum(1.0, np.abs(value)))
    if wrong.size:
        names = [" × ".join(frame.labels(int(cell))) for cell in wrong[:5]]
        raise InputError(
            f"{wrong.size} cells that stand in several tables differ, such as " + "; ".join(names),
            code="linked-inconsistent",
            hint="compute the tables from the same records",
            cells=names,
        )


def _merge(frame: Table, tables: Sequence[Table], place: Ints, first: Ints) -> Table:
    size = len(first)

    def greatest(name: str) -> npt.NDArray[np.float64] | None:
        arrays = [getattr(table, name) for table in tables]
        if all(array is None for array in arrays):
            return None
        joined = np.zeros(size)
        start = 0
        for table, array in zip(tables, arrays, strict=True):
            if array is not None:
                np.maximum.at(joined, place[start : start + len(table)], array)
            start += len(table)
        return joined

    count, status = greatest("count"), greatest("status")
    changes = {
        name: greatest(name) for name in ("lower", "upper", "cost", "magnitude", "requested")
    }
    contributions = _stack([t.contributions for t in tables], first)
    contributors = _stack(_told_apart(tables), first)
    return Table(
        frame.dimensions,
        frame.codes[first],
        frame.value[first],
        count=None if count is None else count.astype(np.int64),
        status=None if status is None else status.astype(np.int8),
        contributions=contributions,
        contributors=contributors,
        statistic=tables[0].statistic,
        measure=tables[0].measure,
        **changes,
    )


def _stack(arrays: Sequence[Any], first: Ints) -> Any:
    """Return the largest contributions of the distinct cells, as far as every table knows them.

    Any: amounts or units.
    """
    known = [array for array in arrays if array is not None and array.shape[1] > 0]
    if len(known) < len(arrays):
        return None  # what one table does not know of a cell is not made up
    width = min(array.shape[1] for array in known)
    return np.concatenate([array[:, :width] for array in known])[first]


def _told_apart(tables: Sequence[Table]) -> list[Ints | None]:
    """Return the contributors of each table, numbered so that no two tables use one number.

    Numbers mean something within their own table only.
    """
    numbered: list[Ints | None] = []
    start = 0
    for table in tables:
        units = table.contributors
        if units is None:
            numbered.append(None)
            continue
        numbered.append(np.where(units >= 0, units + start, -1))
        start += int(units.max(initial=0)) + 1
    return numbered
