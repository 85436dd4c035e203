"""Compiled steps of a decision: what one more sum would mean, without taking it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from discreet.queries.history.compiling import entry, inner, low_bit
from discreet.queries.history.field import (
    Marks,
    Matrix,
    Vector,
    combine,
    inverse,
    lookup,
    masked,
    negative,
    replace_pivot,
    residue,
    row_of,
    sum_of,
    times,
    values_at,
)
from discreet.queries.history.light_words import EFFORT, any_light, is_light, reduce_by_own
from discreet.queries.history.sketches import candidates, sketch_of
from discreet.queries.history.state import ATOMS, COLUMNS, HINT, RANK, SMALL, WORDS, State

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
    inner_prints: Matrix  # two fingerprints of these
    prints: Vector  # of the query set
    coefficients: Vector  # of the answers that equal it at all pivots
    pivot: Vector  # of the new row less these: atom, whether inside, whether others cannot tell
    lost: Ids  # atoms that are no longer pivots …
    queries: Ids  # … and the answers taken out with them
    new_atoms: Ids  # atoms that new words live on
    outside: Matrix  # values there of each new word, outside the question …
    inside: Matrix  # … and inside
    new_prints: Matrix


class Combination(NamedTuple):
    """A combination of answers."""

    coefficients: Vector
    used: Vector  # words of the mask that are not zero
    mask: Marks  # which coefficients are not zero


@inner
def _combined(coefficients: Vector) -> Combination:
    used, mask = masked(coefficients)
    return Combination(coefficients, used, mask)


@inner
def _value(members: Marks, given: Combination, atom: int, p: int) -> int:
    """Return the value of a combination at an atom."""
    return lookup(given.coefficients, given.used, given.mask, members, atom, p)


@inner
def _values_at(state: State, given: Combination, atoms: Ids, out: Vector) -> None:
    """Put down the values of a combination at some atoms."""
    values_at(given.coefficients, given.used, given.mask, state.members, atoms, out, state.prime)


@entry
def decide(state: State, places: Ids, given: bool) -> Plan:
    """Say what the sum over some profiles would mean; nothing is taken into the history.

    If the sum has been `given` already, it counts whatever it means.
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
    """Hold the records of some profiles; return the atoms they lie in, in order."""
    # By themselves: to name the state in a loop is to count references to its arrays.
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
    """Return the fingerprints of what is held in each atom and in all, which no longer are kept."""
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
    lost = _lost_pivots(state, touched, inner)
    coefficients, mask = combine(
        state.inverse.stretches, state.inverse.at, state.inverse.marks,
        _ones(state, touched, inner), r, state.prime,
    )  # fmt: skip
    queries, freed = _taken_out(state, lost, coefficients)
    combination = Combination(coefficients, np.flatnonzero(mask), mask)
    if lost.size > 0:
        combination = _combined(coefficients)
    left = _left(state, combination, prints)
    pivot, values = np.array([-1, 0, 0]), np.zeros(0, np.int64)
    sizes = state.sizes
    whole = True
    for place in range(touched.size):
        whole = whole and inner[place] == sizes[touched[place]]
    if not whole:  # there mostly is a pivot in what is split
        _pivot(state, touched, inner, combination, pivot)
    if pivot[0] < 0:
        if _vanishes(state, touched, inner, inner_prints, combination):
            if whole:
                return _judged_whole(
                    state, touched, inner, inner_prints, prints, combination, left, given
                )
            values = _small_values(state, touched, inner, combination)
        else:
            if whole:
                _pivot(state, touched, inner, combination, pivot)
            if pivot[0] < 0:
                _pivot_elsewhere(state, combination, pivot)
    is_word = pivot[0] < 0
    number = lost.size + (1 if is_word else 0)
    if number == 0:
        nothing = np.empty((0, 0), np.int64)
        return Plan(
            NEW, touched, inner, inner_prints, prints, coefficients, pivot, lost, queries, lost,
            nothing, nothing, nothing,
        )  # fmt: skip
    atoms, outside, inside = _new_words(state, values, freed, is_word)
    new_prints = np.empty((number, 2), np.int64)
    for row in range(lost.size):
        given_ = _combined(freed[row])
        for which in range(2):
            new_prints[row, which] = _sum_of(given_, state.prints[which], state.prime)
    if is_word:
        new_prints[lost.size] = left
    light = not given and _are_light(state, atoms, outside, inside)
    return Plan(
        UNSAFE if light else NEW, touched, inner, inner_prints, prints, coefficients, pivot, lost, queries,
        atoms, outside, inside, new_prints,
    )  # fmt: skip


@inner
def _judged_whole(
    state: State, touched: Ids, inner: Vector, inner_prints: Matrix, prints: Vector,
    combination: Combination, left: Vector, given: bool,
) -> Plan:  # fmt: skip
    """Judge a row that splits no atom and equals a combination of answers at large ones."""
    atoms, values = np.empty(0, np.int64), np.empty(0, np.int64)
    if left[0] != 0 or left[1] != 0:
        atoms, values = _word(state, touched, combination, left)
        if not _is_known(state, atoms, values, left):
            light = not given and _are_light(
                state, atoms, values.reshape((1, values.size)), values.reshape((1, values.size))
            )
            return Plan(
                UNSAFE if light else NEW, touched, inner, inner_prints, prints, combination.coefficients,
                np.array([-1, 0, 0]), atoms[:0], atoms[:0], atoms, values.reshape((1, values.size)),
                values.reshape((1, values.size)), left.reshape((1, 2)),
            )  # fmt: skip
    return _bare(KNOWN, touched, inner, inner_prints, prints)


@inner
def _word(state: State, touched: Ids, combination: Combination, left: Vector) -> tuple[Ids, Vector]:
    """Return where a row that splits no atom is not a combination of answers, and its values there.

    Only at small atoms. Those that a sketch points to are looked at first, which is enough if
    what was found has the fingerprints it must have.
    """
    p, atoms, k, sizes = state.prime, state.used[ATOMS], state.k, state.sizes
    held, atom_prints = state.held, state.atom_prints
    coefficients, used, mask = combination
    sums = sketch_of(state.sketches, coefficients, used, mask, touched, sizes, k, p)
    for everywhere in (False, True):
        if everywhere:
            sums[:] = 1
        found = candidates(sums, sizes, atoms, k)
        values = np.empty(found.size, np.int64)
        _values_at(state, combination, found, values)
        number, first, second = 0, 0, 0
        for n in range(found.size):
            atom = found[n]
            value = negative(values[n], p)
            if held[atom] > 0:
                value = residue(value + 1, p)
            found[number], values[number] = atom, value
            if value != 0:
                number += 1
                first += residue(value * atom_prints[0, atom], p)
                second += residue(value * atom_prints[1, atom], p)
        if residue(first, p) == left[0] and residue(second, p) == left[1]:
            break
    return found[:number], values[:number]


# -- large atoms ---------------------------------------------------------------------------------
@inner
def _vanishes(
    state: State, touched: Ids, inner: Vector, inner_prints: Matrix, combination: Combination
) -> bool:
    """Whether the new row equals a combination of answers in all parts of k records or more.

    Told from their fingerprints: what is looked for otherwise at every atom is nearly always there.
    """
    p, k, sizes = state.prime, state.k, state.sizes
    for place in range(touched.size):
        if min(inner[place], sizes[touched[place]] - inner[place]) >= k:
            return False  # the two parts of a split atom differ by one
    for which in range(2):
        left = negative(_sum_of(combination, state.large_prints[which], p), p)
        for place in range(touched.size):
            atom, held = touched[place], inner[place]
            if held >= k:
                left += inner_prints[which, place]
            if _has_small_part(sizes[atom], held, k):
                # Its fingerprint counts among the large ones of each answer.
                part = 0
                if held < k:
                    part = inner_prints[which, place]
                if sizes[atom] - held < k:
                    part += state.atom_prints[which, atom] + p - inner_prints[which, place]
                value = _value(state.members, combination, atom, state.prime)
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
    _values_at(state, combination, small, there)
    for n in range(small.size):
        values[small[n]] = there[n]
    for place in range(touched.size):
        atom = touched[place]
        if _has_small_part(state.sizes[atom], inner[place], state.k):
            values[atom] = _value(state.members, combination, atom, state.prime)
        elif state.sizes[atom] >= state.k:
            values[atom] = 1
    return values


# -- pivots --------------------------------------------------------------------------------------
@inner
def _lost_pivots(state: State, touched: Ids, inner: Vector) -> Ids:
    """Return the pivots that would have no part of k records and cannot be others.

    Those that can are changed: another pivot is as good whether or not the question is answered.
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
    """Give the row with a pivot another one, in the largest part where it is not zero."""
    r, place, p = state.used[RANK], state.row_at[atom], state.prime
    values = _combination(state, row_of(state.inverse, place, r))
    best, found = state.k - 1, -1
    for other in range(values.size):
        if values[other] != 0:
            part = max(state.held[other], state.sizes[other] - state.held[other])
            if part > best:
                best, found = part, other
    if found < 0:
        return False
    inverse_ = state.inverse
    column = times(inverse_.stretches, inverse_.at, inverse_.turned, state.members, found, r, p)
    replace_pivot(state.inverse, r, place, column, p)
    state.row_at[atom] = -1
    state.row_at[found] = place
    state.pivots[place] = found
    return True


@inner
def _combination(state: State, coefficients: Vector) -> Vector:
    """Return the values of a combination of answers at all atoms."""
    values = np.empty(state.used[ATOMS], np.int64)
    _values_at(state, _combined(coefficients), np.arange(values.size), values)
    return values


@inner
def _ones(state: State, touched: Ids, inner: Vector) -> Ids:
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
def _taken_out(state: State, lost: Ids, coefficients: Vector) -> tuple[Ids, Matrix]:
    """Free the coefficients from one answer for each lost pivot.

    Returns these answers, and the combinations that are one at the lost pivot and zero at the
    others, each free from the answers before.
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
def _pivot(
    state: State, touched: Ids, inner: Vector, combination: Combination, pivot: Vector
) -> None:
    """Find a pivot of the new row among the atoms it touches, if there is one."""
    k, p, sizes, row_at, members = state.k, state.prime, state.sizes, state.row_at, state.members
    coefficients, used, mask = combination
    best, chosen = ROOMY * k - 1, -1
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
    for roomy in (True, False):
        best = k - 1
        for place in range(touched.size):
            atom, held = touched[place], inner[place]
            rest = sizes[atom] - held
            if (min(held, rest) >= k) != roomy or (held <= best and rest <= best):
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
def _pivot_elsewhere(state: State, combination: Combination, pivot: Vector) -> None:
    """Find a pivot at an atom that the question does not touch: there is one."""
    atoms, sizes, held, k = state.used[ATOMS], state.sizes, state.held, state.k
    found, values = np.empty(_CHUNK, np.int64), np.empty(_CHUNK, np.int64)
    chunks = (atoms + _CHUNK - 1) // _CHUNK
    for n in range(chunks):
        # Where one was found the last time there may be more.
        chunk = (state.used[HINT] + n) % chunks
        # The largest of them is wanted: others are looked at if there is none among the large.
        for least, most in ((16 * k, state.records), (4 * k, 16 * k - 1), (k, 4 * k - 1)):
            number = 0
            for atom in range(chunk * _CHUNK, min((chunk + 1) * _CHUNK, atoms)):
                found[number] = atom
                number += least <= sizes[atom] <= most and held[atom] == 0
            _values_at(state, combination, found[:number], values)
            best = 0
            for place in range(number):
                if values[place] != 0 and sizes[found[place]] > best:
                    best = sizes[found[place]]
                    pivot[0], pivot[1] = found[place], 0
            if best > 0:
                state.used[HINT] = chunk
                return


# -- what is known already -----------------------------------------------------------------------
@inner
def _sum_of(given: Combination, numbers: Vector, p: int) -> int:
    """Return the sum of some numbers of answers in a combination."""
    return sum_of(given.coefficients, given.used, given.mask, numbers, p)


@inner
def _left(state: State, combination: Combination, prints: Vector) -> Vector:
    """Return the fingerprints of the new row less a combination of answers."""
    p = state.prime
    left = np.empty(2, np.int64)
    for which in range(2):
        taken = _sum_of(combination, state.prints[which], p)
        left[which] = residue(prints[which] + negative(taken, p), p)
    return left


@inner
def _is_known(state: State, atoms: Ids, values: Vector, left: Vector) -> bool:
    """Whether a new word with some values at atoms is a combination of words."""
    p, column_at, own, word_prints = state.prime, state.column_at, state.own, state.word_prints
    at = np.zeros(state.used[COLUMNS], np.int64)
    for n in range(atoms.size):
        column = column_at[atoms[n]]
        if column >= 0:
            at[column] = values[n]
    first = second = 0
    for word in range(state.used[WORDS]):
        factor = at[own[word]]
        if factor != 0:
            first += residue(factor * word_prints[0, word], p)
            second += residue(factor * word_prints[1, word], p)
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
        held = state.held[atom]
        # Wholly inside or wholly outside, there is one part, where the new word may be zero.
        outer = is_word and held < state.sizes[atom] and values[atom] != 0
        met = outer or (is_word and held > 0 and values[atom] != 1)
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
def _are_light(state: State, atoms: Ids, outside: Matrix, inside: Matrix) -> bool:
    """Whether new words, with those there, would isolate fewer than k records."""
    if outside.shape[0] > 1:
        return _are_light_together(state, atoms, outside, inside)
    m, columns = state.used[WORDS], state.used[COLUMNS]
    all_held, all_sizes, word_atoms, column_at = (
        state.held,
        state.sizes,
        state.word_atoms,
        state.column_at,
    )
    budget = state.k - 1
    within = np.zeros(columns, np.int64)
    word = state.words[m]
    for column in range(2 * columns):
        word[column] = 0
    for place in range(atoms.size):
        atom = atoms[place]
        column = column_at[atom]
        if column >= 0:
            word[column] = outside[0, place]
            within[column] = inside[0, place]
            continue
        # No other word can clear what is new here: it has to be paid for.
        held, size = all_held[atom], all_sizes[atom]
        if outside[0, place] != 0:
            budget -= size - held if 0 < held < size else size
        if 0 < held < size and inside[0, place] != 0:
            budget -= held
        if budget < 0:
            return False
    sizes = np.empty(2 * columns, np.int64)
    number = columns
    for column in range(columns):
        atom = word_atoms[column]
        held = all_held[atom]
        sizes[column] = all_sizes[atom]
        if 0 < held < all_sizes[atom]:  # both parts have the values the atom had
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
def _are_light_together(state: State, atoms: Ids, outside: Matrix, inside: Matrix) -> bool:
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
    return any_light(rows, own, sizes, m, 2 * number, state.k, EFFORT, state.prime)


@inner
def _weigh(state: State, atom: int, column: int, sizes: Vector) -> None:
    """Put down the records of both parts of an atom; all in the first if it is not split."""
    held, size = state.held[atom], state.sizes[atom]
    inner = held if held < size else 0
    sizes[2 * column], sizes[2 * column + 1] = size - inner, inner
