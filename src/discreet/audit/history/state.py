"""What the auditor knows, in arrays that compiled steps work on, and how these grow."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from discreet.audit.history.field import (
    Blocks,
    Inverse,
    Marks,
    Matrix,
    Vector,
    empty_inverse,
    secret_prime,
)
from discreet.audit.history.sketches import BUCKETS, sketch

__all__ = ["ATOMS", "COLUMNS", "HINT", "RANK", "SMALL", "WORDS", "State", "blank", "grown"]

#: Places in `State.used`: how much of each array is in use, and where a pivot was found last.
ATOMS, RANK, WORDS, COLUMNS, HINT, SMALL = range(6)


class State(NamedTuple):
    """Answered sums over atoms, the inverse at their pivots, and the codewords on small atoms.

    Small atoms hold fewer than k records, large ones at least k.
    Answers and pivots are numbered independently: of the inverse, rows are pivots, columns answers.
    """

    # Of each profile:
    counts: Vector  # records
    secret: Matrix  # two secret numbers
    atom: npt.NDArray[np.int32]
    # Of each atom:
    sizes: Vector  # records
    held: Vector  # those inside the question looked at; zero between questions
    atom_prints: Matrix  # two fingerprints of the records …
    held_prints: Matrix  # … and of those held, zero between questions
    row_at: Vector  # row of the inverse whose pivot it is, or −1
    column_at: Vector  # column of the words, or −1
    members: Marks  # which answers hold it: 64 in a word
    small: Vector  # the small ones, in no order
    # Of each answer that has a pivot, and of each pivot:
    inverse: Inverse
    pivots: Vector  # atoms
    prints: Matrix  # two fingerprints of each answer …
    large_prints: Matrix  # … and of what it holds of large atoms
    sketches: Blocks  # of what each answer holds of small atoms
    # Of each word, and of each atom words live on:
    words: Matrix
    own: Vector  # column where only this word is not zero
    word_prints: Matrix
    holders: Marks  # of each column, which words are not zero there
    word_atoms: Vector
    # Everything:
    used: Vector
    prime: int
    k: int
    records: int


def blank(counts: npt.NDArray[np.int64], k: int) -> State:
    """Return the state before the first answer: the total alone is taken as known.

    So a complement below k is a difference below k.
    """
    # Arrays that may not be written to are another type, for which all would be compiled again.
    counts = np.require(counts, np.int64, ["C", "W"])
    prime = secret_prime()
    # A combination of sets that is nothing adds up to zero in secret numbers, any other does so
    # once in 2⁶² times.
    drawn = np.frombuffer(os.urandom(16 * counts.size), np.uint64).reshape(2, counts.size)
    secret = np.where(counts > 0, (drawn % prime).astype(np.int64), 0)
    # Pages that are not written to take no memory, and growing takes long.
    least = counts.size + 1
    # Not a power of two: columns of such matrices fall onto the same lines of a cache.
    atoms, rank = min(least, 1 << 16), -(-min(least, 129 * 64) // 64) * 64
    words, columns = min(least, 1 << 10), min(4 * least, 97 * 64)
    state = State(
        counts=counts, secret=secret, atom=np.zeros(counts.size, np.int32),
        sizes=np.zeros(atoms, np.int64), held=np.zeros(atoms, np.int64),
        atom_prints=np.zeros((2, atoms), np.int64), held_prints=np.zeros((2, atoms), np.int64),
        row_at=np.zeros(atoms, np.int64), column_at=np.zeros(atoms, np.int64), small=np.zeros(atoms, np.int64),
        members=np.zeros((rank >> 6, atoms), np.uint64), inverse=empty_inverse(rank), pivots=np.zeros(rank, np.int64),
        prints=np.zeros((2, rank), np.int64), large_prints=np.zeros((2, rank), np.int64), sketches=np.zeros((rank, BUCKETS), np.int32), words=np.zeros((words, columns), np.int64),
        own=np.zeros(words, np.int64), word_prints=np.zeros((2, words), np.int64),
        holders=np.zeros((columns, (words + 63) >> 6), np.uint64),
        word_atoms=np.zeros(columns, np.int64), used=np.array([1, 1, 0, 0, 0, 0], np.int64), prime=prime,
        k=k, records=int(counts.sum()),
    )  # fmt: skip
    state.column_at[0] = -1
    state.sizes[0] = state.records
    state.members[0, 0] = state.inverse.blocks[1, 0] = state.inverse.at[0, 0] = 1
    state.inverse.marks[0, 0] = state.inverse.turned[0, 0] = state.inverse.filled[0] = 1
    state.atom_prints[:, 0] = state.prints[:, 0] = secret.sum(axis=1) % prime
    if state.records >= k:
        state.large_prints[:, 0] = state.prints[:, 0]
    else:
        state.used[SMALL] = 1
        sketch(state.sketches, 0, 0, prime)
    return state


def grown(state: State, needed: npt.NDArray[np.int64]) -> State:
    """Return the state with space for so many atoms, answers, words and columns of words."""
    atoms, rank, words, columns = (int(number) for number in needed)
    atoms, rank = _more(state.sizes.size, atoms), _more(state.pivots.size, rank, 64)
    words, columns = _more(state.own.size, words), _more(state.word_atoms.size, columns)
    there = state.used
    shapes: dict[str, tuple[int, ...]] = {
        "sizes": (atoms,), "held": (atoms,), "row_at": (atoms,), "column_at": (atoms,),
        "atom_prints": (2, atoms), "held_prints": (2, atoms), "small": (atoms,), "large_prints": (2, rank), "sketches": (rank, BUCKETS),
        "members": (rank >> 6, atoms),
        "pivots": (rank,), "prints": (2, rank), "words": (words, columns), "own": (words,),
        "word_prints": (2, words), "holders": (columns, (words + 63) >> 6), "word_atoms": (columns,),
    }  # fmt: skip
    # Only what is in use is copied: the rest takes no memory yet.
    used = {"words": (there[WORDS], there[COLUMNS])}
    wider: dict[str, Any] = {  # Any: arrays of several types
        name: _wider(getattr(state, name), shape, used.get(name, ()))
        for name, shape in shapes.items()
    }
    return state._replace(inverse=_wider_inverse(state.inverse, rank), **wider)


def _more(there: int, needed: int, multiple: int = 1) -> int:
    """Return how long to make an array: by half more than it is, if it is too short."""
    if needed <= there:
        return there
    return -(-max(needed, there + there // 2) // multiple) * multiple


def _wider_inverse(inverse: Inverse, rank: int) -> Inverse:
    """Return an inverse with space for so many rows."""
    if inverse.at.shape[0] == rank:
        return inverse
    wider = empty_inverse(rank)
    filled = int(inverse.filled[0]) + 1
    wider.blocks[:filled] = inverse.blocks[:filled]
    wider.filled[:] = inverse.filled
    rows, words = inverse.at.shape
    wider.at[:rows, :words] = inverse.at
    wider.marks[:rows, :words] = inverse.marks
    wider.turned[:words, :rows] = inverse.turned
    return wider


def _wider(
    array: npt.NDArray[Any], shape: tuple[int, ...], used: tuple[int, ...]
) -> npt.NDArray[Any]:
    """Return an array of a larger shape, zero where it was not used. Any: of any type."""
    if array.shape == shape:
        return array
    wider = np.zeros(shape, array.dtype)
    part = tuple(slice(size) for size in used or array.shape)
    wider[part] = array[part]
    return wider
