"""Codewords that one more answer would add: combinations of answers on small atoms only."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.audit.history.field import Matrix, Vector, inverse, residue
from discreet.audit.history.low_weight import (
    EFFORT,
    any_low_weight,
    is_low_weight,
    reduce_by_own,
)
from discreet.audit.history.state import COLUMNS, REFUSED, WORDS, State
from discreet.compiling import inner

__all__ = ["are_low_weight", "is_known", "together"]

Ids = npt.NDArray[np.int64]


@inner
def is_known(state: State, atoms: Ids, values: Vector, left: Vector) -> bool:
    """Whether a codeword is a combination of those in the history, by its fingerprints."""
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


@inner
def together(
    rows: Matrix, atoms: Ids, outside: Vector, inside: Vector, more: int
) -> tuple[Ids, Matrix, Matrix]:
    """Return the atoms where any of several codewords is not zero, and their values there.

    Given are the values of the first ones at all atoms, which no question splits, and, if there is one
    `more`, where and what the last is outside and inside a question.
    """
    met = np.zeros(rows.shape[1], np.bool_)
    met[atoms] = True
    for row in range(rows.shape[0]):
        for atom in range(met.size):
            met[atom] = met[atom] or rows[row, atom] != 0
    found = np.flatnonzero(met)
    all_outside = np.zeros((rows.shape[0] + more, found.size), np.int64)
    for row in range(rows.shape[0]):
        for place in range(found.size):
            all_outside[row, place] = rows[row, found[place]]
    all_inside = all_outside.copy()
    if more:
        places = np.searchsorted(found, atoms)
        for n in range(atoms.size):
            all_outside[rows.shape[0], places[n]] = outside[n]
            all_inside[rows.shape[0], places[n]] = inside[n]
    return found, all_outside, all_inside


@inner
def are_low_weight(
    state: State, atoms: Ids, outside: Matrix, inside: Matrix, prints: Matrix
) -> bool:
    """Whether new codewords, combined with those in the history, isolate fewer than k records.

    What differs from a combination refused before by answers alone is refused again without a search.
    """
    if outside.shape[0] > 1:
        return _are_low_weight_together(state, atoms, outside, inside)
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
        # No other codeword is nonzero here, so none can cancel it: its records count.
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
    word_prints = state.word_prints
    word_prints[0, m], word_prints[1, m] = prints[0, 0], prints[0, 1]
    reduce_by_own(state.words, state.own, word_prints, m, number, state.prime)
    scale = 0
    for column in range(columns):
        if word[column] != 0:
            scale = inverse(word[column], state.prime)
            break
    first = residue(word_prints[0, m] * scale, state.prime)
    second = residue(word_prints[1, m] * scale, state.prime)
    refused, known = state.refused, state.used[REFUSED]
    if scale != 0:
        for n in range(min(known, refused.shape[1])):
            if refused[0, n] == first and refused[1, n] == second:
                return True
    light = is_low_weight(
        state.words, state.own, state.holders, sizes, m, number, budget, EFFORT, state.prime
    )
    if light and scale != 0:
        place = known % refused.shape[1]
        refused[0, place], refused[1, place] = first, second
        state.used[REFUSED] = known + 1
    return bool(light)


@inner
def _are_low_weight_together(state: State, atoms: Ids, outside: Matrix, inside: Matrix) -> bool:
    """Whether several new codewords, combined with the others, isolate fewer than k records."""
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
    return any_low_weight(rows, own, sizes, m, 2 * number, state.k, EFFORT, state.prime)


@inner
def _weigh(state: State, atom: int, column: int, sizes: Vector) -> None:
    """Write the numbers of records of both parts of an atom; all in the first if it is not split."""
    held, size = state.held[atom], state.sizes[atom]
    inner = held if held < size else 0
    sizes[2 * column], sizes[2 * column + 1] = size - inner, inner
