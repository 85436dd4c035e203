"""Where among small atoms a combination of answers may differ from zero, without a look at each.

Small atoms fall into buckets. Of each answer, a sketch holds the sum of the numbers of its atoms
in every bucket. A combination of answers that is zero in a bucket is so in its sketch. The converse
may fail: whoever asks checks what was found against fingerprints.
"""

from __future__ import annotations

import numpy as np

from discreet.audit.history.bits import low_bit
from discreet.audit.history.field import Blocks, Marks, Vector, add_residue, residue
from discreet.compiling import inner, kernel

__all__ = ["BUCKETS", "candidates", "sketch", "sketch_of"]

BUCKETS = 512
#: So many atoms that follow each other are in one bucket: they lie close together.
_RUN = 8


@inner
def _bucket(atom: int) -> int:
    return (atom // _RUN) % BUCKETS


@inner
def _number(atom: int) -> int:
    """Return a number of 30 bits that looks random."""
    x = np.uint64(atom + 1) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return int((x ^ (x >> np.uint64(32))) & np.uint64(0x3FFFFFFF))


@kernel
def sketch(sketches: Blocks, answer: int, atom: int, p: int) -> None:
    """Count a small atom in the sketch of an answer that holds it."""
    b = _bucket(atom)
    wide = np.int64(sketches[answer, b]) + _number(atom)
    sketches[answer, b] = residue(wide, p)  # type: ignore[arg-type]  # an int to the compiler


@inner
def sketch_of(
    sketches: Blocks, coefficients: Vector, used: Vector, mask: Marks, touched: Vector,
    sizes: Vector, k: int, p: int,
) -> Blocks:  # fmt: skip
    """Return the sketch of a combination of answers less that of the atoms of a question."""
    sums = np.zeros(BUCKETS, np.int32)
    for w in used:
        left = mask[w]
        while left != np.uint64(0):
            j = (w << 6) + low_bit(left)
            left &= left - np.uint64(1)
            factor = coefficients[j]
            high = (factor << 32) // p
            for b in range(BUCKETS):
                sums[b] = add_residue(sums[b], sketches[j, b], factor, high, p)
    for atom in touched:
        if sizes[atom] < k:
            b = _bucket(atom)
            wide = np.int64(sums[b]) + p - _number(atom)
            sums[b] = residue(wide, p)  # type: ignore[arg-type]  # an int to the compiler
    return sums


@inner
def candidates(sums: Blocks, sizes: Vector, atoms: int, k: int) -> Vector:
    """Return the small atoms in buckets where a sketch is not zero, in order."""
    found = np.empty(atoms, np.int64)
    number = 0
    for start in range(0, atoms, _RUN):
        if sums[_bucket(start)] != 0:
            for atom in range(start, min(start + _RUN, atoms)):
                found[number] = atom
                number += sizes[atom] < k
    return found[:number]
