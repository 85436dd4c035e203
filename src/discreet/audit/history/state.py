"""What the auditor knows, in arrays that compiled steps work on, and how these grow."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from discreet.audit.history.field import Marks, Matrix, Residues, Vector, secret_prime
from discreet.compiling import kernel

__all__ = [
    "ATOMS", "COLUMNS", "ENTRIES", "RANK", "REFUSED", "REST", "ROWS", "SHORT", "WORDS", "State", "blank", "grown",
]  # fmt: skip

#: Places in `State.used`: how much of each array is in use; how many answers are independent and no
#: words; an atom where the rest is not zero (−1: to be looked for, −2: there is no rest); how many more
#: entries a decision would have had space for; and how many refusals were remembered.
ATOMS, ROWS, WORDS, COLUMNS, ENTRIES, RANK, REST, SHORT, REFUSED = range(9)


class State(NamedTuple):
    """Answered sums over atoms as rows in echelon form, and codewords on small atoms.

    Small atoms hold fewer than k records, large ones at least k. Each row has a pivot, an atom
    where it is one and all later rows are zero. The last row of all is the rest: what rows leave
    of the sum over all records.
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
    row_at: Vector  # row whose pivot it is, or −1
    column_at: Vector  # column of the words, or −1
    child: Vector  # the atom split off from it last, or −1 …
    sibling: Vector  # … and the one that was split off from the same atom before
    first: Vector  # no profile before this one is in it …
    first_held: Vector  # … and the first one inside the question looked at
    rest: Residues  # the rest's value
    value: Residues  # that of the vector looked at; zero between questions
    met: npt.NDArray[np.bool_]  # whether the vector may differ from zero there
    support: Vector  # atoms met, in no order
    # Of each row:
    pivots: Vector  # atoms, or −1 for rows that moved
    starts: Vector  # its entries begin …
    ends: Vector  # … and end here
    known: Vector  # how many atoms there were when they were written
    todo: Marks  # rows whose pivots were met; zero between questions
    # Of each entry of a row:
    entries: npt.NDArray[np.int32]  # atom
    values: Residues
    # Of each word, and of each atom words live on:
    words: Matrix
    own: Vector  # column where only this word is not zero
    word_prints: Matrix
    holders: Marks  # of each column, which words are not zero there
    word_atoms: Vector
    refused: Matrix  # two fingerprints of new codewords that were of low weight, less all others
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
    atoms, rows = min(least, 1 << 16), min(least, 1 << 13)
    words, columns = min(least, 1 << 10), min(4 * least, 97 * 64)
    entries = min(least * least, max(1 << 20, 4 * least))
    numbers = {name: np.zeros(atoms, np.int64) for name in _OF_ATOMS}
    state = State(
        counts=counts, secret=secret, atom=np.zeros(counts.size, np.int32), **numbers,
        atom_prints=np.zeros((2, atoms), np.int64), held_prints=np.zeros((2, atoms), np.int64),
        rest=np.zeros(atoms, np.int32), value=np.zeros(atoms, np.int32), met=np.zeros(atoms, np.bool_),
        pivots=np.zeros(rows, np.int64), starts=np.zeros(rows, np.int64), ends=np.zeros(rows, np.int64),
        known=np.zeros(rows, np.int64), todo=np.zeros((rows >> 6) + 1, np.uint64),
        entries=np.zeros(entries, np.int32), values=np.zeros(entries, np.int32),
        words=np.zeros((words, columns), np.int64), own=np.zeros(words, np.int64),
        word_prints=np.zeros((2, words), np.int64), holders=np.zeros((columns, (words + 63) >> 6), np.uint64),
        word_atoms=np.zeros(columns, np.int64), refused=np.zeros((2, _REFUSED), np.int64), used=np.zeros(9, np.int64), prime=prime, k=k,
        records=int(counts.sum()),
    )  # fmt: skip
    state.sizes[0] = state.records
    state.row_at[0] = state.column_at[0] = state.child[0] = state.sibling[0] = -1
    state.atom_prints[:, 0] = secret.sum(axis=1) % prime
    state.used[ATOMS] = 1
    if state.records >= k:
        state.rest[0] = state.used[RANK] = 1
    else:  # a codeword from the start
        state.used[REST] = -2
        state.used[WORDS] = state.used[COLUMNS] = state.words[0, 0] = state.holders[0, 0] = 1
        state.column_at[0] = 0
        state.word_prints[:, 0] = state.atom_prints[:, 0]
    return state


#: So many refusals are remembered.
_REFUSED = 4096
_OF_ATOMS = (
    "sizes",
    "held",
    "row_at",
    "column_at",
    "child",
    "sibling",
    "first",
    "first_held",
    "support",
)


def grown(state: State, needed: npt.NDArray[np.int64]) -> State:
    """Return the state with space for so many atoms, rows, words, columns of words and entries."""
    there, short = state.used, int(state.used[SHORT])
    if short:  # as many rows may move as there are
        needed = np.maximum(needed, [0, 2 * there[ROWS] + 1, 0, 0, 0])
    atoms, rows = _more(state.sizes.size, needed[ATOMS]), _more(state.pivots.size, needed[ROWS])
    words, columns = _more(state.own.size, needed[WORDS]), _more(state.word_atoms.size, needed[COLUMNS])  # fmt: skip
    shapes: dict[str, tuple[int, ...]] = {
        **dict.fromkeys((*_OF_ATOMS, "rest", "value", "met"), (atoms,)),
        "atom_prints": (2, atoms), "held_prints": (2, atoms),
        **dict.fromkeys(("pivots", "starts", "ends", "known"), (rows,)), "todo": ((rows >> 6) + 1,),
        "words": (words, columns), "own": (words,), "word_prints": (2, words),
        "holders": (columns, (words + 63) >> 6), "word_atoms": (columns,),
    }  # fmt: skip
    # Only what is in use is copied: the rest takes no memory yet.
    used = {"words": (there[WORDS], there[COLUMNS])}
    wider: dict[str, Any] = {  # Any: arrays of several types
        name: _wider(getattr(state, name), shape, used.get(name, ()))
        for name, shape in shapes.items()
    }
    state = state._replace(**wider)
    if needed[ENTRIES] > state.entries.size or short:
        state = _repacked(state, max(short, int(needed[ENTRIES] - there[ENTRIES])))
    return state


def _repacked(state: State, more: int) -> State:
    """Return the state without entries that no row has any more, and with space for others."""
    rows = state.used[ROWS]
    size = int((state.ends[:rows] - state.starts[:rows]).sum())
    entries = np.zeros(3 * size + more + 8 * int(state.used[ATOMS]), np.int32)
    repacked = state._replace(entries=entries, values=np.zeros(entries.size, np.int32))
    state.used[ENTRIES] = _repack(state, repacked.entries, repacked.values)
    state.used[SHORT] = 0
    return repacked


@kernel
def _repack(state: State, entries: npt.NDArray[np.int32], values: Residues) -> int:
    """Write the entries of all rows one after another; return how many there are."""
    at = 0
    for row in range(state.used[ROWS]):
        start = at
        for e in range(state.starts[row], state.ends[row]):
            entries[at], values[at] = state.entries[e], state.values[e]
            at += 1
        state.starts[row], state.ends[row] = start, at
    return at


def _more(there: int, needed: np.int64) -> int:
    """Return how long to make an array: by half more than it is, if it is too short."""
    return there if needed <= there else max(int(needed), there + there // 2)


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
