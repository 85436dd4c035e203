"""Arithmetic on cells: totals and largest contributions from the cells of single values."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discreet.data.engines.cell_codes import ancestors, radix
from discreet.data.engines.cell_queries import Demand
from discreet.data.table import Dimension
from discreet.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "Cells",
    "Numbers",
    "contributors_only",
    "finished",
    "grouped",
    "joined",
    "read_cells",
    "with_totals",
]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True, eq=False)
class Cells:
    """Cells as arrays: places of the codes, what adds up, and the largest contributions."""

    places: Ints
    #: Columns that add up over cells: count, and where asked for units, weight, sum, squares.
    added: dict[str, npt.NDArray[Any]]
    amounts: Floats
    units: Ints

    def take(self, index: Ints) -> Cells:
        """Return some of the cells, possibly several times."""
        added = {name: values[index] for name, values in self.added.items()}
        return Cells(self.places[index], added, self.amounts[index], self.units[index])


class Numbers:
    """Numbers for units: the same unit gets the same number, and the number says nothing else."""

    def __init__(self) -> None:
        self.of: dict[Any, int] = {}

    def __call__(self, values: pa.ChunkedArray) -> Ints:
        """Return a number for each value, in the order in which they are first met."""
        of, encoded = self.of, values.combine_chunks().dictionary_encode()
        known = [of.setdefault(unit, len(of)) for unit in encoded.dictionary.to_pylist()]
        numbers: Ints = np.array(known, dtype=np.int64)[encoded.indices.to_numpy()]
        return numbers


def read_cells(demand: Demand, rows: pa.Table, places: Ints, numbers: Numbers) -> Cells:
    """Return the engine's rows as arrays."""
    import pyarrow as pa

    # Engines give cells in any order; numbers for units follow the order of the codes.
    order = np.lexsort(places.T[::-1]) if places.shape[1] else np.arange(len(places))
    rows, places = rows.take(pa.array(order)), places[order]
    added: dict[str, npt.NDArray[Any]] = {}
    wanted = {"n": "count", "units": "units", "w": "weight", "s": "sum", "q": "sum_squares"}
    for column, name in wanted.items():
        if column in rows.column_names:
            kind = pa.int64() if name in ("count", "units") else pa.float64()
            added[name] = rows.column(column).cast(kind).fill_null(0).to_numpy()
    if "known" in rows.column_names:
        known = rows.column("known").cast(pa.int64()).to_numpy()
        if (known < added["units"]).any():
            raise InputError(
                f"column {demand.unit!r} has missing values, so contributors cannot be told apart",
                code="missing-unit",
                column=demand.unit,
            )
    for name, owner in (
        ("sum", demand.measure),
        ("sum_squares", demand.measure),
        ("weight", demand.weight),
    ):
        if name in added and not np.isfinite(added[name]).all():
            raise InputError(
                f"column {owner!r} holds infinite values or not-a-number",
                code="not-finite",
                hint="correct the data or make them missing",
                column=owner,
            )
    size = rows.num_rows
    amounts, units = np.zeros((size, demand.tops)), np.full((size, demand.tops), -1, np.int64)
    for rank in range(demand.tops):
        column = rows.column(f"c{rank + 1}").cast(pa.float64())
        there = column.is_valid().to_numpy()
        amounts[:, rank] = column.fill_null(0.0).to_numpy()
        if "u" in demand.listed:
            found = rows.column(f"u{rank + 1}").filter(pa.array(there))
            units[there, rank] = numbers(found)
        elif demand.identify:  # every record is a unit of its own and lies in one cell
            units[there, rank] = np.flatnonzero(there) * demand.tops + rank
    return Cells(places, added, amounts, units)


def contributors_only(cells: Cells) -> Cells:
    """Return the cells with what adds up set to nothing, except the number of units."""
    added = {
        name: values if name == "units" else np.zeros_like(values)
        for name, values in cells.added.items()
    }
    return dataclasses.replace(cells, added=added)


def joined(first: Cells, second: Cells) -> Cells:
    """Return the cells of both, those they share twice."""

    def both(name: str) -> npt.NDArray[Any]:
        there = first.added[name]
        other = second.added.get(name)
        if other is None:
            other = np.zeros(len(second.places), dtype=there.dtype)
        return np.concatenate([there, other])

    return Cells(
        np.concatenate([first.places, second.places]),
        {name: both(name) for name in first.added},
        np.concatenate([first.amounts, second.amounts]),
        np.concatenate([first.units, second.units]),
    )


def with_totals(demand: Demand, dimensions: Sequence[Dimension], cells: Cells) -> Cells:
    """Return the cells with all their totals, one attribute after the other."""
    cells = grouped(dimensions, cells, demand.tops)
    if not demand.margins:
        return cells
    for place, dimension in enumerate(dimensions):
        start, above = ancestors(dimension)
        codes = cells.places[:, place]
        counts = (start[1:] - start[:-1])[codes]
        repeat = np.repeat(np.arange(len(codes)), counts)
        # Position within each run of repeats: 0, 1, … counts−1.
        within = np.arange(len(repeat)) - np.repeat(np.cumsum(counts) - counts, counts)
        grown = cells.take(repeat)
        grown.places[:, place] = above[start[codes][repeat] + within]
        cells = grouped(dimensions, grown, demand.tops)
    return cells


def grouped(dimensions: Sequence[Dimension], cells: Cells, tops: int) -> Cells:
    """Return one cell per combination of codes: sums added, largest contributions merged."""
    sizes = [len(dimension.codes) for dimension in dimensions]
    if float(np.prod(np.array(sizes, dtype=np.float64))) >= 2.0**62:
        raise InputError(
            "the table has more than 2**62 combinations of codes",
            code="table-too-large",
            hint="cross fewer attributes",
        )
    key = np.zeros(len(cells.places), dtype=np.int64)
    for place in range(len(sizes)):
        key += cells.places[:, place] * radix(dimensions, place)
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    first = (
        np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])) if len(key) else order
    )
    if len(first) == len(key):
        return cells.take(order)
    added = {name: np.add.reduceat(values[order], first) for name, values in cells.added.items()}
    group = np.empty(len(key), dtype=np.int64)
    group[order] = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(key))))
    amounts, units = _merged(cells, group, len(first), tops)
    return Cells(cells.places[order[first]], added, amounts, units)


def _merged(cells: Cells, group: Ints, size: int, tops: int) -> tuple[Floats, Ints]:
    """Return the largest of the largest contributions in each group."""
    amounts, units = np.zeros((size, tops)), np.full((size, tops), -1, dtype=np.int64)
    if tops == 0:
        return amounts, units
    amount, unit = cells.amounts.ravel(), cells.units.ravel()
    owner = np.repeat(group, tops)
    there = np.flatnonzero((amount != 0) | (unit >= 0))
    # Ties go to the positive amount, then to the unit's number, so that a run repeats itself.
    held = amount[there]
    order = there[np.lexsort((unit[there], -held, -np.abs(held), owner[there]))]
    owner = owner[order]
    begins = (
        np.flatnonzero(np.concatenate([[True], owner[1:] != owner[:-1]])) if len(owner) else order
    )
    lengths = np.diff(np.append(begins, len(owner)))
    rank = np.arange(len(owner)) - np.repeat(begins, lengths)
    kept = rank < tops
    amounts[owner[kept], rank[kept]] = amount[order[kept]]
    units[owner[kept], rank[kept]] = unit[order[kept]]
    return amounts, units


def finished(demand: Demand, dimensions: Sequence[Dimension], cells: Cells) -> pa.Table:
    """Return the cells as an Arrow table, in the order of the codes."""
    import pyarrow as pa

    columns: dict[str, Any] = {}
    for place, dimension in enumerate(dimensions):
        codes = pa.DictionaryArray.from_arrays(
            pa.array(cells.places[:, place], pa.int32()), pa.array(dimension.codes, pa.string())
        )
        columns[dimension.name] = codes.cast(pa.string())
    added = cells.added
    if demand.measure is None:
        added = {name: v for name, v in added.items() if name in ("count", "units", "weight")}
    arrays = [*columns.values(), *(pa.array(values) for values in added.values())]
    names = [*columns, *added]
    for rank in range(demand.tops):
        arrays.append(pa.array(cells.amounts[:, rank]))
        names.append(f"top_{rank + 1}")
        if demand.identify:
            arrays.append(pa.array(cells.units[:, rank]))
            names.append(f"unit_{rank + 1}")
    return pa.Table.from_arrays(arrays, names=names)
