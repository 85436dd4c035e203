"""Pivots: one atom of at least k records for each answer, where the rows are independent."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.audit.history.combination import Combination, combination_at, values_everywhere
from discreet.audit.history.field import (
    Matrix,
    Place,
    Vector,
    inverse,
    lookup,
    negative,
    replace_pivot,
    residue,
    row_of,
    times,
)
from discreet.audit.history.state import ATOMS, HINT, RANK, State
from discreet.compiling import inner

__all__ = ["find_pivot", "find_pivot_elsewhere", "lost_pivots", "ones_at_pivots", "taken_out"]

Ids = npt.NDArray[np.int64]
#: A split pivot with at least so many times k records in both parts is taken before all others: it
#: touches a single row of the inverse.
AMPLE = 8
#: Atoms looked at together.
_CHUNK = 1024


@inner
def lost_pivots(state: State, touched: Ids, inner: Vector) -> Ids:
    """Return the pivots that the query would split into parts below k and that cannot be moved.

    Others are moved at once: another pivot is as good whether or not the query is answered.
    """
    sizes, row_at, k = state.sizes, state.row_at, state.k
    lost = np.empty(touched.size, np.int64)
    number = 0
    for place in range(touched.size):
        atom = touched[place]
        part = max(inner[place], sizes[atom] - inner[place])
        if part < k and row_at[atom] >= 0 and not _move_pivot(state, atom):
            lost[number] = atom
            number += 1
    return lost[:number]


@inner
def _move_pivot(state: State, atom: int) -> bool:
    """Move a pivot to the largest part where its row is not zero; return whether there is one."""
    r, place, p = state.used[RANK], state.row_at[atom], state.prime
    values = values_everywhere(state, row_of(state.inverse, place, r))
    best = state.k - 1
    found: Place = np.int64(-1)  # the compiler takes a constant for a type of its own
    for other in range(values.size):
        if values[other] != 0:
            part = max(state.held[other], state.sizes[other] - state.held[other])
            if part > best:
                best, found = part, other
    if found < 0:
        return False
    inverse_ = state.inverse
    column = times(inverse_.blocks, inverse_.at, inverse_.turned, state.members, found, r, p)
    replace_pivot(state.inverse, r, place, column, p)
    state.row_at[atom] = -1
    state.row_at[found] = place
    state.pivots[place] = found
    return True


@inner
def ones_at_pivots(state: State, touched: Ids, inner: Vector) -> Ids:
    """Return the pivots at which the new row is one: those whose larger part lies inside."""
    sizes, row_at = state.sizes, state.row_at
    ones = np.empty(touched.size, np.int64)
    number = 0
    for place in range(touched.size):
        row = row_at[touched[place]]
        if row >= 0 and 2 * inner[place] >= sizes[touched[place]]:
            ones[number] = row
            number += 1
    return ones[:number]


@inner
def taken_out(state: State, lost: Ids, coefficients: Vector) -> tuple[Ids, Matrix]:
    """Eliminate one answer for each lost pivot from the coefficients.

    Returns these answers, and the combinations that are one at the lost pivot and zero at other
    pivots, each without the answers eliminated before it.
    """
    r = state.used[RANK]
    queries = np.empty(lost.size, np.int64)
    rows = np.zeros((lost.size, r), np.int64)
    for n in range(lost.size):
        rows[n] = row_of(state.inverse, state.row_at[lost[n]], r)
        for before in range(n):
            _clear(rows[n], rows[before], queries[before], state.prime)
        queries[n] = np.flatnonzero(rows[n])[0]
        _clear(coefficients, rows[n], queries[n], state.prime)
    return queries, rows


@inner
def _clear(vector: Vector, row: Vector, place: int, p: int) -> None:
    """Subtract a multiple of a row that leaves zero at a place."""
    if vector[place] != 0:
        factor = residue(negative(vector[place], p) * inverse(row[place], p), p)
        for j in range(vector.size):
            vector[j] = residue(vector[j] + factor * row[j], p)


@inner
def find_pivot(
    state: State, touched: Ids, inner: Vector, combination: Combination, pivot: Vector
) -> None:
    """Find a pivot of the new row among the atoms it touches, if there is one."""
    k, p, sizes, row_at, members = state.k, state.prime, state.sizes, state.row_at, state.members
    coefficients, used, mask = combination
    best, chosen = AMPLE * k - 1, -1
    for place in range(touched.size):
        atom = touched[place]
        both = min(inner[place], sizes[atom] - inner[place])
        if both > best and row_at[atom] >= 0:
            best, chosen = both, place
    if chosen >= 0:
        # The combination equals the row in the part of the pivot, so not in the other one.
        atom = touched[chosen]
        pivot[0], pivot[1], pivot[2] = atom, 1 if 2 * inner[chosen] < sizes[atom] else 0, 1
        return
    for ample in (True, False):
        best = k - 1
        for place in range(touched.size):
            atom, held = touched[place], inner[place]
            rest = sizes[atom] - held
            if (min(held, rest) >= k) != ample or (held <= best and rest <= best):
                continue
            value = lookup(coefficients, used, mask, members, atom, p)
            if held > best and value != 1:
                best = held
                pivot[0], pivot[1] = atom, 1
            if rest > best and value != 0:
                best = rest
                pivot[0], pivot[1] = atom, 0
        # The two parts of a split atom differ by one, so in one of them the row is not zero.
        if pivot[0] >= 0:
            return


@inner
def find_pivot_elsewhere(state: State, combination: Combination, pivot: Vector) -> None:
    """Find a pivot at an atom outside the query set; the caller knows that there is one."""
    atoms, sizes, held, k = state.used[ATOMS], state.sizes, state.held, state.k
    found, values = np.empty(_CHUNK, np.int64), np.empty(_CHUNK, np.int64)
    chunks = (atoms + _CHUNK - 1) // _CHUNK
    for n in range(chunks):
        # The chunk where the last one was found comes first.
        chunk = (state.used[HINT] + n) % chunks
        # Large atoms make good pivots, so smaller ones are looked at only if there is none.
        for least, most in ((16 * k, state.records), (4 * k, 16 * k - 1), (k, 4 * k - 1)):
            number = 0
            for atom in range(chunk * _CHUNK, min((chunk + 1) * _CHUNK, atoms)):
                found[number] = atom
                number += least <= sizes[atom] <= most and held[atom] == 0
            combination_at(state, combination, found[:number], values)
            best = 0
            for place in range(number):
                if values[place] != 0 and sizes[found[place]] > best:
                    best = sizes[found[place]]
                    pivot[0], pivot[1] = found[place], 0
            if best > 0:
                state.used[HINT] = chunk
                return
