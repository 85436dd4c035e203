"""Linear algebra modulo a large prime: exact, without fractions.

A combination of answers that is supported on a set of records over the rationals is, cleared of
denominators, also one modulo the prime; so nothing is ever missed. The converse can fail with
negligible chance, which only refuses a question too many.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

__all__ = ["PRIME", "Matrix", "Vector", "border", "eliminate", "inverse", "lookup", "tables"]

#: A Mersenne prime: products of two residues fit 64 bits.
PRIME = (1 << 31) - 1

Vector = npt.NDArray[np.int64]
Matrix = npt.NDArray[np.int64]


def inverse(value: int) -> int:
    """Return the inverse of a residue.

    >>> inverse(3) * 3 % PRIME
    1
    """
    return pow(int(value), -1, PRIME)


@njit(cache=True)  # type: ignore[untyped-decorator]
def tables(coefficients: Vector) -> Matrix:
    """Return, for each eight coefficients, the sum of each of their 256 subsets."""
    rows = (coefficients.size + 7) // 8
    out = np.zeros((rows, 256), np.int64)
    for row in range(rows):
        for bit in range(8):
            base = 1 << bit
            place = 8 * row + bit
            # Bits beyond the last row may be left from rows put apart: they count nothing.
            value = coefficients[place] if place < coefficients.size else 0
            for subset in range(base):
                out[row, base + subset] = out[row, subset] + value
    return out


@njit(cache=True)  # type: ignore[untyped-decorator]
def lookup(
    sums: Matrix, members: npt.NDArray[np.uint8], which: npt.NDArray[np.int64], prime: int
) -> Vector:
    """Return, for each atom of `which`, the sum of the coefficients of the queries that hold it."""
    out = np.empty(which.size, np.int64)
    # A question about few records is reduced by few rows: most tables hold nothing but zeros.
    used = np.empty(sums.shape[0], np.int64)
    rows = 0
    for row in range(sums.shape[0]):
        if sums[row].any():
            used[rows] = row
            rows += 1
    for place in range(which.size):
        total = 0
        atom = which[place]
        for number in range(rows):
            row = used[number]
            total += sums[row, members[atom, row]]
        out[place] = total % prime
    return out


@njit(cache=True)  # type: ignore[untyped-decorator]
def border(square: Matrix, size: int, v: Vector, c: Vector, s_inverse: int, prime: int) -> None:
    """Extend the inverse in the first `size` rows and columns by one row and one column."""
    for i in range(size):
        factor = v[i] * s_inverse % prime
        if factor != 0:
            for j in range(size):
                square[i, j] = (square[i, j] + factor * c[j]) % prime
        square[i, size] = (prime - factor) % prime
    for j in range(size):
        square[size, j] = (prime - c[j] * s_inverse % prime) % prime
    square[size, size] = s_inverse


@njit(cache=True)  # type: ignore[untyped-decorator]
def eliminate(matrix: Matrix, row: int, column: int, prime: int) -> None:
    """Clear a column in all rows but one, whose entry there is one."""
    for i in range(matrix.shape[0]):
        factor = matrix[i, column]
        if i != row and factor != 0:
            for j in range(matrix.shape[1]):
                matrix[i, j] = (matrix[i, j] - factor * matrix[row, j]) % prime
