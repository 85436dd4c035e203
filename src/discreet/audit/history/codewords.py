"""Codewords that one more answer would add: combinations of answers on small atoms only."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.audit.history.combination import (
    Combination,
    combination_at,
    print_of,
    values_everywhere,
)
from discreet.audit.history.field import Matrix, Vector, negative, residue
from discreet.audit.history.low_weight import (
    EFFORT,
    any_low_weight,
    is_low_weight,
    reduce_by_own,
)
from discreet.audit.history.sketches import candidates, sketch_of
from discreet.audit.history.state import ATOMS, COLUMNS, WORDS, State
from discreet.compiling import inner

__all__ = ["are_low_weight", "codeword", "is_known", "new_codewords", "prints_left"]

Ids = npt.NDArray[np.int64]


@inner
def codeword(
    state: State, touched: Ids, combination: Combination, left: Vector
) -> tuple[Ids, Vector]:
    """Return the small atoms where the row differs from a combination of answers, and by how much.

    The row splits no atom and equals the combination at large atoms. Atoms in buckets where the
    sketches differ are compared first; all are, if the result has not the expected fingerprints.
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
        combination_at(state, combination, found, values)
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


@inner
def prints_left(state: State, combination: Combination, prints: Vector) -> Vector:
    """Return the fingerprints of the new row less a combination of answers."""
    p = state.prime
    left = np.empty(2, np.int64)
    for which in range(2):
        taken = print_of(combination, state.prints[which], p)
        left[which] = residue(prints[which] + negative(taken, p), p)
    return left


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
def new_codewords(
    state: State, values: Vector, freed: Matrix, is_word: bool
) -> tuple[Ids, Matrix, Matrix]:
    """Return the atoms where new codewords are not zero, and their values outside and inside the query.

    New codewords are the combinations freed from lost pivots and, last, the new row less the
    combination that has `values` at the atoms.
    """
    p = state.prime
    atoms = state.used[ATOMS]
    number = freed.shape[0] + (1 if is_word else 0)
    dense = np.empty((number, atoms if freed.shape[0] > 0 else 0), np.int64)
    for row in range(freed.shape[0]):
        dense[row] = values_everywhere(state, freed[row])
    found = np.empty(atoms, np.int64)
    count = 0
    for atom in range(atoms):
        held = state.held[atom]
        # An atom wholly inside or outside has one part, where the new codeword may be zero.
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
def are_low_weight(state: State, atoms: Ids, outside: Matrix, inside: Matrix) -> bool:
    """Whether new codewords, combined with those in the history, isolate fewer than k records."""
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
    prints = np.zeros((2, m + 1), np.int64)
    reduce_by_own(state.words, state.own, prints, m, number, state.prime)
    return is_low_weight(
        state.words, state.own, state.holders, sizes, m, number, budget, EFFORT, state.prime
    )


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
