"""Compiled steps that take an answer into the history, and that decide on many sums in a row."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.audit.history.bits import low_bit
from discreet.audit.history.deciding import NEW, UNSAFE, Plan, decide
from discreet.audit.history.field import (
    Vector,
    border,
    inverse,
    negative,
    residue,
    take_out,
    times,
)
from discreet.audit.history.low_weight import adopt, reduce_by_own
from discreet.audit.history.sketches import sketch
from discreet.audit.history.state import ATOMS, COLUMNS, RANK, SMALL, WORDS, State
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
    needed[RANK] = state.used[RANK] + 1
    needed[WORDS] = state.used[WORDS] + plan.outside.shape[0] + 1
    # The next decision may look at both parts of every column.
    needed[COLUMNS] = 2 * (state.used[COLUMNS] + splits + 2 * plan.new_atoms.size)
    return bool(
        needed[ATOMS] > state.sizes.size
        or needed[RANK] > state.pivots.size
        or needed[WORDS] > state.own.size
        or needed[COLUMNS] > state.word_atoms.size
    )


@kernel
def accept(state: State, plan: Plan, places: Ids) -> None:
    """Take a sum into the history; the plan is that of the last decision."""
    coefficients = plan.coefficients.copy()
    queries = plan.queries.copy()
    for n in range(plan.lost.size):
        _put_apart(state, plan.lost[n], queries, n, coefficients)
    beside = state.row_at[plan.pivot[0]] if plan.pivot[2] == 1 else -1
    # Until the end, what is held of a split atom is the number of its inner part.
    _split(state, plan)
    for place in places:
        part = state.held[state.atom[place]]
        if part > 0:
            state.atom[place] = part
    for n in range(plan.outside.shape[0]):
        _add_word(state, plan, n)
    if plan.pivot[0] >= 0:
        _add_row(state, plan, coefficients, beside)
    for atom in plan.touched:
        state.held[atom] = 0


@inner
def _put_apart(state: State, atom: int, queries: Ids, n: int, coefficients: Vector) -> None:
    """Take a row that lives on small parts only from the others; the last takes its place."""
    last, place, query = state.used[RANK] - 1, state.row_at[atom], queries[n]
    take_out(state.inverse, last + 1, place, query, state.prime)
    state.row_at[atom] = -1
    if place != last:
        state.pivots[place] = state.pivots[last]
        state.row_at[state.pivots[place]] = place
    coefficients[query] = coefficients[last]
    coefficients[last] = 0
    for which in range(2):
        state.prints[which, query] = state.prints[which, last]
        state.large_prints[which, query] = state.large_prints[which, last]
    state.sketches[query] = state.sketches[last]
    for later in range(n + 1, queries.size):
        if queries[later] == last:
            queries[later] = query
    here, there = state.members[query >> 6], state.members[last >> 6]
    to, source = np.uint64(query & 63), np.uint64(last & 63)
    for a in range(state.used[ATOMS]):
        bit = there[a] >> source & np.uint64(1)
        there[a] &= ~(np.uint64(1) << source)
        if query != last:
            here[a] = (here[a] & ~(np.uint64(1) << to)) | (bit << to)
    state.used[RANK] = last


@inner
def _split(state: State, plan: Plan) -> None:
    """Give the inner part of each split atom a number of its own."""
    p = state.prime
    marks = (state.used[RANK] + 63) >> 6
    for place in range(plan.touched.size):
        atom, inner = plan.touched[place], plan.inner[place]
        size = state.sizes[atom]
        if inner == size:
            continue
        new = state.used[ATOMS]
        state.used[ATOMS] += 1
        state.held[atom] = new
        state.sizes[new], state.sizes[atom] = inner, size - inner
        for which in range(2):
            value = plan.inner_prints[which, place]
            state.atom_prints[which, new] = value
            rest = residue(state.atom_prints[which, atom] + negative(value, p), p)
            state.atom_prints[which, atom] = rest
        for w in range(marks):
            state.members[w, new] = state.members[w, atom]
        if size >= state.k:
            for part in (atom, new):
                if state.sizes[part] < state.k:
                    _make_small(state, part, marks)
        else:
            _add_small(state, new, marks)
        row = state.row_at[atom]
        state.row_at[new] = -1
        if row >= 0 and 2 * inner >= size:  # the pivot is in the larger part
            state.row_at[atom], state.row_at[new], state.pivots[row] = -1, row, new
        state.column_at[new] = -1
        column = state.column_at[atom]
        if column >= 0:
            own = _add_column(state, new, 0)
            for word in range(state.used[WORDS]):
                state.words[word, own] = state.words[word, column]
            for w in range(state.holders.shape[1]):
                state.holders[own, w] = state.holders[column, w]


@inner
def _make_small(state: State, atom: int, marks: int) -> None:
    """Count an atom no longer among the large ones of the answers that hold it."""
    p, members, large_prints = state.prime, state.members, state.large_prints
    _add_small(state, atom, marks)
    for which in range(2):
        less = negative(state.atom_prints[which, atom], p)
        for w in range(marks):
            left = members[w, atom]
            while left != np.uint64(0):
                j = (w << 6) + low_bit(left)
                left &= left - np.uint64(1)
                large_prints[which, j] = residue(large_prints[which, j] + less, p)


@inner
def _add_small(state: State, atom: int, marks: int) -> None:
    """Count an atom among the small ones of the answers that hold it."""
    members, sketches = state.members, state.sketches
    state.small[state.used[SMALL]] = atom
    state.used[SMALL] += 1
    for w in range(marks):
        left = members[w, atom]
        while left != np.uint64(0):
            sketch(sketches, (w << 6) + low_bit(left), atom, state.prime)
            left &= left - np.uint64(1)


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
    for place in range(plan.new_atoms.size):
        atom = plan.new_atoms[place]
        _set(state, m, atom, plan.outside[n, place])
        if state.held[atom] > 0:
            _set(state, m, state.held[atom], plan.inside[n, place])
    columns = state.used[COLUMNS]
    for which in range(2):
        state.word_prints[which, m] = plan.new_prints[n, which]
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
def _add_row(state: State, plan: Plan, coefficients: Vector, beside: int) -> None:
    """Add an answer with a pivot: border the inverse."""
    p = state.prime
    r = state.used[RANK]
    atom, within = plan.pivot[0], plan.pivot[1]
    if within == 1 and state.held[atom] > 0:
        atom = state.held[atom]
    if beside >= 0:  # the answers so far do not tell the two parts apart
        column = np.zeros(r, np.int64)
        column[beside] = 1
        value = 1 if within == 1 else p - 1
    else:
        column = times(
            state.inverse.blocks,
            state.inverse.at,
            state.inverse.turned,
            state.members,
            atom,
            r,
            p,
        )
        total = 0
        for j in range(r):
            holds = state.members[j >> 6, atom] >> np.uint64(j & 63) & np.uint64(1)
            if coefficients[j] != 0 and holds != np.uint64(0):
                total += coefficients[j]
        value = residue(within + negative(residue(total, p), p), p)
    scale = inverse(value, p)
    border(state.inverse, r, column, coefficients[:r], scale, p)
    for which in range(2):
        state.prints[which, r] = plan.prints[which]
    state.pivots[r] = atom
    state.row_at[atom] = r
    bits, bit = state.members[r >> 6], np.uint64(1) << np.uint64(r & 63)
    state.sketches[r] = 0
    sketches, held, sizes, atom_prints = state.sketches, state.held, state.sizes, state.atom_prints
    first = second = 0
    for touched in plan.touched:
        inside = held[touched] if held[touched] > 0 else touched
        bits[inside] |= bit
        if sizes[inside] >= state.k:
            first += atom_prints[0, inside]
            second += atom_prints[1, inside]
        else:
            sketch(sketches, r, inside, p)
    state.large_prints[0, r], state.large_prints[1, r] = residue(first, p), residue(second, p)
    state.used[RANK] = r + 1


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
        a = decide(one, places, given)
        if a.status == UNSAFE:
            continue
        b = a
        if both:
            b = decide(other, places, given)
            if b.status == UNSAFE:
                continue
        needed[0], needed[1] = 0, 0
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
