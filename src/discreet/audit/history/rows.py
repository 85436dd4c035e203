"""Rows in echelon form: each is one at its pivot, where all later rows are zero.

Rows stay as they were written, so a new one costs no change of the others, and they stay sparse: most
differ from zero on few atoms, and as pivots are taken in one order, that of the profiles, differences of
questions about ranges are again about ranges. An entry counts for its atom and for all that were split off from
it since; rows are written anew, with these, when they are used.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.audit.history.bits import low_bit
from discreet.audit.history.field import (
    Place,
    Residues,
    Vector,
    add_residue,
    inverse,
    negative,
    residue,
)
from discreet.audit.history.state import ATOMS, ENTRIES, RANK, REST, ROWS, SHORT, State
from discreet.compiling import inner

__all__ = ["append", "clear", "eliminate", "freed_values", "is_inside", "rest_place", "set_apart"]

Ids = npt.NDArray[np.int64]


@inner
def eliminate(state: State, number: int, limit: int, asked: bool) -> int:
    """Make the vector looked at zero at the pivots of all rows before `limit`.

    Its first `number` places of `support` are known; returns how many there are afterwards. The
    value at an atom is that of the part outside the question; inside it is one more, if `asked`.
    """
    p = state.prime
    # Handing over the whole state, or reading it in a loop, counts references to all its arrays.
    value, met, support, todo = state.value, state.met, state.support, state.todo
    row_at, pivots, starts, ends = state.row_at, state.pivots, state.starts, state.ends
    held, sizes, k, known, atoms = state.held, state.sizes, state.k, state.known, state.used[ATOMS]
    first, first_held = state.first, state.first_held
    entries, values = state.entries, state.values
    for n in range(number):
        row = row_at[support[n]]
        if 0 <= row < limit:
            todo[row >> 6] |= np.uint64(1) << np.uint64(row & 63)
    for w in range((limit + 63) >> 6):
        while todo[w] != np.uint64(0):
            row = int((w << 6) + low_bit(todo[w]))
            todo[w] &= todo[w] - np.uint64(1)
            pivot = pivots[row]
            there = int(value[pivot])
            if asked and held[pivot] >= k:
                rest = sizes[pivot] - held[pivot]
                if rest < k or first_held[pivot] <= first[pivot]:
                    there = residue(there + 1, p)
            if there == 0:
                continue
            start, end = starts[row], ends[row]
            if known[row] != atoms:
                entries, values, start, end = _expanded(state, row)
            factor = p - there
            high = (factor << 32) // p
            for e in range(start, end):
                atom = entries[e]
                value[atom] = add_residue(value[atom], values[e], factor, high, p)
                if not met[atom]:
                    met[atom] = True
                    support[number] = atom
                    number += 1
                    later = row_at[atom]
                    if row < later < limit:
                        todo[later >> 6] |= np.uint64(1) << np.uint64(later & 63)
            entries, values = state.entries, state.values
    return number


@inner
def is_inside(state: State, atom: int) -> bool:
    """Whether a question that splits an atom has its pivot inside.

    It stays with the first profile of the atom, unless fewer than k records do.
    """
    held, k = state.held[atom], state.k
    stays = state.first_held[atom] <= state.first[atom] or state.sizes[atom] - held < k
    return bool(held >= k and stays)


@inner
def _expanded(state: State, row: int) -> tuple[npt.NDArray[np.int32], Residues, int, int]:
    """Return where the entries of a row are, one for each atom where it is not zero."""
    start, end, known = state.starts[row], state.ends[row], state.known[row]
    entries, values, child, sibling = state.entries, state.values, state.child, state.sibling
    atoms = state.used[ATOMS]
    if known == atoms:
        return entries, values, start, end
    grown = False
    for e in range(start, end):
        if child[entries[e]] >= known:
            grown = True
            break
    if not grown:
        state.known[row] = atoms
        return entries, values, start, end
    at = state.used[ENTRIES]
    fits = at + atoms <= entries.size
    to, numbers = entries, values
    if not fits:  # nothing is kept
        state.used[SHORT] = 4 * atoms
        at, to, numbers = np.int64(0), np.empty(atoms, np.int32), np.empty(atoms, np.int32)
    stop = at
    for e in range(start, end):
        to[stop], numbers[stop] = entries[e], values[e]
        stop += 1
    n = at
    while n < stop:
        other = child[to[n]]
        while other >= known:
            to[stop], numbers[stop] = other, numbers[n]
            stop += 1
            other = sibling[other]
        n += 1
    if fits:
        state.starts[row], state.ends[row], state.known[row] = at, stop, atoms
        state.used[ENTRIES] = stop
    return to, numbers, at, stop


@inner
def clear(state: State, number: int) -> None:
    """Forget the vector looked at."""
    for n in range(number):
        atom = state.support[n]
        state.value[atom] = 0
        state.met[atom] = False


@inner
def append(state: State, atoms: Ids, values: Vector, pivot: int) -> None:
    """Add a row that is zero at all pivots so far; there is space for it."""
    p, row, at = state.prime, state.used[ROWS], state.used[ENTRIES]
    scale = 0
    for n in range(atoms.size):
        if atoms[n] == pivot:
            scale = inverse(values[n], p)
    less = negative(residue(int(state.rest[pivot]) * scale, p), p)
    state.starts[row] = at
    for n in range(atoms.size):
        atom, value = atoms[n], values[n]
        if value == 0:
            continue
        state.entries[at], state.values[at] = atom, residue(value * scale, p)
        at += 1
        if less != 0:
            state.rest[atom] = residue(state.rest[atom] + less * value, p)
    state.ends[row], state.known[row], state.pivots[row] = at, state.used[ATOMS], pivot
    state.row_at[pivot] = row
    state.used[ENTRIES], state.used[ROWS] = at, row + 1
    state.used[RANK] += 1
    place = state.used[REST]
    if place >= 0 and state.rest[place] == 0:
        state.used[REST] = -1


@inner
def rest_place(state: State) -> int:
    """Return an atom that a question leaves a part of k records where the rest is not zero, or −1."""
    place = state.used[REST]
    if place == -2:
        return -1
    if place >= 0 and _part(state, place) >= state.k:
        return int(place)
    rest, held, sizes = state.rest, state.held, state.sizes
    best, found = state.k - 1, -1
    for atom in range(state.used[ATOMS]):
        part = max(held[atom], sizes[atom] - held[atom])
        if rest[atom] != 0 and part > best:
            best, found = part, atom
    if found >= 0:
        state.used[REST] = found
    return found


@inner
def _part(state: State, atom: int) -> int:
    return int(max(state.held[atom], state.sizes[atom] - state.held[atom]))


@inner
def set_apart(state: State, touched: Ids) -> int:
    """Move rows whose pivots a question would split into parts below k to other pivots, at the end.

    Another pivot is as good whether or not the question is answered. Returns how many rows, the
    last ones, have none that the question leaves; −1 if there is no space.
    """
    lost = np.empty(touched.size, np.int64)
    number = 0
    for atom in touched:
        if state.row_at[atom] >= 0 and _part(state, atom) < state.k:
            lost[number] = state.row_at[atom]
            number += 1
    if number == 0:
        return 0
    space = state.used[ENTRIES] + 2 * (number + 1) * state.used[ATOMS]
    if space > state.entries.size or state.used[ROWS] + number > state.pivots.size:
        state.used[SHORT] = space
        return -1
    lost = np.sort(lost[:number])
    for row in lost:
        state.row_at[state.pivots[row]] = -1
    left = 0
    for again in (False, True):
        for n in range(number):
            if lost[n] >= 0 and _moved(state, lost[n], again):
                left += again
                lost[n] = -1
    return left


@inner
def _moved(state: State, row: int, everywhere: bool) -> bool:
    """Write a row anew behind all others, with a pivot that a question leaves, or with any."""
    number = _load(state, row)
    number = eliminate(state, number, state.used[ROWS], False)
    pivot: Place = np.int64(-1)
    for n in range(number):
        atom = state.support[n]
        part = state.sizes[atom] if everywhere else _part(state, atom)
        sooner = pivot < 0 or state.first[atom] < state.first[pivot]
        if sooner and state.value[atom] != 0 and part >= state.k:
            pivot = atom
    if pivot >= 0:
        atoms = state.support[:number].copy()
        values = np.empty(number, np.int64)
        for n in range(number):
            values[n] = state.value[atoms[n]]
        state.starts[row] = state.ends[row] = 0
        state.pivots[row] = -1
        state.used[RANK] -= 1
        append(state, atoms, values, int(pivot))
    clear(state, number)
    return bool(pivot >= 0)


@inner
def _load(state: State, row: int) -> int:
    """Look at a row; return how many places of the support it takes."""
    entries, values, start, end = _expanded(state, row)
    for e in range(start, end):
        atom = entries[e]
        state.value[atom] = values[e]
        state.met[atom] = True
        state.support[e - start] = atom
    return int(end - start)


@inner
def freed_values(state: State, row: int) -> Vector:
    """Return the values of a row at all atoms."""
    out = np.zeros(state.used[ATOMS], np.int64)
    entries, values, start, end = _expanded(state, row)
    for e in range(start, end):
        out[entries[e]] = values[e]
    return out
