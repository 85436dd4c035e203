"""Dependent rounding of matrices with whole column sums.

Every entry goes to its floor or ceiling, column sums stay, row sums go to their floor or ceiling,
and the mean over all draws is the matrix that was given (Gandhi, Khuller, Parthasarathy and
Srinivasan 2006). Fractions are edges between rows and columns: along a cycle, or a path between two
rows with one fraction left, mass is shifted until an entry is whole, in a direction drawn so that
nothing changes on average.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.compiling import Array, inner, kernel

__all__ = ["round_blocks"]

#: Fractions closer than this to a whole number count as whole.
_NEAR = 1e-6


@inner
def _drop(entry: int, lists: Array, counts: Array, places: Array, line: int, base: int) -> None:
    """Take an entry out of the list of fractions of its line."""
    last = counts[line] - 1
    at = places[entry]
    other = lists[base + last]
    lists[base + at] = other
    places[other] = at
    counts[line] = last


@inner
def _other(lists: Array, counts: Array, line: int, base: int, entry: int) -> int:
    """Return a fraction of a line that is not the given one, or −1."""
    if counts[line] == 0:
        return -1
    first = lists[base]
    if first != entry:
        return int(first)
    return int(lists[base + 1]) if counts[line] > 1 else -1


@inner
def _round_block(part: Array, up: Array, rows: int, columns: int, lots: Array, used: int) -> int:
    """Round the fractions of one block, row by row in `part`; return how many lots are used.

    `up` gets 1 where an entry goes to its ceiling.
    """
    size = rows * columns
    by_row = np.empty(size, np.int64)
    by_column = np.empty(size, np.int64)
    at_row = np.empty(size, np.int64)
    at_column = np.empty(size, np.int64)
    in_row = np.zeros(rows, np.int64)
    in_column = np.zeros(columns, np.int64)
    # A row with a whole sum keeps it: its last fraction is what arithmetic's errors left of it.
    is_whole = np.empty(rows, np.bool_)
    for row in range(rows):
        total = part[row * columns : (row + 1) * columns].sum()
        is_whole[row] = abs(total - np.rint(total)) <= _NEAR
    for entry in range(size):
        if part[entry] <= _NEAR:
            up[entry] = 0
        elif part[entry] >= 1 - _NEAR:
            up[entry] = 1
        else:
            row, column = entry // columns, entry % columns
            at_row[entry] = in_row[row]
            by_row[row * columns + in_row[row]] = entry
            in_row[row] += 1
            at_column[entry] = in_column[column]
            by_column[column * rows + in_column[column]] = entry
            in_column[column] += 1
    path = np.empty(2 * (rows + columns) + 4, np.int64)
    seen_row = np.full(rows, -1, np.int64)
    seen_column = np.full(columns, -1, np.int64)
    for start in range(rows):
        while in_row[start] > 0:
            # The walk leaves a row by one fraction and a column by another, until it meets itself.
            row, came, length, first = start, -1, 0, -1
            from_end = in_row[start] == 1
            while first < 0:
                seen_row[row] = length
                going = _other(by_row, in_row, row, row * columns, came)
                if going < 0 and is_whole[row]:
                    break
                if going < 0:
                    if from_end:
                        first = 0  # a path between two rows with one fraction each
                        break
                    # The row has no other fraction: walk back from it.
                    for step in range(length):
                        seen_row[path[step] // columns] = -1
                        seen_column[path[step] % columns] = -1
                    came, length, from_end = -1, 0, True
                    continue
                path[length] = going
                length += 1
                if in_row[row] == 1 and is_whole[row]:
                    break
                column = going % columns
                if seen_column[column] >= 0:
                    first = seen_column[column]
                    break
                back = _other(by_column, in_column, column, column * rows, going)
                if back < 0:
                    break
                path[length] = back
                seen_column[column] = length
                length += 1
                row, came = back // columns, back
                if seen_row[row] >= 0:
                    first = seen_row[row]
            for step in range(length):
                seen_row[path[step] // columns] = -1
                seen_column[path[step] % columns] = -1
            if first < 0:
                # The last fraction of a whole sum is next to whole.
                entry = path[length - 1]
                row, column = entry // columns, entry % columns
                up[entry] = 1 if part[entry] >= 0.5 else 0
                _drop(entry, by_row, in_row, at_row, row, row * columns)
                _drop(entry, by_column, in_column, at_column, column, column * rows)
                continue
            rise, fall = 1.0, 1.0
            for step in range(first, length):
                value = part[path[step]]
                if (step - first) % 2 == 0:
                    rise, fall = min(rise, 1 - value), min(fall, value)
                else:
                    rise, fall = min(rise, value), min(fall, 1 - value)
            shift = rise if lots[used] * (rise + fall) < fall else -fall
            used += 1
            for step in range(first, length):
                entry = path[step]
                part[entry] += shift if (step - first) % 2 == 0 else -shift
                if part[entry] <= _NEAR or part[entry] >= 1 - _NEAR:
                    up[entry] = 1 if part[entry] >= 0.5 else 0
                    row, column = entry // columns, entry % columns
                    _drop(entry, by_row, in_row, at_row, row, row * columns)
                    _drop(entry, by_column, in_column, at_column, column, column * rows)
    return used


@kernel
def _round_all(part: Array, up: Array, starts: Array, columns: int, lots: Array) -> int:
    used = 0
    for block in range(len(starts) - 1):
        low, high = starts[block] * columns, starts[block + 1] * columns
        rows = starts[block + 1] - starts[block]
        used = _round_block(part[low:high], up[low:high], rows, columns, lots, used)
    return used


def round_blocks(
    matrix: npt.NDArray[np.float64],
    starts: npt.NDArray[np.int64],
    lots: npt.NDArray[np.float64],
) -> npt.NDArray[np.int64]:
    """Return blocks of rows rounded, each with whole column sums; `starts` says where blocks begin.

    `lots` are uniform draws, at least as many as entries.

    >>> matrix = np.array([[0.5, 1.5], [0.5, 0.5]])
    >>> done = round_blocks(matrix, np.array([0, 2]), np.array([0.3, 0.6, 0.1, 0.9]))
    >>> done.sum(axis=0).tolist(), done.sum(axis=1).tolist()
    ([1, 2], [2, 1])
    """
    floor = np.floor(matrix)
    part = np.ascontiguousarray(matrix - floor).reshape(-1)
    up = np.zeros(part.size, dtype=np.int64)
    _round_all(part, up, np.asarray(starts, dtype=np.int64), matrix.shape[1], lots)
    return floor.astype(np.int64) + up.reshape(matrix.shape)
