"""Linear algebra modulo a large prime: exact, without fractions.

A combination of answers that is supported on a set of records over the rationals is, cleared of
denominators, also one modulo the prime; so nothing is ever missed. The converse can fail with
negligible chance, which only refuses a question too many.

The inverse that the auditor keeps is sparse. Of each row, only blocks of 64 columns that are not all
zero are stored, with one bit per nonzero entry, so that a step costs time in proportion to the
nonzero entries, not to the square of the history.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from discreet.audit.history.bits import bits_set, low_bit, not_zero
from discreet.compiling import inner, kernel

__all__ = [
    "Blocks",
    "Inverse",
    "Marks",
    "Matrix",
    "Place",
    "Vector",
    "add_residue",
    "border",
    "combine",
    "empty_inverse",
    "inverse",
    "lookup",
    "masked",
    "negative",
    "replace_pivot",
    "residue",
    "row_of",
    "secret_prime",
    "sum_of",
    "take_out",
    "times",
    "values_at",
]  # fmt: skip

Vector = npt.NDArray[np.int64]
Matrix = npt.NDArray[np.int64]
#: Which places of a matrix differ from zero, or which answers hold an atom: 64 in a word.
Marks = npt.NDArray[np.uint64]
#: Residues take 32 bits.
Blocks = npt.NDArray[np.int32]
Place = int | np.signedinteger[Any]
Word = np.unsignedinteger[Any]
#: Up to so many nonzero entries of 64 are visited one by one; more are faster as one vector.
_FEW = 6


class Inverse(NamedTuple):
    """A square matrix that is mostly zeros."""

    blocks: Blocks  # 64 columns of a row each, the first of them zero for good
    at: Blocks  # of each row and 64 columns, which block it is, or 0
    marks: Marks  # which places are not zero …
    turned: Marks  # … and the same by columns: of 64 rows and each column
    filled: Vector  # the last block in use


def empty_inverse(rank: int) -> Inverse:
    """Return space for an inverse of so many rows, a multiple of 64: memory it takes when filled."""
    words = rank >> 6
    return Inverse(
        np.zeros((rank * words + 1, 64), np.int32),
        np.zeros((rank, words), np.int32),
        np.zeros((rank, words), np.uint64),
        np.zeros((words, rank), np.uint64),
        np.zeros(1, np.int64),
    )


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


@kernel
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
    """Return the additive inverse of a residue."""
    return p - value if value != 0 else 0


@kernel
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
    """Write the values of a combination of answers at some atoms to `out`, in their order."""
    out[: atoms.size] = 0
    # Answer by answer: what is looked up then lies close together.
    for w in used:
        wanted = mask[w]
        for n in range(atoms.size):
            left = members[w, atoms[n]] & wanted
            if left != np.uint64(0):
                out[n] += _gathered(coefficients, w, left)
    for n in range(atoms.size):
        if out[n] != 0:
            out[n] = residue(out[n], p)


@inner
def sum_of(coefficients: Vector, used: Vector, mask: Marks, numbers: Vector, p: int) -> int:
    """Return the sum of some numbers, each times its coefficient."""
    total = 0
    for w in used:
        left = mask[w]
        while left != np.uint64(0):
            j = (w << 6) + low_bit(left)
            left &= left - np.uint64(1)
            total += residue(coefficients[j] * numbers[j], p)
    return residue(total, p)


@inner
def row_of(given: Inverse, row: Place, size: int) -> Vector:
    """Return a row."""
    out = np.zeros(size, np.int64)
    for j in range(size):
        out[j] = given.blocks[given.at[row, j >> 6], j & 63]
    return out


@inner
def combine(
    blocks: Blocks, at: Blocks, marks: Marks, which: Vector, size: int, p: int
) -> tuple[Vector, Marks]:
    """Return the sum of some rows, and where it is not zero."""
    words = (size + 63) >> 6
    # Two indices: a place of its own in one of 64 is known to be there.
    out, mask = np.zeros((words, 64), np.int64), np.zeros(words, np.uint64)
    for row in which:
        for w in range(words):
            left = marks[row, w]
            if left == np.uint64(0):
                continue
            mask[w] |= left
            place = at[row, w]
            if bits_set(left) > _FEW:
                for b in range(64):
                    out[w, b] += blocks[place, b]
                continue
            while left != np.uint64(0):
                b = low_bit(left)
                left &= left - np.uint64(1)
                out[w, b] += blocks[place, b]
    for w in range(words):
        left = mask[w]
        while left != np.uint64(0):
            b = low_bit(left)
            out[w, b] = residue(out[w, b], p)
            if out[w, b] == 0:
                mask[w] &= ~(np.uint64(1) << np.uint64(b))
            left &= left - np.uint64(1)
    return out.reshape(words << 6)[:size], mask


@inner
def times(
    blocks: Blocks, at: Blocks, turned: Marks, members: Marks, atom: Place, size: int, p: int
) -> Vector:
    """Return, for each row, the sum of its entries in the columns of the answers with an atom."""
    words, number = (size + 63) >> 6, 0
    out, answers = np.zeros(size, np.int64), np.empty(size, np.int64)
    for w in range(words):
        left = members[w, atom]
        while left != np.uint64(0):
            answers[number] = (w << 6) + low_bit(left)
            left &= left - np.uint64(1)
            number += 1
    for w in range(words):
        for j in answers[:number]:
            left = turned[w, j]
            while left != np.uint64(0):
                row = (w << 6) + low_bit(left)
                left &= left - np.uint64(1)
                out[row] += blocks[at[row, j >> 6], j & 63]
    for row in range(size):
        if out[row] != 0:
            out[row] = residue(out[row], p)
    return out


@inner
def _mark(marks: Marks, turned: Marks, i: Place, w: Place, bits: Word) -> None:
    """Store which of 64 columns of a row are not zero, by rows and by columns."""
    changed = marks[i, w] ^ bits
    marks[i, w] = bits
    bit = np.uint64(1) << np.uint64(i & 63)
    while changed != np.uint64(0):
        turned[i >> 6, (w << 6) + low_bit(changed)] ^= bit
        changed &= changed - np.uint64(1)


@inner
def _put(given: Inverse, i: Place, j: Place, value: Place) -> None:
    bit, there = np.uint64(1) << np.uint64(j & 63), given.marks[i, j >> 6]
    if value == 0 and there & bit == np.uint64(0):
        return
    place = given.at[i, j >> 6]
    if place == 0:
        given.filled[0] += 1
        place = given.filled[0]
        given.at[i, j >> 6] = place
    given.blocks[place, j & 63] = value
    _mark(given.marks, given.turned, i, j >> 6, there | bit if value != 0 else there & ~bit)


@inner
def add_residue(there: Place, given: Place, factor: int, high: int, p: int) -> Place:
    """Return a residue plus a multiple of another; `high` is the factor's quotient by p, × 2³².

    Without a division: the quotient of the product is off by one at most. In 32 bits, which what
    is left of the product fits into.
    """
    f, g, q = np.uint32(factor), np.uint32(given), np.uint32(p)
    times_ = np.uint32(np.uint64(np.uint32(high)) * np.uint64(g) >> np.uint64(32))
    value = np.uint32(np.uint32(f * g) - np.uint32(times_ * q))
    value = min(value, np.uint32(value - q))  # what would be negative is huge
    value = np.uint32(value + np.uint32(there))
    return np.int32(min(value, np.uint32(value - q)))


@inner
def _add(
    given: Inverse, i: Place, used: Vector, mask: Marks, c: Blocks, factor: int, p: int
) -> None:
    """Add a multiple of c, which is not zero where the mask says, to a row.

    Without views of parts of arrays: what refers to an array is counted, which takes long.
    """
    high = (factor << 32) // p
    blocks, at, marks, turned, filled = given
    for w in used:
        place, left = at[i, w], mask[w]
        if place == 0:
            filled[0] += 1
            place = filled[0]
            at[i, w] = place
        if bits_set(left) > _FEW:
            for b in range(64):
                blocks[place, b] = add_residue(blocks[place, b], c[w, b], factor, high, p)
            bits = not_zero(blocks, place)
        else:
            bits = marks[i, w]
            while left != np.uint64(0):
                b = low_bit(left)
                bit = np.uint64(1) << np.uint64(b)
                left &= left - np.uint64(1)
                value = add_residue(blocks[place, b], c[w, b], factor, high, p)
                blocks[place, b] = value
                bits = bits | bit if value != 0 else bits & ~bit
        _mark(marks, turned, i, w, bits)


@inner
def _whole(row: Vector) -> tuple[Blocks, Vector, Marks]:
    """Return a row in whole blocks, and where it is not zero."""
    used, mask = masked(row)
    whole = np.zeros((mask.size, 64), np.int32)
    for j in range(row.size):
        whole[j >> 6, j & 63] = row[j]
    return whole, used, mask


@inner
def border(given: Inverse, size: int, v: Vector, c: Vector, scale: int, p: int) -> None:
    """Extend the inverse in the first `size` rows and columns by one row and one column."""
    row, used, mask = _whole(c)
    for i in np.flatnonzero(v):
        factor = residue(v[i] * scale, p)
        _add(given, i, used, mask, row, factor, p)
        _put(given, i, size, negative(factor, p))
    _add(given, size, used, mask, row, negative(scale, p), p)
    _put(given, size, size, scale)


@inner
def replace_pivot(given: Inverse, size: int, place: int, column: Vector, p: int) -> None:
    """Make the pivot of one row another atom, at which the rows have the values `column`."""
    scale = inverse(column[place], p)
    row = row_of(given, place, size)
    for j in np.flatnonzero(row):
        row[j] = residue(row[j] * scale, p)
        _put(given, place, j, row[j])
    whole, used, mask = _whole(row)
    for i in np.flatnonzero(column):
        if i != place:
            _add(given, i, used, mask, whole, negative(column[i], p), p)


@inner
def take_out(given: Inverse, size: int, place: int, query: int, p: int) -> None:
    """Reduce the inverse by one row and one column; the last of each take their places."""
    row, last = row_of(given, place, size), size - 1
    scale = inverse(row[query], p)
    whole, used, mask = _whole(row)
    for i in range(size):
        value = given.blocks[given.at[i, query >> 6], query & 63]
        if i != place and value != 0:
            factor = negative(residue(value * scale, p), p)
            _add(given, i, used, mask, whole, factor, p)
    row = row_of(given, last, size)
    for j in range(size):
        _put(given, place, j, row[j])
        _put(given, last, j, np.int64(0))
    for i in range(last):
        value = np.int64(given.blocks[given.at[i, last >> 6], last & 63])
        _put(given, i, query, value)
        _put(given, i, last, np.int64(0))
