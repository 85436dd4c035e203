"""Compiled steps that take an answer into the history, and that decide on many sums in a row."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.audit.history.deciding import NEW, SPACE, UNSAFE, Plan, decide
from discreet.audit.history.field import Vector, negative, residue
from discreet.audit.history.low_weight import adopt, reduce_by_own
from discreet.audit.history.rows import append, is_inside
from discreet.audit.history.state import (
    ATOMS,
    COLUMNS,
    ENTRIES,
    RANK,
    REST,
    ROWS,
    SHORT,
    WORDS,
    State,
)
from discreet.compiling import inner, kernel

__all__ = ["accept", "lacks", "sweep"]

Ids = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@kernel
def lacks(state: State, plan: Plan, needed: Vector) -> bool:
    """Whether an answer needs more space than there is; how much comes in `needed`."""
    splits = 0
    for place in range(plan.touched.size):
        splits += plan.inner[place] < state.sizes[plan.touched[place]]
    needed[ATOMS] = state.used[ATOMS] + splits
    needed[ROWS] = state.used[ROWS] + 1
    needed[WORDS] = state.used[WORDS] + plan.words_outside.shape[0] + 1
    # The next decision may look at both parts of every column.
    needed[COLUMNS] = 2 * (state.used[COLUMNS] + splits + 2 * plan.word_atoms.size)
    needed[ENTRIES] = state.used[ENTRIES] + 2 * plan.atoms.size
    return bool(
        state.used[SHORT] > 0
        or needed[ATOMS] > state.sizes.size
        or needed[ROWS] > state.pivots.size
        or needed[WORDS] > state.own.size
        or needed[COLUMNS] > state.word_atoms.size
        or needed[ENTRIES] > state.entries.size
    )


@kernel
def accept(state: State, plan: Plan, places: Ids) -> None:
    """Take a sum into the history; the plan is that of the last decision."""
    for row in range(state.used[ROWS] - plan.freed, state.used[ROWS]):
        state.row_at[state.pivots[row]] = -1
        state.pivots[row], state.starts[row], state.ends[row] = -1, 0, 0
    state.used[RANK] -= plan.freed
    if plan.no_rest:
        state.used[REST] = -2
        state.used[RANK] -= 1
    # Until the end, what is held of a split atom is the number of its inner part.
    _split(state, plan)
    for place in places:
        part = state.held[state.atom[place]]
        if part > 0:
            state.atom[place] = part
    for n in range(plan.words_outside.shape[0]):
        _add_word(state, plan, n)
    if plan.pivot[0] >= 0:
        _add_row(state, plan)
    for atom in plan.touched:
        state.held[atom] = 0


@inner
def _split(state: State, plan: Plan) -> None:
    """Give the inner part of each split atom a number of its own."""
    p = state.prime
    for place in range(plan.touched.size):
        atom, inner = plan.touched[place], plan.inner[place]
        size = state.sizes[atom]
        if inner == size:
            continue
        new = state.used[ATOMS]
        state.used[ATOMS] += 1
        state.held[atom], state.first_held[atom] = inner, plan.first[place]
        within = is_inside(state, atom)
        state.held[atom] = new
        state.sizes[new], state.sizes[atom] = inner, size - inner
        for which in range(2):
            value = plan.inner_prints[which, place]
            state.atom_prints[which, new] = value
            rest = residue(state.atom_prints[which, atom] + negative(value, p), p)
            state.atom_prints[which, atom] = rest
        state.child[new], state.sibling[new], state.child[atom] = -1, state.child[atom], new
        state.rest[new], state.row_at[new] = state.rest[atom], -1
        row = state.row_at[atom]
        if row >= 0 and within:
            state.row_at[atom], state.row_at[new], state.pivots[row] = -1, row, new
        state.first[new] = plan.first[place]
        if plan.first[place] <= state.first[atom]:
            state.first[atom] = plan.first[place] + 1
        state.column_at[new] = -1
        column = state.column_at[atom]
        if column >= 0:
            own = _add_column(state, new, 0)
            for word in range(state.used[WORDS]):
                state.words[word, own] = state.words[word, column]
            for w in range(state.holders.shape[1]):
                state.holders[own, w] = state.holders[column, w]


@inner
def _add_column(state: State, atom: int, rows: int) -> int:
    """Make a column for an atom, zero in some rows."""
    column = state.used[COLUMNS]
    state.used[COLUMNS] += 1
    state.word_atoms[column] = atom
    state.column_at[atom] = column
    for row in range(rows):
        state.words[row, column] = 0
    for w in range(state.holders.shape[1]):
        state.holders[column, w] = 0
    return int(column)


@inner
def _add_word(state: State, plan: Plan, n: int) -> None:
    """Add a word that is no combination of the others."""
    m = state.used[WORDS]
    state.words[m] = 0
    for place in range(plan.word_atoms.size):
        atom = plan.word_atoms[place]
        inner = state.held[atom]
        # An atom that is not split has one value.
        _set(state, m, atom, plan.words_outside[n, place])
        if inner > 0:
            _set(state, m, inner, plan.words_inside[n, place])
    columns = state.used[COLUMNS]
    for which in range(2):
        state.word_prints[which, m] = plan.word_prints[n, which]
    reduce_by_own(state.words, state.own, state.word_prints, m, columns, state.prime)
    sizes = state.sizes[state.word_atoms[:columns]]
    adopt(state.words, state.own, state.holders, state.word_prints, sizes, m, columns, state.prime)
    state.used[WORDS] = m + 1


@inner
def _set(state: State, word: int, atom: int, value: int) -> None:
    column = state.column_at[atom]
    if column < 0:
        if value == 0:
            return
        column = _add_column(state, atom, word)
    state.words[word, column] = value


@inner
def _add_row(state: State, plan: Plan) -> None:
    """Add an answer with a pivot, which is no combination of the others."""
    atoms, values = np.empty((2, 2 * plan.atoms.size), np.int64)
    number = 0
    for place in range(plan.atoms.size):
        atom = plan.atoms[place]
        atoms[number], values[number] = atom, plan.outside[place]
        number += 1
        if state.held[atom] > 0:
            atoms[number], values[number] = state.held[atom], plan.inside[place]
            number += 1
    pivot = plan.pivot[0]
    if plan.pivot[1] == 1 and state.held[pivot] > 0:
        pivot = state.held[pivot]
    append(state, atoms[:number], values[:number], pivot)


@kernel
def sweep(
    one: State, other: State, both: bool, flat: Ids, starts: Ids, ends: Ids, order: Ids,
    shown: Bools, first: int, needed: npt.NDArray[np.int64],
) -> int:  # fmt: skip
    """Decide on sums over groups in an order, from `first` on, and take in those that are safe.

    With `both`, a sum of two attributes is answered for both or not at all. Stops where an answer
    needs more space than there is; returns the place in the order, and how much space in `needed`.
    """
    # The compiler takes a constant for a type of its own, and would compile all of `decide` again.
    given = first < 0
    for n in range(first, order.size):
        group = order[n]
        places = flat[starts[group] : ends[group]]
        needed[0], needed[1] = 0, 0
        a = decide(one, places, given)
        if a.status == SPACE:
            return n
        if a.status == UNSAFE:
            continue
        b = a
        if both:
            b = decide(other, places, given)
            if b.status == SPACE:
                return n
            if b.status == UNSAFE:
                continue
        short = a.status == NEW and lacks(one, a, needed[0])
        if both and b.status == NEW:
            short = lacks(other, b, needed[1]) or short
        if short:
            return n
        if a.status == NEW:
            accept(one, a, places)
        if both and b.status == NEW:
            accept(other, b, places)
        shown[group] = True
    return order.size
