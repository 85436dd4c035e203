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
    "Marks", "Matrix", "Square", "Vector", "border", "combine", "inverse", "lookup", "masked",
    "negative", "replace_pivot", "residue", "secret_prime", "take_out", "times", "values_at",
]  # fmt: skip

Vector = npt.NDArray[np.int64]
Matrix = npt.NDArray[np.int64]
#: Which places of a matrix differ from zero, or which answers hold an atom: 64 in a word.
Marks = npt.NDArray[np.uint64]
#: The inverse: residues take 32 bits.
Square = npt.NDArray[np.int32]
Place = int | np.signedinteger[Any]
Word = np.unsignedinteger[Any]


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
def masked(coefficients: Vector) -> tuple[Vector, Marks]:
    """Return which coefficients are not zero, 64 in a word, and before that which words."""
    words = (coefficients.size + 63) >> 6
    mask = np.zeros(words, np.uint64)
    for j in range(coefficients.size):
        if coefficients[j] != 0:
            mask[j >> 6] |= np.uint64(1) << np.uint64(j & 63)
    return np.flatnonzero(mask), mask


@inner
def _gathered(coefficients: Vector, word: Place, left: Word) -> int:
    """Return the sum of the coefficients with a bit in a word."""
    total = 0
    while left != np.uint64(0):
        total += coefficients[(word << 6) + low_bit(left)]
        left &= left - np.uint64(1)
    return total


@inner
def lookup(
    coefficients: Vector, used: Vector, mask: Marks, members: Marks, atom: int, p: int
) -> int:
    """Return the sum of the coefficients of the answers that hold an atom."""
    total = 0
    for w in used:
        total += _gathered(coefficients, w, members[w, atom] & mask[w])
    return residue(total, p)


@inner
def values_at(
    coefficients: Vector, used: Vector, mask: Marks, members: Marks, atoms: Vector, out: Vector,
    p: int,
) -> None:  # fmt: skip
    """Put down the values of a combination of answers at some atoms."""
    for atom in atoms:
        out[atom] = 0
    # Answer by answer: what is looked up then lies close together.
    for w in used:
        bits, wanted = members[w], mask[w]
        for atom in atoms:
            left = bits[atom] & wanted
            if left != np.uint64(0):
                out[atom] += _gathered(coefficients, w, left)
    for atom in atoms:
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
def times(square: Square, turned: Marks, members: Marks, atom: int, size: int, p: int) -> Vector:
    """Return, for each row, the sum of its entries in the columns of the answers with an atom."""
    words = (size + 63) >> 6
    out = np.zeros(size, np.int64)
    for v in range(words):
        answers = members[v, atom]
        while answers != np.uint64(0):
            j = (v << 6) + low_bit(answers)
            answers &= answers - np.uint64(1)
            for w in range(words):
                left = turned[j, w]
                while left != np.uint64(0):
                    row = (w << 6) + low_bit(left)
                    left &= left - np.uint64(1)
                    out[row] += square[row, j]
    for row in range(size):
        out[row] = residue(out[row], p)
    return out


@inner
def _mark(marks: Marks, turned: Marks, i: Place, w: Place, bits: Word) -> None:
    """Put down which of 64 columns of a row are not zero, in both directions."""
    changed = marks[i, w] ^ bits
    marks[i, w] = bits
    bit = np.uint64(1) << np.uint64(i & 63)
    while changed != np.uint64(0):
        turned[(w << 6) + low_bit(changed), i >> 6] ^= bit
        changed &= changed - np.uint64(1)


@inner
def _put(square: Square, marks: Marks, turned: Marks, i: Place, j: Place, value: int) -> None:
    square[i, j] = value
    bit, there = np.uint64(1) << np.uint64(j & 63), marks[i, j >> 6]
    _mark(marks, turned, i, j >> 6, there | bit if value != 0 else there & ~bit)


@inner
def _sum(there: Place, given: Place, factor: int, high: int, p: int) -> Place:
    """Return a residue plus a multiple of another; `high` is the factor's quotient by p, × 2³².

    Without a division: the quotient of the product is off by one at most.
    """
    f, g, q = np.uint64(np.uint32(factor)), np.uint64(np.uint32(given)), np.uint64(np.uint32(p))
    product = f * g - (np.uint64(np.uint32(high)) * g >> np.uint64(32)) * q
    value = product + np.uint64(np.uint32(there))
    value = min(value, value - q)  # what would be negative is huge
    return np.int32(min(value, value - q))


@inner
def _add(
    square: Square, marks: Marks, turned: Marks, i: Place, columns: Vector, c: Square, factor: int,
    p: int,
) -> None:  # fmt: skip
    """Add a multiple of c, which is not zero in some columns, to a row."""
    row, high = square[i], (factor << 32) // p
    words = (c.size + 63) >> 6
    if 8 * columns.size > c.size:  # all at once, which computers do faster
        for j in range(c.size):
            row[j] = _sum(row[j], c[j], factor, high, p)
        for w in range(words):
            bits = np.uint64(0)
            for b in range(64):
                bits |= np.uint64(row[(w << 6) + b] != 0) << np.uint64(b)
            _mark(marks, turned, i, w, bits)
        return
    word, set_, clear = 0, np.uint64(0), np.uint64(0)
    for j in columns:
        if j >> 6 != word:  # what changes in 64 columns is put down at once
            _mark(marks, turned, i, word, (marks[i, word] | set_) & ~clear)
            word, set_, clear = j >> 6, np.uint64(0), np.uint64(0)
        value = _sum(row[j], c[j], factor, high, p)
        row[j] = value
        bit = np.uint64(1) << np.uint64(j & 63)
        if value != 0:
            set_ |= bit
        else:
            clear |= bit
    _mark(marks, turned, i, word, (marks[i, word] | set_) & ~clear)


@inner
def border(
    square: Square, marks: Marks, turned: Marks, size: int, v: Vector, c: Vector, scale: int, p: int
) -> None:
    """Extend the inverse in the first `size` rows and columns by one row and one column."""
    columns, row = np.flatnonzero(c), c.astype(np.int32)
    for i in np.flatnonzero(v):
        factor = residue(v[i] * scale, p)
        _add(square, marks, turned, i, columns, row, factor, p)
        _put(square, marks, turned, i, size, negative(factor, p))
    _add(square, marks, turned, size, columns, row, negative(scale, p), p)
    _put(square, marks, turned, size, size, scale)


@inner
def replace_pivot(
    square: Square, marks: Marks, turned: Marks, size: int, place: int, column: Vector, p: int
) -> None:
    """Make the pivot of one row another atom, at which the rows have the values `column`."""
    scale = inverse(column[place], p)
    columns = np.flatnonzero(square[place, :size])
    row = np.zeros(size, np.int32)
    for j in columns:
        row[j] = residue(square[place, j] * scale, p)
        square[place, j] = row[j]
    for i in np.flatnonzero(column):
        if i != place:
            _add(square, marks, turned, i, columns, row, negative(column[i], p), p)


@inner
def take_out(
    square: Square, marks: Marks, turned: Marks, size: int, place: int, query: int, p: int
) -> None:
    """Reduce the inverse by one row and one column; the last of each take their places."""
    scale = inverse(square[place, query], p)
    columns = np.flatnonzero(square[place, :size])
    row = square[place, :size].copy()
    for i in range(size):
        if i != place and square[i, query] != 0:
            factor = negative(residue(square[i, query] * scale, p), p)
            _add(square, marks, turned, i, columns, row, factor, p)
    last = size - 1
    for j in range(size):
        _put(square, marks, turned, place, j, square[last, j])
        _put(square, marks, turned, last, j, 0)
    for i in range(last):
        _put(square, marks, turned, i, query, square[i, last])
        _put(square, marks, turned, i, last, 0)
