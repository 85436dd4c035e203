"""Compiled steps of a decision: what one more answered sum would disclose."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from discreet.audit.history.bits import low_bit
from discreet.audit.history.codewords import (
    are_low_weight,
    codeword,
    is_known,
    new_codewords,
    prints_left,
)
from discreet.audit.history.combination import (
    Combination,
    combination_at,
    combined,
    print_of,
    value_at,
)
from discreet.audit.history.field import Matrix, Vector, combine, negative, residue
from discreet.audit.history.pivots import (
    find_pivot,
    find_pivot_elsewhere,
    lost_pivots,
    ones_at_pivots,
    taken_out,
)
from discreet.audit.history.state import ATOMS, RANK, SMALL, State
from discreet.compiling import inner, kernel

__all__ = ["KNOWN", "NEW", "UNSAFE", "Plan", "decide"]

Ids = npt.NDArray[np.int64]
UNSAFE, KNOWN, NEW = range(3)


class Plan(NamedTuple):
    """What one more answer would change in the history."""

    status: int
    touched: Ids  # atoms that hold records of the query set …
    inner: Vector  # … and how many
    inner_prints: Matrix  # two fingerprints of these
    prints: Vector  # of the query set
    coefficients: Vector  # of the answers that equal it at all pivots
    pivot: Vector  # of the new row less these: atom, whether inside, whether others cannot tell
    lost: Ids  # atoms that are no longer pivots …
    queries: Ids  # … and the answers taken out with them
    new_atoms: Ids  # atoms where new codewords are not zero
    outside: Matrix  # values there of each new codeword, outside the query set …
    inside: Matrix  # … and inside
    new_prints: Matrix


@kernel
def decide(state: State, places: Ids, given: bool) -> Plan:
    """Decide whether the sum over some profiles may be answered; the history stays as it is.

    A sum that has been `given` already is never unsafe.
    """
    touched = _touch(state, places)
    inner = state.held[touched]
    inner_prints, prints = _take_prints(state, touched)
    total = inner.sum()
    apart = state.records - total
    if total == 0 or (not given and (total < state.k or 0 < apart < state.k)):
        plan = _bare(UNSAFE, touched, inner, inner_prints, prints)
    else:
        plan = _judged(state, touched, inner, inner_prints, prints, given)
    state.held[touched] = 0
    return plan


@inner
def _bare(status: int, touched: Ids, inner: Vector, inner_prints: Matrix, prints: Vector) -> Plan:
    none = np.empty(0, np.int64)
    nothing = np.empty((0, 0), np.int64)
    return Plan(
        status, touched, inner, inner_prints, prints, none, none, none, none, none, nothing,
        nothing, nothing,
    )  # fmt: skip


@inner
def _touch(state: State, places: Ids) -> Ids:
    """Count the records of a query set in each atom; return the atoms it touches, in order."""
    # Local names: reading them from the state inside a loop would count references to the arrays.
    counts, atoms, held, secret = state.counts, state.atom, state.held, state.secret
    held_prints = state.held_prints
    met = np.zeros((state.used[ATOMS] + 63) >> 6, np.uint64)
    for place in places:
        count = counts[place]
        if count > 0:
            atom = atoms[place]
            met[atom >> 6] |= np.uint64(1) << np.uint64(atom & 63)
            held[atom] += count
            held_prints[0, atom] += secret[0, place]
            held_prints[1, atom] += secret[1, place]
    found = np.empty(min(places.size, state.used[ATOMS]), np.int64)
    number = 0
    for w in range(met.size):
        left = met[w]
        while left != np.uint64(0):
            found[number] = (w << 6) + low_bit(left)
            left &= left - np.uint64(1)
            number += 1
    return found[:number]


@inner
def _take_prints(state: State, touched: Ids) -> tuple[Matrix, Vector]:
    """Return the fingerprints of the query set in each atom and in all, and clear the accumulators."""
    held_prints, p = state.held_prints, state.prime
    each, total = np.empty((2, touched.size), np.int64), np.zeros(2, np.int64)
    for which in range(2):
        for place in range(touched.size):
            value = residue(held_prints[which, touched[place]], p)
            held_prints[which, touched[place]] = 0
            each[which, place] = value
            total[which] += value
        total[which] = residue(total[which], p)
    return each, total


@inner
def _judged(
    state: State, touched: Ids, inner: Vector, inner_prints: Matrix, prints: Vector, given: bool
) -> Plan:
    r = state.used[RANK]
    lost = lost_pivots(state, touched, inner)
    coefficients, mask = combine(
        state.inverse.blocks, state.inverse.at, state.inverse.marks,
        ones_at_pivots(state, touched, inner), r, state.prime,
    )  # fmt: skip
    queries, freed = taken_out(state, lost, coefficients)
    combination = Combination(coefficients, np.flatnonzero(mask), mask)
    if lost.size > 0:
        combination = combined(coefficients)
    left = prints_left(state, combination, prints)
    pivot, values = np.array([-1, 0, 0]), np.zeros(0, np.int64)
    sizes = state.sizes
    whole = True
    for place in range(touched.size):
        whole = whole and inner[place] == sizes[touched[place]]
    if not whole:  # split atoms mostly hold a pivot
        find_pivot(state, touched, inner, combination, pivot)
    if pivot[0] < 0:
        if _vanishes(state, touched, inner, inner_prints, combination):
            if whole:
                return _judged_whole(
                    state, touched, inner, inner_prints, prints, combination, left, given
                )
            values = _small_values(state, touched, inner, combination)
        else:
            if whole:
                find_pivot(state, touched, inner, combination, pivot)
            if pivot[0] < 0:
                find_pivot_elsewhere(state, combination, pivot)
    is_word = pivot[0] < 0
    number = lost.size + (1 if is_word else 0)
    if number == 0:
        nothing = np.empty((0, 0), np.int64)
        return Plan(
            NEW, touched, inner, inner_prints, prints, coefficients, pivot, lost, queries, lost,
            nothing, nothing, nothing,
        )  # fmt: skip
    atoms, outside, inside = new_codewords(state, values, freed, is_word)
    new_prints = np.empty((number, 2), np.int64)
    for row in range(lost.size):
        given_ = combined(freed[row])
        for which in range(2):
            new_prints[row, which] = print_of(given_, state.prints[which], state.prime)
    if is_word:
        new_prints[lost.size] = left
    light = not given and are_low_weight(state, atoms, outside, inside)
    return Plan(
        UNSAFE if light else NEW, touched, inner, inner_prints, prints, coefficients, pivot, lost, queries,
        atoms, outside, inside, new_prints,
    )  # fmt: skip


@inner
def _judged_whole(
    state: State, touched: Ids, inner: Vector, inner_prints: Matrix, prints: Vector,
    combination: Combination, left: Vector, given: bool,
) -> Plan:  # fmt: skip
    """Decide on a row that splits no atom and equals a combination of answers at large atoms."""
    atoms, values = np.empty(0, np.int64), np.empty(0, np.int64)
    if left[0] != 0 or left[1] != 0:
        atoms, values = codeword(state, touched, combination, left)
        if not is_known(state, atoms, values, left):
            light = not given and are_low_weight(
                state, atoms, values.reshape((1, values.size)), values.reshape((1, values.size))
            )
            return Plan(
                UNSAFE if light else NEW, touched, inner, inner_prints, prints, combination.coefficients,
                np.array([-1, 0, 0]), atoms[:0], atoms[:0], atoms, values.reshape((1, values.size)),
                values.reshape((1, values.size)), left.reshape((1, 2)),
            )  # fmt: skip
    return _bare(KNOWN, touched, inner, inner_prints, prints)


@inner
def _vanishes(
    state: State, touched: Ids, inner: Vector, inner_prints: Matrix, combination: Combination
) -> bool:
    """Whether the new row equals a combination of answers in all parts of k records or more.

    Fingerprints are compared, which is quicker than comparing values atom by atom.
    """
    p, k, sizes = state.prime, state.k, state.sizes
    for place in range(touched.size):
        if min(inner[place], sizes[touched[place]] - inner[place]) >= k:
            return False  # the two parts of a split atom differ by one
    for which in range(2):
        left = negative(print_of(combination, state.large_prints[which], p), p)
        for place in range(touched.size):
            atom, held = touched[place], inner[place]
            if held >= k:
                left += inner_prints[which, place]
            if _has_small_part(sizes[atom], held, k):
                # The atom is large, so its whole fingerprint is in those of the answers.
                part = 0
                if held < k:
                    part = inner_prints[which, place]
                if sizes[atom] - held < k:
                    part += state.atom_prints[which, atom] + p - inner_prints[which, place]
                value = value_at(state.members, combination, atom, state.prime)
                left += residue(value * residue(part, p), p)
        if residue(left, p) != 0:
            return False
    return True


@inner
def _has_small_part(size: int, held: int, k: int) -> bool:
    """Whether a large atom, of which some records are held, has a part that is small."""
    return size >= k and (held < k or 0 < size - held < k)


@inner
def _small_values(state: State, touched: Ids, inner: Vector, combination: Combination) -> Vector:
    """Return the values at all atoms of a combination that equals the new row in large parts."""
    values = np.zeros(state.used[ATOMS], np.int64)
    small = state.small[: state.used[SMALL]]
    there = np.empty(small.size, np.int64)
    combination_at(state, combination, small, there)
    for n in range(small.size):
        values[small[n]] = there[n]
    for place in range(touched.size):
        atom = touched[place]
        if _has_small_part(state.sizes[atom], inner[place], state.k):
            values[atom] = value_at(state.members, combination, atom, state.prime)
        elif state.sizes[atom] >= state.k:
            values[atom] = 1
    return values
