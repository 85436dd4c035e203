"""Compiled steps of a decision: what one more sum would mean, without taking it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from discreet.queries.history.compiling import entry, inner
from discreet.queries.history.field import (
    Matrix,
    Vector,
    combine,
    inverse,
    lookup,
    negative,
    replace_pivot,
    residue,
    tables,
    times,
    values_at,
)
from discreet.queries.history.light_words import EFFORT, any_light, is_light, reduce_by_own
from discreet.queries.history.state import ATOMS, COLUMNS, HINT, RANK, WORDS, State

__all__ = ["KNOWN", "NEW", "UNSAFE", "Plan", "decide"]

Ids = npt.NDArray[np.int64]
UNSAFE, KNOWN, NEW = range(3)
#: A split pivot of so many times k records in both parts is taken before all others: the row of
#: the inverse that it touches is one alone.
ROOMY = 8
#: Atoms looked at together.
_CHUNK = 1024


class Plan(NamedTuple):
    """What one more answer would change."""

    status: int
    touched: Ids  # atoms that hold records of the query set …
    inner: Vector  # … and how many
    prints: Vector  # of the query set
    coefficients: Vector  # of the answers that equal it at all pivots
    pivot: Vector  # of the new row less these: atom, whether inside, whether others cannot tell
    lost: Ids  # atoms that are no longer pivots …
    queries: Ids  # … and the answers taken out with them
    new_atoms: Ids  # atoms that new words live on
    outside: Matrix  # values there of each new word, outside the question …
    inside: Matrix  # … and inside
    new_prints: Matrix


@entry
def decide(state: State, places: Ids, k: int, records: int, given: bool) -> Plan:
    """Say what the sum over some profiles would mean; nothing is taken into the history.

    If the sum has been `given` already, it counts whatever it means.
    """
    touched, prints = _touch(state, places)
    touched.sort()
    inner = state.held[touched]
    total = inner.sum()
    if total == 0 or (not given and (total < k or 0 < records - total < k)):
        plan = _bare(UNSAFE, touched, inner, prints)
    else:
        plan = _judged(state, touched, inner, prints, k, given)
    state.held[touched] = 0
    return plan


@inner
def _bare(status: int, touched: Ids, inner: Vector, prints: Vector) -> Plan:
    none = np.empty(0, np.int64)
    nothing = np.empty((0, 0), np.int64)
    return Plan(
        status, touched, inner, prints, none, none, none, none, none, nothing, nothing, nothing
    )


@inner
def _touch(state: State, places: Ids) -> tuple[Ids, Vector]:
    """Hold the records of some profiles; return the atoms they lie in, and their fingerprints."""
    p = state.prime
    found = np.empty(min(places.size, state.used[ATOMS]), np.int64)
    number = first = second = 0
    for place in places:
        count = state.counts[place]
        if count > 0:
            atom = state.atom[place]
            if state.held[atom] == 0:
                found[number] = atom
                number += 1
            state.held[atom] += count
            first += state.secret[0, place]
            second += state.secret[1, place]
    return found[:number], np.array([residue(first, p), residue(second, p)])


@inner
def _judged(state: State, touched: Ids, inner: Vector, prints: Vector, k: int, given: bool) -> Plan:
    r = state.used[RANK]
    sizes = state.sizes[touched]
    lost = _lost_pivots(state, touched, inner, k)
    coefficients = combine(state.square, state.marks, _ones(state, touched, inner), r, state.prime)
    queries, freed = _taken_out(state, lost, coefficients)
    used, sums = tables(coefficients)
    left = _left(state, coefficients, prints)
    whole = True
    for place in range(touched.size):
        whole = whole and inner[place] == sizes[place]
    if whole and _is_known(state, used, sums, left):
        return _bare(KNOWN, touched, inner, prints)
    pivot = _pivot(state, touched, inner, used, sums, k)
    values = np.zeros(state.used[ATOMS] if pivot[0] < 0 else 0, np.int64)
    if pivot[0] < 0 and used.size > 0:
        _pivot_elsewhere(state, used, sums, values, pivot, k)
    is_word = pivot[0] < 0
    number = lost.size + (1 if is_word else 0)
    if number == 0:
        nothing = np.empty((0, 0), np.int64)
        return Plan(
            NEW, touched, inner, prints, coefficients, pivot, lost, queries, lost, nothing,
            nothing, nothing,
        )  # fmt: skip
    atoms, outside, inside = _new_words(state, values, freed, is_word)
    new_prints = np.empty((number, 2), np.int64)
    for row in range(lost.size):
        new_prints[row] = _printed(state, freed[row])
    if is_word:
        new_prints[lost.size] = left
    light = not given and _are_light(state, atoms, outside, inside, k)
    return Plan(
        UNSAFE if light else NEW, touched, inner, prints, coefficients, pivot, lost, queries,
        atoms, outside, inside, new_prints,
    )  # fmt: skip


# -- pivots --------------------------------------------------------------------------------------
@inner
def _lost_pivots(state: State, touched: Ids, inner: Vector, k: int) -> Ids:
    """Return the pivots that would have no part of k records and cannot be others.

    Those that can are changed: another pivot is as good whether or not the question is answered.
    """
    lost = np.empty(touched.size, np.int64)
    number = 0
    for place in range(touched.size):
        atom = touched[place]
        part = max(inner[place], state.sizes[atom] - inner[place])
        if part < k and state.row_at[atom] >= 0 and not _move_pivot(state, atom, k):
            lost[number] = atom
            number += 1
    return lost[:number]


@inner
def _move_pivot(state: State, atom: int, k: int) -> bool:
    """Give the row with a pivot another one, in the largest part where it is not zero."""
    r, place = state.used[RANK], state.row_at[atom]
    values = _combination(state, state.square[place])
    best, found = k - 1, -1
    for other in range(values.size):
        if values[other] != 0:
            part = max(state.held[other], state.sizes[other] - state.held[other])
            if part > best:
                best, found = part, other
    if found < 0:
        return False
    column = times(state.square, state.marks, state.members, found, r, state.prime)
    replace_pivot(state.square, state.marks, r, place, column, state.prime)
    state.row_at[atom] = -1
    state.row_at[found] = place
    state.pivots[place] = found
    return True


@inner
def _combination(state: State, row: npt.NDArray[np.int64]) -> Vector:
    """Return the values of a combination of answers at all atoms."""
    coefficients = np.empty(state.used[RANK], np.int64)
    for j in range(coefficients.size):
        coefficients[j] = row[j]
    used, sums = tables(coefficients)
    values = np.empty(state.used[ATOMS], np.int64)
    values_at(used, sums, state.members, 0, values.size, values, state.prime)
    return values


@inner
def _ones(state: State, touched: Ids, inner: Vector) -> Ids:
    """Return the pivots at which the new row is one: those whose larger part lies inside."""
    ones = np.empty(touched.size, np.int64)
    number = 0
    for place in range(touched.size):
        row = state.row_at[touched[place]]
        if row >= 0 and 2 * inner[place] >= state.sizes[touched[place]]:
            ones[number] = row
            number += 1
    return ones[:number]


@inner
def _taken_out(state: State, lost: Ids, coefficients: Vector) -> tuple[Ids, Matrix]:
    """Free the coefficients from one answer for each lost pivot.

    Returns these answers, and the combinations that are one at the lost pivot and zero at the
    others, each free from the answers before.
    """
    r = state.used[RANK]
    queries = np.empty(lost.size, np.int64)
    rows = np.zeros((lost.size, r), np.int64)
    for n in range(lost.size):
        for j in range(r):
            rows[n, j] = state.square[state.row_at[lost[n]], j]
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
def _pivot(state: State, touched: Ids, inner: Vector, used: Vector, sums: Matrix, k: int) -> Vector:
    """Return a pivot of the new row among the atoms it touches: −1, 0, 0 if there is none."""
    best, chosen = ROOMY * k - 1, -1
    for place in range(touched.size):
        atom = touched[place]
        both = min(inner[place], state.sizes[atom] - inner[place])
        if both > best and state.row_at[atom] >= 0:
            best, chosen = both, place
    if chosen >= 0:
        # The combination equals the row in the part of the pivot, so not in the other one.
        atom = touched[chosen]
        return np.array([atom, 1 if 2 * inner[chosen] < state.sizes[atom] else 0, 1])
    pivot = np.array([-1, 0, 0])
    for roomy in (True, False):
        best = k - 1
        for place in range(touched.size):
            if best >= ROOMY * k:
                break
            atom, held = touched[place], inner[place]
            rest = state.sizes[atom] - held
            if (min(held, rest) >= k) != roomy or (held <= best and rest <= best):
                continue
            value = lookup(used, sums, state.members, atom, state.prime)
            if held > best and value != 1:
                best = held
                pivot[0], pivot[1] = atom, 1
            if rest > best and value != 0:
                best = rest
                pivot[0], pivot[1] = atom, 0
        # The two parts of a split atom differ by one, so in one of them the row is not zero.
        if pivot[0] >= 0:
            break
    return pivot


@inner
def _pivot_elsewhere(
    state: State, used: Vector, sums: Matrix, values: Vector, pivot: Vector, k: int
) -> None:
    """Find a pivot at an atom that the question does not touch, and stop; else know all values."""
    chunks = (values.size + _CHUNK - 1) // _CHUNK
    for n in range(chunks):
        # Where one was found the last time there may be more.
        chunk = (state.used[HINT] + n) % chunks
        start, stop, best = chunk * _CHUNK, min((chunk + 1) * _CHUNK, values.size), k - 1
        values_at(used, sums, state.members, start, stop, values, state.prime)
        for atom in range(start, stop):
            if values[atom] != 0 and state.held[atom] == 0 and state.sizes[atom] > best:
                best = state.sizes[atom]
                pivot[0], pivot[1] = atom, 0
        if best >= k:
            state.used[HINT] = chunk
            return


# -- what is known already -----------------------------------------------------------------------
@inner
def _printed(state: State, coefficients: Vector) -> Vector:
    """Return the fingerprints of a combination of answers."""
    p = state.prime
    first = second = 0
    for j in range(coefficients.size):
        if coefficients[j] != 0:
            first += residue(coefficients[j] * state.prints[0, j], p)
            second += residue(coefficients[j] * state.prints[1, j], p)
    return np.array([residue(first, p), residue(second, p)])


@inner
def _left(state: State, coefficients: Vector, prints: Vector) -> Vector:
    """Return the fingerprints of the new row less a combination of answers."""
    p = state.prime
    taken = _printed(state, coefficients)
    first, second = negative(taken[0], p), negative(taken[1], p)
    return np.array([residue(prints[0] + first, p), residue(prints[1] + second, p)])


@inner
def _is_known(state: State, used: Vector, sums: Matrix, left: Vector) -> bool:
    """Whether a row that is constant on atoms is a combination of answers and of words."""
    p = state.prime
    first = second = 0
    if left[0] != 0 or left[1] != 0:
        number = state.used[WORDS]
        values = np.zeros(number, np.int64)
        for row in range(used.size):
            subsets, bits = sums[row], state.members[used[row]]
            for word in range(number):
                values[word] += subsets[bits[state.own_atoms[word]]]
        for word in range(number):
            value = 1 if state.held[state.own_atoms[word]] > 0 else 0
            factor = residue(value + negative(residue(values[word], p), p), p)
            if factor != 0:
                first += residue(factor * state.word_prints[0, word], p)
                second += residue(factor * state.word_prints[1, word], p)
    return bool(residue(first, p) == left[0] and residue(second, p) == left[1])


# -- words ---------------------------------------------------------------------------------------
@inner
def _new_words(
    state: State, values: Vector, freed: Matrix, is_word: bool
) -> tuple[Ids, Matrix, Matrix]:
    """Return the atoms that new words live on, and their values there outside and inside.

    They are the combinations freed from the others, and, last, the new row less the combination
    with `values` at the atoms.
    """
    p = state.prime
    atoms = state.used[ATOMS]
    number = freed.shape[0] + (1 if is_word else 0)
    dense = np.empty((number, atoms if freed.shape[0] > 0 else 0), np.int64)
    for row in range(freed.shape[0]):
        dense[row] = _combination(state, freed[row])
    found = np.empty(atoms, np.int64)
    count = 0
    for atom in range(atoms):
        met = is_word and (values[atom] != 0 or state.held[atom] > 0)
        for row in range(freed.shape[0]):
            met = met or dense[row, atom] != 0
        if met:
            found[count] = atom
            count += 1
    found = found[:count]
    outside = np.empty((number, count), np.int64)
    for place in range(count):
        for row in range(freed.shape[0]):
            outside[row, place] = dense[row, found[place]]
        if is_word:
            outside[number - 1, place] = values[found[place]]
    inside = outside.copy()
    if is_word:
        for place in range(found.size):
            held, size = state.held[found[place]], state.sizes[found[place]]
            value = outside[number - 1, place]
            outer, inner = negative(value, p), residue(1 + negative(value, p), p)
            # Atoms wholly inside or wholly outside have one value.
            outside[number - 1, place] = inner if held == size else outer
            inside[number - 1, place] = outer if held == 0 else inner
    return found, outside, inside


@inner
def _are_light(state: State, atoms: Ids, outside: Matrix, inside: Matrix, k: int) -> bool:
    """Whether new words, with those there, would isolate fewer than k records."""
    if outside.shape[0] > 1:
        return _are_light_together(state, atoms, outside, inside, k)
    m, columns = state.used[WORDS], state.used[COLUMNS]
    budget = k - 1
    within = np.zeros(columns, np.int64)
    word = state.words[m]
    for column in range(2 * columns):
        word[column] = 0
    for place in range(atoms.size):
        atom = atoms[place]
        column = state.column_at[atom]
        if column >= 0:
            word[column] = outside[0, place]
            within[column] = inside[0, place]
            continue
        # No other word can clear what is new here: it has to be paid for.
        held, size = state.held[atom], state.sizes[atom]
        if outside[0, place] != 0:
            budget -= size - held if 0 < held < size else size
        if 0 < held < size and inside[0, place] != 0:
            budget -= held
        if budget < 0:
            return False
    sizes = np.empty(2 * columns, np.int64)
    number = columns
    for column in range(columns):
        atom = state.word_atoms[column]
        held = state.held[atom]
        sizes[column] = state.sizes[atom]
        if 0 < held < state.sizes[atom]:  # both parts have the values the atom had
            sizes[column] -= held
            sizes[number] = held
            word[number] = within[column]
            for row in range(m):
                state.words[row, number] = state.words[row, column]
            for w in range(state.holders.shape[1]):
                state.holders[number, w] = state.holders[column, w]
            number += 1
    prints = np.zeros((2, m + 1), np.int64)
    reduce_by_own(state.words, state.own, prints, m, number, state.prime)
    return is_light(
        state.words, state.own, state.holders, sizes, m, number, budget, EFFORT, state.prime
    )


@inner
def _are_light_together(state: State, atoms: Ids, outside: Matrix, inside: Matrix, k: int) -> bool:
    """Whether several new words, with those there, would isolate fewer than k records."""
    m, columns, count = state.used[WORDS], state.used[COLUMNS], outside.shape[0]
    # Every atom has a column, and one more for its inner part: empty if it is not split.
    rows = np.zeros((m + count, 2 * (columns + atoms.size)), np.int64)
    sizes = np.zeros(rows.shape[1], np.int64)
    for column in range(columns):
        _weigh(state, state.word_atoms[column], column, sizes)
        for row in range(m):
            rows[row, 2 * column] = state.words[row, column]
            if sizes[2 * column + 1] > 0:
                rows[row, 2 * column + 1] = state.words[row, column]
    number = columns
    for place in range(atoms.size):
        column = state.column_at[atoms[place]]
        if column < 0:
            column = number
            number += 1
            _weigh(state, atoms[place], column, sizes)
        for row in range(count):
            rows[m + row, 2 * column] = outside[row, place]
            if sizes[2 * column + 1] > 0:
                rows[m + row, 2 * column + 1] = inside[row, place]
    own = np.full(m + count, -1, np.int64)
    for row in range(m):
        own[row] = 2 * state.own[row]
    return any_light(rows, own, sizes, m, 2 * number, k, EFFORT, state.prime)


@inner
def _weigh(state: State, atom: int, column: int, sizes: Vector) -> None:
    """Put down the records of both parts of an atom; all in the first if it is not split."""
    held, size = state.held[atom], state.sizes[atom]
    inner = held if held < size else 0
    sizes[2 * column], sizes[2 * column + 1] = size - inner, inner
