"""Linear algebra modulo a large prime: exact, without fractions.

A combination of answers that is supported on a set of records over the rationals is, cleared of
denominators, also one modulo the prime; so nothing is ever missed. The converse can fail with
negligible chance, which only refuses a question too many.

The inverse that the auditor keeps is mostly zeros. It is stored whole, with a bit for each place
that is not zero, so that a step costs what there is and not the square of the history.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.queries.history.compiling import entry, inner, low_bit

__all__ = [
    "Bits", "Marks", "Matrix", "Square", "Vector", "border", "combine", "inverse", "lookup",
    "negative", "replace_pivot", "residue", "secret_prime", "tables", "take_out", "times", "values_at",
]  # fmt: skip

Vector = npt.NDArray[np.int64]
Matrix = npt.NDArray[np.int64]
#: Which places of a matrix differ from zero: 64 columns in a word.
Marks = npt.NDArray[np.uint64]
#: The inverse: residues take 32 bits.
Square = npt.NDArray[np.int32]
#: Of each atom (column) one bit for each answered sum, eight in a byte.
Bits = npt.NDArray[np.uint8]
Place = int | np.signedinteger[Any]


def secret_prime() -> int:
    """Return a prime of 31 bits that nobody else knows.

    Whoever knew it could ask for sets that look dependent modulo the prime and are not.

    >>> prime = secret_prime()
    >>> prime > 2**30, any(prime % n == 0 for n in range(2, 1000))
    (True, False)
    """
    while True:
        number = int.from_bytes(os.urandom(4), "big") >> 1 | 1 << 30 | 1
        if (number % np.arange(3, 46_342, 2)).all():
            return number


@entry
def residue(value: int, p: int) -> int:
    """Return the remainder of a number below 2⁶³ that is not negative.

    >>> residue(5 * 1_073_741_827 + 3, 1_073_741_827)
    3
    """
    value -= int(value * (1.0 / p)) * p  # the quotient is off by one at most
    if value < 0:
        value += p
    return value - p if value >= p else value


@inner
def negative(value: int, p: int) -> int:
    """Return the residue that adds up to nothing with another."""
    return p - value if value != 0 else 0


@entry
def inverse(value: int, p: int) -> int:
    """Return the inverse of a residue.

    >>> residue(inverse(3, 1_073_741_827) * 3, 1_073_741_827)
    1
    """
    result, base, power = 1, value, p - 2
    while power > 0:
        if power & 1:
            result = residue(result * base, p)
        base = residue(base * base, p)
        power >>= 1
    return result


@inner
def tables(coefficients: Vector) -> tuple[Vector, Matrix]:
    """Return, for each eight coefficients that are not all zero, the sum of each of their subsets.

    Before them comes which eight they are.
    """
    groups = (coefficients.size + 7) >> 3
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
            value = coefficients[place] if place < coefficients.size else 0
            for subset in range(base):
                out[row, base + subset] = out[row, subset] + value
    return used[:number], out


@inner
def lookup(used: Vector, sums: Matrix, members: Bits, atom: int, p: int) -> int:
    """Return the sum of the coefficients of the answers that hold an atom."""
    total = 0
    for row in range(used.size):
        total += sums[row, members[used[row], atom]]
    return residue(total, p)


@inner
def values_at(
    used: Vector, sums: Matrix, members: Bits, start: int, stop: int, out: Vector, p: int
) -> None:
    """Put down the values of a combination of answers at the atoms from `start` to `stop`."""
    for atom in range(start, stop):
        out[atom] = 0
    # Answer by answer: what is looked up then lies close together.
    for row in range(used.size):
        subsets, bits = sums[row], members[used[row]]
        for atom in range(start, stop):
            out[atom] += subsets[bits[atom]]
    for atom in range(start, stop):
        out[atom] = residue(out[atom], p)


@inner
def combine(square: Square, marks: Marks, which: Vector, size: int, p: int) -> Vector:
    """Return the sum of some rows."""
    out = np.zeros(size, np.int64)
    words = (size + 63) >> 6
    for row in which:
        for w in range(words):
            left = marks[row, w]
            while left != np.uint64(0):
                j = (w << 6) + low_bit(left)
                left &= left - np.uint64(1)
                out[j] += square[row, j]
    for j in range(size):
        out[j] = residue(out[j], p)
    return out


@inner
def times(square: Square, marks: Marks, members: Bits, atom: int, size: int, p: int) -> Vector:
    """Return, for each row, the sum of its entries in the columns of the answers with an atom."""
    words = (size + 63) >> 6
    bits = np.zeros(words, np.uint64)
    for group in range((size + 7) >> 3):
        bits[group >> 3] |= np.uint64(members[group, atom]) << np.uint64(8 * (group & 7))
    out = np.zeros(size, np.int64)
    for row in range(size):
        total = 0
        for w in range(words):
            left = marks[row, w] & bits[w]
            while left != np.uint64(0):
                total += square[row, (w << 6) + low_bit(left)]
                left &= left - np.uint64(1)
        out[row] = residue(total, p)
    return out


@inner
def _put(square: Square, marks: Marks, i: Place, j: Place, value: int) -> None:
    square[i, j] = value
    bit = np.uint64(1) << np.uint64(j & 63)
    if value != 0:
        marks[i, j >> 6] |= bit
    else:
        marks[i, j >> 6] &= ~bit


@inner
def _add(
    square: Square, marks: Marks, i: Place, columns: Vector, c: Vector, factor: int, p: int
) -> None:
    """Add a multiple of c, which is not zero in some columns, to a row."""
    word, set_, clear = 0, np.uint64(0), np.uint64(0)
    row = square[i]
    for j in columns:
        if j >> 6 != word:  # what changes in 64 columns is put down at once
            marks[i, word] = (marks[i, word] | set_) & ~clear
            word, set_, clear = j >> 6, np.uint64(0), np.uint64(0)
        value = residue(row[j] + factor * c[j], p)
        row[j] = value
        bit = np.uint64(1) << np.uint64(j & 63)
        if value != 0:
            set_ |= bit
        else:
            clear |= bit
    marks[i, word] = (marks[i, word] | set_) & ~clear


@inner
def border(
    square: Square, marks: Marks, size: int, v: Vector, c: Vector, scale: int, p: int
) -> None:
    """Extend the inverse in the first `size` rows and columns by one row and one column."""
    columns = np.flatnonzero(c)
    for i in np.flatnonzero(v):
        factor = residue(v[i] * scale, p)
        _add(square, marks, i, columns, c, factor, p)
        _put(square, marks, i, size, negative(factor, p))
    _add(square, marks, size, columns, c, negative(scale, p), p)
    _put(square, marks, size, size, scale)


@inner
def replace_pivot(
    square: Square, marks: Marks, size: int, place: int, column: Vector, p: int
) -> None:
    """Make the pivot of one row another atom, at which the rows have the values `column`."""
    scale = inverse(column[place], p)
    columns = np.flatnonzero(square[place, :size])
    row = np.zeros(size, np.int64)
    for j in columns:
        row[j] = residue(square[place, j] * scale, p)
        square[place, j] = row[j]
    for i in np.flatnonzero(column):
        if i != place:
            _add(square, marks, i, columns, row, negative(column[i], p), p)


@inner
def take_out(square: Square, marks: Marks, size: int, place: int, query: int, p: int) -> None:
    """Reduce the inverse by one row and one column; the last of each take their places."""
    scale = inverse(square[place, query], p)
    columns = np.flatnonzero(square[place, :size])
    row = square[place].astype(np.int64)
    for i in range(size):
        if i != place and square[i, query] != 0:
            factor = negative(residue(square[i, query] * scale, p), p)
            _add(square, marks, i, columns, row, factor, p)
    last = size - 1
    for j in range(size):
        _put(square, marks, place, j, square[last, j])
        _put(square, marks, last, j, 0)
    for i in range(last):
        _put(square, marks, i, query, square[i, last])
        _put(square, marks, i, last, 0)
