"""Compiled steps of a decision: what one more answered sum would disclose."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from discreet.audit.history.bits import low_bit
from discreet.audit.history.codewords import are_low_weight, is_known, together
from discreet.audit.history.field import Matrix, Vector, inverse, negative, residue
from discreet.audit.history.rows import (
    clear,
    eliminate,
    freed_values,
    rest_place,
    set_apart,
)
from discreet.audit.history.state import ATOMS, REST, ROWS, State
from discreet.compiling import inner, kernel

__all__ = ["KNOWN", "NEW", "SPACE", "UNSAFE", "Plan", "decide"]

Ids = npt.NDArray[np.int64]
#: The last one says that there was no space to decide.
UNSAFE, KNOWN, NEW, SPACE = range(4)


class Plan(NamedTuple):
    """What one more answer would change in the history."""

    status: int
    touched: Ids  # atoms that hold records of the query set …
    inner: Vector  # … how many …
    first: Vector  # … and the first profile of these
    inner_prints: Matrix  # two fingerprints of these
    pivot: Vector  # of the new row: atom (−1: it is a word), whether inside
    freed: int  # how many of the last rows become words
    no_rest: bool  # whether the rest does
    atoms: Ids  # where the new row is not zero …
    outside: Vector  # … its values outside the query set …
    inside: Vector  # … and inside
    word_atoms: Ids  # where new codewords are not zero …
    words_outside: Matrix  # … their values, as those of the row
    words_inside: Matrix
    word_prints: Matrix


@kernel
def decide(state: State, places: Ids, given: bool) -> Plan:
    """Decide whether the sum over some profiles may be answered; the history stays as it is.

    A sum that has been `given` already is never unsafe.
    """
    touched = _touch(state, places)
    inner, first = state.held[touched], state.first_held[touched]
    inner_prints = _take_prints(state, touched)
    total = inner.sum()
    apart = state.records - total
    if total == 0 or (not given and (total < state.k or 0 < apart < state.k)):
        plan = _bare(UNSAFE, touched, inner, first, inner_prints)
    else:
        freed = set_apart(state, touched)
        if freed < 0:
            plan = _bare(SPACE, touched, inner, first, inner_prints)
        else:
            plan = _judged(state, touched, inner, first, inner_prints, freed, given)
    state.held[touched] = 0
    return plan


@inner
def _bare(status: int, touched: Ids, inner: Vector, first: Vector, inner_prints: Matrix) -> Plan:
    none, nothing = np.empty(0, np.int64), np.empty((0, 0), np.int64)
    return Plan(
        status, touched, inner, first, inner_prints, none, 0, False, none, none, none, none, nothing,
        nothing, nothing,
    )  # fmt: skip


@inner
def _touch(state: State, places: Ids) -> Ids:
    """Count the records of a query set in each atom; return the atoms it touches, in order."""
    # Local names: reading them from the state inside a loop would count references to the arrays.
    counts, atoms, held, secret = state.counts, state.atom, state.held, state.secret
    held_prints, first_held = state.held_prints, state.first_held
    met = np.zeros((state.used[ATOMS] + 63) >> 6, np.uint64)
    for place in places:
        count = counts[place]
        if count > 0:
            atom = atoms[place]
            if held[atom] == 0 or place < first_held[atom]:
                first_held[atom] = place
            met[atom >> 6] |= np.uint64(1) << np.uint64(atom & 63)
            held[atom] += count
            held_prints[0, atom] += secret[0, place]
            held_prints[1, atom] += secret[1, place]
    found = np.empty(min(places.size, state.used[ATOMS]), np.int64)
    number = 0
    for w in range(met.size):
        left = met[w]
        while left != np.uint64(0):
            atom = (w << 6) + low_bit(left)
            left &= left - np.uint64(1)
            found[number] = atom
            number += 1
            if held[atom] == state.sizes[atom]:
                state.first[atom] = first_held[atom]
    return found[:number]


@inner
def _take_prints(state: State, touched: Ids) -> Matrix:
    """Return the fingerprints of the query set in each atom, and clear the accumulators."""
    held_prints, p = state.held_prints, state.prime
    each = np.empty((2, touched.size), np.int64)
    for which in range(2):
        for place in range(touched.size):
            each[which, place] = residue(held_prints[which, touched[place]], p)
            held_prints[which, touched[place]] = 0
    return each


@inner
def _judged(
    state: State,
    touched: Ids,
    inner: Vector,
    first: Vector,
    inner_prints: Matrix,
    freed: int,
    given: bool,
) -> Plan:
    number = touched.size
    for n in range(number):
        state.support[n] = touched[n]
        state.met[touched[n]] = True
    number = eliminate(state, number, state.used[ROWS] - freed, True)
    place = rest_place(state)
    no_rest = place < 0 and state.used[REST] != -2
    if place >= 0:
        number = _less_rest(state, number, place)
    atoms, outside, inside = _parts(state, number)
    pivot = _pivot(state, atoms, outside, inside)
    clear(state, number)
    is_word = pivot[0] < 0
    if not freed and not no_rest:
        if not is_word:
            none, nothing = np.empty(0, np.int64), np.empty((0, 0), np.int64)
            return Plan(
                NEW, touched, inner, first, inner_prints, pivot, 0, False, atoms, outside, inside, none,
                nothing, nothing, nothing,
            )  # fmt: skip
        if atoms.size == 0:
            return _bare(KNOWN, touched, inner, first, inner_prints)
    rows = np.zeros((freed + no_rest, state.used[ATOMS]), np.int64)
    for n in range(freed):
        rows[n] = freed_values(state, state.used[ROWS] - freed + n)
    if no_rest:
        rows[freed] = state.rest[: state.used[ATOMS]]
    if rows.shape[0] == 0:
        words = atoms, outside.reshape((1, atoms.size)), inside.reshape((1, atoms.size))
    elif is_word and atoms.size > 0:
        words = together(rows, atoms, outside, inside, 1)
    else:
        words = together(rows, atoms[:0], outside[:0], inside[:0], 0)
    prints = _prints(state, touched, inner_prints, words[0], words[1], words[2])
    if rows.shape[0] == 0 and is_known(state, words[0], words[1][0], prints[0]):
        return _bare(KNOWN, touched, inner, first, inner_prints)
    light = not given and are_low_weight(state, words[0], words[1], words[2], prints)
    return Plan(
        UNSAFE if light else NEW, touched, inner, first, inner_prints, pivot, freed, no_rest, atoms, outside,
        inside, words[0], words[1], words[2], prints,
    )  # fmt: skip


@inner
def _less_rest(state: State, number: int, place: int) -> int:
    """Subtract the rest from the new row, if nothing of this is left in parts of k records."""
    p, k, atoms = state.prime, state.k, state.used[ATOMS]
    rest, value, held, sizes = state.rest, state.value, state.held, state.sizes
    here = int(value[place])
    if 2 * held[place] >= sizes[place]:
        here = residue(here + 1, p)
    if here == 0:
        return number
    factor = negative(residue(here * inverse(int(rest[place]), p), p), p)
    for atom in range(atoms):
        left = residue(value[atom] + factor * rest[atom], p)
        if (left != 0 and sizes[atom] - held[atom] >= k) or (left != p - 1 and held[atom] >= k):
            return number
    for atom in range(atoms):
        if rest[atom] != 0:
            value[atom] = residue(value[atom] + factor * rest[atom], p)
            if not state.met[atom]:
                state.met[atom] = True
                state.support[number] = atom
                number += 1
    return number


@inner
def _parts(state: State, number: int) -> tuple[Ids, Vector, Vector]:
    """Return the atoms where the new row is not zero, and its values outside and inside the query.

    Atoms wholly inside or wholly outside have one value.
    """
    p, sizes, held = state.prime, state.sizes, state.held
    atoms, outside, inside = np.empty((3, number), np.int64)
    found = 0
    for n in range(number):
        atom = state.support[n]
        outer = int(state.value[atom])
        inner = residue(outer + 1, p)
        if held[atom] == 0:
            inner = outer
        elif held[atom] == sizes[atom]:
            outer = inner
        if outer != 0 or inner != 0:
            atoms[found], outside[found], inside[found] = atom, outer, inner
            found += 1
    return atoms[:found].copy(), outside[:found].copy(), inside[:found].copy()


@inner
def _pivot(state: State, atoms: Ids, outside: Vector, inside: Vector) -> Vector:
    """Return the first part of k records, its atom and whether it is inside; −1 if there is none."""
    k, sizes, all_held = state.k, state.sizes, state.held
    pivot, best = np.array([-1, 0]), state.counts.size
    for n in range(atoms.size):
        atom = atoms[n]
        held, first = all_held[atom], state.first[atom]
        if held >= k and inside[n] != 0 and state.first_held[atom] < best:
            best, pivot[0], pivot[1] = state.first_held[atom], atom, 1
        if sizes[atom] - held >= k and outside[n] != 0 and first < best:
            if held == 0 or state.first_held[atom] > first:
                best, pivot[0], pivot[1] = first, atom, 0
            elif state.first_held[atom] + 1 < best:
                best, pivot[0], pivot[1] = state.first_held[atom] + 1, atom, 0
    return pivot


@inner
def _prints(
    state: State, touched: Ids, inner_prints: Matrix, atoms: Ids, outside: Matrix, inside: Matrix
) -> Matrix:
    """Return two fingerprints of each codeword."""
    p = state.prime
    at = np.full(state.used[ATOMS], -1, np.int64)
    at[touched] = np.arange(touched.size)
    prints = np.zeros((outside.shape[0], 2), np.int64)
    for n in range(atoms.size):
        for which in range(2):
            within = inner_prints[which, at[atoms[n]]] if at[atoms[n]] >= 0 else 0
            without = residue(state.atom_prints[which, atoms[n]] + p - within, p)
            for row in range(prints.shape[0]):
                more = residue(outside[row, n] * without, p) + residue(inside[row, n] * within, p)
                prints[row, which] = residue(prints[row, which] + more, p)
    return prints
