"""Dependent rounding written out with lists: short, slow, and equal to the compiled kernel."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

NEAR = 1e-6
#: A fraction, by its row and column.
Edge = tuple[int, int]


def rounded(matrix: npt.NDArray[np.float64], lots: Iterator[float]) -> list[list[int]]:
    """Round one block: each entry to its floor or ceiling, by one lot for each cycle or path."""
    part = {
        (row, column): value - math.floor(value + NEAR)
        for (row, column), value in np.ndenumerate(matrix)
    }
    rows: list[list[Edge]] = [[] for _ in range(matrix.shape[0])]
    columns: list[list[Edge]] = [[] for _ in range(matrix.shape[1])]
    for edge, value in part.items():
        if NEAR < value < 1 - NEAR:
            rows[edge[0]].append(edge)
            columns[edge[1]].append(edge)
    for start in range(len(rows)):
        while rows[start]:
            path, closed = _walk(start, rows, columns)
            if not closed:  # rounding errors left a single fraction next to a whole number
                part[path[-1]] = float(part[path[-1]] >= 0.5)
                _settle(path[-1], rows, columns)
                continue
            _shift(path, part, next(lots))
            for edge in path:
                if not NEAR < part[edge] < 1 - NEAR:
                    _settle(edge, rows, columns)
    return [
        [math.floor(value + NEAR) + round(part[row, column]) for column, value in enumerate(line)]
        for row, line in enumerate(matrix.tolist())
    ]


def _walk(start: int, rows: list[list[Edge]], columns: list[list[Edge]]) -> tuple[list[Edge], bool]:
    """Follow fractions from a row to a column and on, until a line is met again or a row ends."""
    at_end = len(rows[start]) == 1
    row, came, path = start, None, list[Edge]()
    seen: dict[tuple[str, int], int] = {}
    while True:
        seen["row", row] = len(path)
        going = next((edge for edge in rows[row][:2] if edge != came), None)
        if going is None:
            if at_end:
                return path, True
            came, path, seen, at_end = None, [], {}, True  # walk back from this end
            continue
        path.append(going)
        if ("column", going[1]) in seen:
            return path[seen["column", going[1]] :], True
        back = next((edge for edge in columns[going[1]][:2] if edge != going), None)
        if back is None:
            return path, False
        seen["column", going[1]] = len(path)
        path.append(back)
        row, came = back[0], back
        if ("row", row) in seen:
            return path[seen["row", row] :], True


def _shift(path: list[Edge], part: dict[Edge, float], lot: float) -> None:
    """Move mass along a path, up and down in turns, until one of its fractions is whole."""
    up, down = path[0::2], path[1::2]
    rise = min([1 - part[edge] for edge in up] + [part[edge] for edge in down])
    fall = min([part[edge] for edge in up] + [1 - part[edge] for edge in down])
    shift = rise if lot * (rise + fall) < fall else -fall
    for edge in up:
        part[edge] += shift
    for edge in down:
        part[edge] -= shift


def _settle(edge: Edge, rows: list[list[Edge]], columns: list[list[Edge]]) -> None:
    """Take a whole entry out of the fractions; the last one of each list takes its place."""
    for line in (rows[edge[0]], columns[edge[1]]):
        line[line.index(edge)] = line[-1]
        line.pop()
