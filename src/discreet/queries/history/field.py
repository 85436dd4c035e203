"""Linear algebra modulo a large prime: exact, without fractions.

A combination of answers that is supported on a set of records over the rationals is, cleared of
denominators, also one modulo the prime; so nothing is ever missed. The converse can fail with
negligible chance, which only refuses a question too many.

The inverse that the auditor keeps is mostly zeros. It is stored whole, with a bit for each place
that may not be zero, so that a step costs what there is and not the square of the history.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

__all__ = [
    "PRIME", "Marks", "Matrix", "Square", "Vector", "border", "combine", "eliminate", "find_pivot",
    "fingerprints",    "inverse", "lookup", "marked", "replace_pivot", "scan", "tables", "times", "touch",
]  # fmt: skip

#: A Mersenne prime: products of two residues fit 64 bits.
PRIME = (1 << 31) - 1

Vector = npt.NDArray[np.int64]
Matrix = npt.NDArray[np.int64]
#: Which places of a matrix may differ from zero: 64 columns in a word.
Marks = npt.NDArray[np.uint64]
#: The inverse: residues take 32 bits.
Square = npt.NDArray[np.int32]


def inverse(value: int) -> int:
    """Return the inverse of a residue.

    >>> inverse(3) * 3 % PRIME
    1
    """
    return pow(int(value), -1, PRIME)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def touch(places: Vector, atom: npt.NDArray[np.int32], counts: Vector, held: Vector) -> Vector:
    """Add the records of some profiles to `held`, and return the atoms they lie in."""
    found = np.empty(min(places.size, held.size), np.int64)
    number = 0
    for place in places:
        a = atom[place]
        if held[a] == 0 and counts[place] > 0:
            found[number] = a
            number += 1
        held[a] += counts[place]
    return found[:number].copy()


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def fingerprints(secret: Matrix, places: Vector, prime: int) -> Vector:
    """Return the sums of the secret numbers of some profiles."""
    first = second = 0
    for place in places:
        first += secret[0, place]
        second += secret[1, place]
    return np.array([first % prime, second % prime])


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def tables(coefficients: Vector) -> tuple[Vector, Matrix]:
    """Return, for each eight coefficients that are not all zero, the sum of each of their subsets.

    With them comes which eight they are.
    """
    groups = (coefficients.size + 7) // 8
    used = np.empty(groups, np.int64)
    number = 0
    for group in range(groups):
        for place in range(8 * group, min(8 * group + 8, coefficients.size)):
            if coefficients[place] != 0:
                used[number] = group
                number += 1
                break
    out = np.zeros((number, 256), np.int64)
    for row in range(number):
        for bit in range(8):
            base = 1 << bit
            place = 8 * used[row] + bit
            # Bits beyond the last row may be left from rows put apart: they count nothing.
            value = coefficients[place] if place < coefficients.size else 0
            for subset in range(base):
                out[row, base + subset] = out[row, subset] + value
    return used[:number].copy(), out


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def lookup(
    used: Vector, sums: Matrix, members: npt.NDArray[np.uint8], which: Vector, prime: int
) -> Vector:
    """Return, for each atom of `which`, the sum of the coefficients of the queries that hold it."""
    out = np.empty(which.size, np.int64)
    for place in range(which.size):
        total = 0
        atom = which[place]
        for row in range(used.size):
            total += sums[row, members[used[row], atom]]
        out[place] = total % prime
    return out


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def find_pivot(
    used: Vector,
    sums: Matrix,
    members: npt.NDArray[np.uint8],
    which: Vector,
    inner: Vector,
    sizes: Vector,
    k: int,
    enough: int,
    prime: int,
) -> tuple[int, bool]:
    """Return the atom of `which` with the largest part of at least k where a new row is not zero.

    The row is one in the inner part of an atom and zero outside, less a combination of others;
    −1 if there is none. An atom that could not be better than the best is not looked at, and a
    part of `enough` records is taken at once.
    """
    best, atom, within = k - 1, -1, False
    for place in range(which.size):
        if best >= enough:
            break
        held = inner[place]
        rest = sizes[place] - held
        if held <= best and rest <= best:
            continue
        total = 0
        for row in range(used.size):
            total += sums[row, members[used[row], which[place]]]
        total %= prime
        if held > best and total != 1:
            best, atom, within = held, which[place], True
        if rest > best and total != 0:
            best, atom, within = rest, which[place], False
    return atom, within


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def scan(
    used: Vector,
    sums: Matrix,
    members: npt.NDArray[np.uint8],
    rest: Vector,
    k: int,
    prime: int,
) -> tuple[int, Vector]:
    """Return the values of a combination at all atoms, and an atom where it may have a pivot.

    `rest` is the number of records of an atom outside the question, 0 where any is inside; of
    those with k and more where the combination is not zero, the largest is returned, or −1.
    """
    out = np.zeros(rest.size, np.int64)
    for row in range(used.size):
        subsets, bits = sums[row], members[used[row]]
        for place in range(rest.size):
            out[place] += subsets[bits[place]]
    best, atom = k - 1, -1
    for place in range(rest.size):
        out[place] %= prime
        if out[place] != 0 and rest[place] > best:
            best, atom = rest[place], place
    return atom, out


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _low_bit(word: np.uint64) -> int:
    """Return the place of the lowest bit that is set."""
    place = 0
    while word & np.uint64(0xFF) == np.uint64(0):
        word >>= np.uint64(8)
        place += 8
    while word & np.uint64(1) == np.uint64(0):
        word >>= np.uint64(1)
        place += 1
    return place


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def marked(square: Square, marks: Marks) -> None:
    """Mark the places of a matrix that are not zero, anew."""
    marks[:] = np.uint64(0)
    for i in range(square.shape[0]):
        for j in range(square.shape[1]):
            if square[i, j] != 0:
                marks[i, j >> 6] |= np.uint64(1) << np.uint64(j & 63)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def combine(square: Square, marks: Marks, which: Vector, size: int, prime: int) -> Vector:
    """Return the sum of some rows."""
    out = np.zeros(size, np.int64)
    words = (size + 63) >> 6
    for row in which:
        for w in range(words):
            left = marks[row, w]
            while left != np.uint64(0):
                j = (w << 6) + _low_bit(left)
                left &= left - np.uint64(1)
                out[j] += square[row, j]
    return out % prime


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def times(square: Square, marks: Marks, bits: Marks, size: int, prime: int) -> Vector:
    """Return, for each row, the sum of its entries in the columns whose bits are set."""
    out = np.zeros(size, np.int64)
    words = (size + 63) >> 6
    for row in range(size):
        total = 0
        for w in range(words):
            left = marks[row, w] & bits[w]
            while left != np.uint64(0):
                total += square[row, (w << 6) + _low_bit(left)]
                left &= left - np.uint64(1)
        out[row] = total % prime
    return out


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _put(square: Square, marks: Marks, i: int, j: int, value: int) -> None:
    square[i, j] = value
    bit = np.uint64(1) << np.uint64(j & 63)
    if value != 0:
        marks[i, j >> 6] |= bit
    else:
        marks[i, j >> 6] &= ~bit


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def border(
    square: Square, marks: Marks, size: int, v: Vector, c: Vector, s_inverse: int, prime: int
) -> None:
    """Extend the inverse in the first `size` rows and columns by one row and one column."""
    columns = np.flatnonzero(c)
    for i in np.flatnonzero(v):
        factor = v[i] * s_inverse % prime
        for j in columns:
            _put(square, marks, i, j, (square[i, j] + factor * c[j]) % prime)
        _put(square, marks, i, size, (prime - factor) % prime)
    for j in columns:
        _put(square, marks, size, j, (prime - c[j] * s_inverse % prime) % prime)
    _put(square, marks, size, size, s_inverse)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def replace_pivot(
    square: Square, marks: Marks, size: int, place: int, column: Vector, scale: int, prime: int
) -> None:
    """Make the pivot of one row another atom, at which the rows have the values `column`."""
    row = np.zeros(size, np.int64)
    for j in range(size):
        row[j] = square[place, j] * scale % prime
        square[place, j] = row[j]
    columns = np.flatnonzero(row)
    for i in np.flatnonzero(column):
        if i != place:
            for at in columns:
                _put(square, marks, i, at, (square[i, at] - column[i] * row[at]) % prime)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def eliminate(matrix: Matrix, row: int, column: int, prime: int) -> None:
    """Clear a column in all rows but one, whose entry there is one."""
    places = np.flatnonzero(matrix[row])
    for i in range(matrix.shape[0]):
        factor = matrix[i, column]
        if i != row and factor != 0:
            for j in places:
                matrix[i, j] = (matrix[i, j] - factor * matrix[row, j]) % prime
