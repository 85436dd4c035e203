"""The small tables that the literature explains disclosure with, cell by cell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from discreet.data.hierarchy import Hierarchy
from discreet.data.table import Dimension, Status, Table

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["castro_frequencies", "castro_magnitudes", "feasibility_example", "salaries_arrow"]

_SALARIES = (500, 320, 32, 35, 34, 28, 300, 45, 34, 45, 34, 24, 300, 35, 150)
_SECTORS = ("IT",) * 6 + ("HC",) * 6 + ("Fin",) * 3
_REGIONS = ("BCN",) * 3 + ("TGN",) * 3 + ("BCN",) * 3 + ("TGN",) * 3 + ("BCN",) * 2 + ("TGN",)

_FREQUENCIES = ((2, 15, 30, 20, 10), (72, 20, 1, 30, 10), (38, 38, 15, 40, 5))
_MAGNITUDES = ((360, 450, 720, 400, 360), (1440, 540, 22, 570, 320), (722, 1178, 375, 800, 363))


def salaries_arrow() -> pa.Table:
    """Return fifteen persons with sector, region and salary, as an Arrow table.

    >>> sum(salaries_arrow()["salary"].to_pylist())
    1916000
    """
    import pyarrow as pa

    return pa.table(
        {
            "id": list(range(1, 16)),
            "salary": [1000 * salary for salary in _SALARIES],
            "sector": list(_SECTORS),
            "region": list(_REGIONS),
        }
    )


def castro_frequencies() -> Table:
    """Return the numbers of persons by town and profession (Castro 2012): one is alone.

    >>> table = castro_frequencies()
    >>> table.value[table.cell("M2", "P3")], table.value[table.cell("Total", "Total")]
    (np.float64(1.0), np.float64(346.0))
    """
    return _two_way(
        "town",
        [f"M{i}" for i in range(1, 4)],
        "profession",
        [f"P{i}" for i in range(1, 6)],
        np.array(_FREQUENCIES, dtype=np.float64),
        statistic="count",
    )


def castro_magnitudes() -> Table:
    """Return the salaries of the same persons, with the two largest contributions where printed.

    The text prints the contributions of two cells only: the single person of (M2, P3), and 350, 4,
    3, 3, 3 in (M3, P5). Elsewhere persons of a cell are taken to earn alike.

    >>> table = castro_magnitudes()
    >>> table.contributions[table.cell("M3", "P5")].tolist()
    [350.0, 4.0]
    """
    values = np.array(_MAGNITUDES, dtype=np.float64)
    counts = np.array(_FREQUENCIES, dtype=np.float64)
    largest = np.stack([values / counts, np.where(counts > 1, values / counts, 0.0)], axis=2)
    largest[2, 4] = (350, 4)
    table = _two_way(
        "town",
        [f"M{i}" for i in range(1, 4)],
        "profession",
        [f"P{i}" for i in range(1, 6)],
        values,
        counts=counts,
        statistic="sum",
    )
    return table.replace(contributions=_totals_of_largest(largest))


def feasibility_example() -> Table:
    """Return the table in which X11 can be bounded to [3, 6]: rows 7, 3, 6; columns 9, 7, 16.

    The four hidden cells carry the status primary and one of the fillings that the totals allow.

    >>> table = feasibility_example()
    >>> [table.labels(i) for i in range(len(table)) if table.status[i] == Status.PRIMARY]
    [('1', '1'), ('1', '2'), ('2', '1'), ('2', '2')]
    """
    values = np.array([[5, 2], [1, 2], [3, 3]], dtype=np.float64)
    table = _two_way("row", ["1", "2", "3"], "column", ["1", "2"], values, statistic="count")
    hidden = (table.codes != 0).all(axis=1) & (table.codes[:, 0] < 3)
    status = np.where(hidden, np.int8(Status.PRIMARY), np.int8(Status.SAFE))
    return table.replace(status=status)


def _with_totals(values: np.ndarray) -> np.ndarray:
    """Return an array with sums put before its first row and column."""
    rows = np.concatenate([values.sum(axis=0, keepdims=True), values])
    return np.concatenate([rows.sum(axis=1, keepdims=True), rows], axis=1)


def _totals_of_largest(largest: np.ndarray) -> np.ndarray:
    """Return the two largest contributions of every cell, those of totals found in their parts."""
    full = np.zeros((largest.shape[0] + 1, largest.shape[1] + 1, 2))
    full[1:, 1:] = largest
    for row in range(1, full.shape[0]):
        full[row, 0] = np.sort(largest[row - 1].ravel())[::-1][:2]
    for column in range(1, full.shape[1]):
        full[0, column] = np.sort(largest[:, column - 1].ravel())[::-1][:2]
    full[0, 0] = np.sort(largest.ravel())[::-1][:2]
    return full.reshape(-1, 2)


def _two_way(
    row: str,
    rows: list[str],
    column: str,
    columns: list[str],
    values: np.ndarray,
    *,
    counts: np.ndarray | None = None,
    statistic: str,
) -> Table:
    full = _with_totals(values)
    numbers = _with_totals(values if counts is None else counts)
    grid = np.indices(full.shape).reshape(2, -1).T.astype(np.int32)
    return Table(
        dimensions=(
            Dimension.of(row, Hierarchy.flat(rows)),
            Dimension.of(column, Hierarchy.flat(columns)),
        ),
        codes=grid,
        value=full.ravel(),
        count=numbers.ravel().astype(np.int64),
        statistic=statistic,
    )
