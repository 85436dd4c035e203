"""The auditor of sums: tells whether one more answer would isolate fewer than k records.

Records with the same membership in all answered query sets form an *atom*. Answered sums are
rows over atoms. The auditor keeps rows that have a pivot in an atom of at least k records (a
combination of those that vanishes on all large atoms is zero), with the inverse of the square
matrix of the pivots; and, apart, the combinations that live on small atoms only, in which
`has_light_word` looks for one on fewer than k records. A set below k that is a union of small
atoms is therefore found like any other. The decision uses query sets alone, never a value.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from discreet.queries.history.field import PRIME, Matrix, Vector, border, inverse, lookup, tables
from discreet.queries.history.light_words import has_light_word

__all__ = ["Auditor", "Decision"]

Ids = npt.NDArray[np.int64]
#: So many of the largest atoms are tried as pivots before all large ones.
LARGEST = 256


@dataclasses.dataclass(eq=False)
class Decision:
    """What one more answer would mean; `Auditor.accept` makes it so."""

    safe: bool
    #: Whether the answer follows from those already given.
    known: bool = False
    #: Places of the profiles inside the query set.
    inside: Ids = dataclasses.field(default_factory=lambda: np.zeros(0, np.int64))
    _plan: _Plan | None = None


@dataclasses.dataclass(eq=False)
class _Plan:
    """The state after the answer, as far as it differs."""

    held: Vector  # records of each atom inside the query set
    split: Ids  # atoms of which only a part is inside
    square: Matrix  # inverse of the pivot matrix, after pivots were moved
    rows: Ids  # bit positions of the rows of that matrix
    pivots: Ids
    side: npt.NDArray[np.bool_]  # whether a pivot lies inside
    coefficients: Vector | None  # the new row reduced by the others …
    pivot: tuple[int, bool] | None  # … its pivot: atom and side
    words: list[tuple[Vector, Vector]]  # new words on small atoms: values outside, values inside


class Auditor:
    """Decides on sums of one attribute over records in profiles.

    Parameters
    ----------
    counts
        Number of records of each profile (records that no question can tell apart).
    k
        Sets of fewer records are never isolated.

    Examples
    --------
    >>> auditor = Auditor(np.ones(10, np.int64), k=3)
    >>> first = auditor.decide(np.arange(5))
    >>> auditor.accept(first)
    >>> auditor.decide(np.arange(4)).safe  # the difference would be one record
    False
    >>> auditor.decide(np.arange(8)).safe  # the complement would be two
    False
    """

    def __init__(self, counts: npt.NDArray[np.int64], k: int) -> None:
        self.k = k
        self._counts = counts.astype(np.int64)
        self._plain = bool((self._counts == 1).all())
        self.records = int(self._counts.sum())
        self._atom = np.zeros(counts.size, np.int32)
        self._sizes = np.full(16, 0, np.int64)
        self._sizes[0] = self.records
        self._atoms = 1
        # The total is taken as known: a complement below k is a difference below k.
        self._members = np.zeros((16, 8), np.uint8)
        self._members[0, 0] = 1
        self._bits_used = 1
        self._square = np.zeros((64, 64), np.int64)
        self._square[0, 0] = 1
        self._rows = np.array([0], np.int64)
        self._pivots = np.array([0], np.int64)
        self._words = np.zeros((0, 0), np.int64)
        self._word_atoms = np.zeros(0, np.int64)

    @property
    def atoms(self) -> int:
        """Number of atoms the history distinguishes."""
        return self._atoms

    @property
    def rank(self) -> int:
        """Number of independent answers, the total included."""
        return int(self._rows.size + self._words.shape[0])

    def bytes(self) -> int:
        """Return the memory the history takes."""
        arrays = (self._atom, self._sizes, self._members, self._square, self._words, self._counts)
        return sum(array.nbytes for array in arrays)

    # -- deciding --------------------------------------------------------------------------------
    def decide(self, inside: npt.NDArray[np.integer]) -> Decision:
        """Return whether the sum over the profiles `inside` may be answered."""
        places = inside.astype(np.int64, copy=False)
        held = self._held(places)
        total = int(held.sum())
        if total < self.k or 0 < self.records - total < self.k:
            return Decision(safe=False)
        sizes = self._sizes[: self._atoms]
        split = np.flatnonzero((held > 0) & (held < sizes))
        plan = self._pivoted(held, split)
        self._reduce(plan)
        if plan.pivot is None and not split.size:
            # Constant on atoms: it may follow from what is known already.
            word = plan.words[-1][0]
            if not word.any() or self._spans(word):
                return Decision(safe=True, known=True)
        if plan.words and self._is_light(plan):
            return Decision(safe=False)
        return Decision(True, False, places, plan)

    def _held(self, inside: Ids) -> Vector:
        atoms = self._atom[inside]
        if self._plain:
            return np.bincount(atoms, minlength=self._atoms).astype(np.int64)
        weights = self._counts[inside]
        return np.bincount(atoms, weights=weights, minlength=self._atoms).astype(np.int64)

    def _pivoted(self, held: Vector, split: Ids) -> _Plan:
        """Return the plan with every pivot in a part of at least k records, or its row put apart."""
        sizes = self._sizes[: self._atoms]
        pivots, rows = self._pivots, self._rows
        there, size = held[pivots], sizes[pivots]
        side = there * 2 >= size
        part = np.where(side, there, size - there)
        r = rows.size
        plan = _Plan(held, split, self._square[:r, :r], rows, pivots, side, None, None, [])
        broken = np.flatnonzero(part < self.k)
        if broken.size:
            plan.square = plan.square.copy()
            plan.pivots, plan.side = pivots.copy(), side.copy()
            for pivot in pivots[broken]:
                self._move_pivot(plan, int(np.flatnonzero(plan.pivots == pivot)[0]))
        return plan

    def _move_pivot(self, plan: _Plan, place: int) -> None:
        held, sizes = plan.held, self._sizes[: self._atoms]
        part = np.maximum(held, sizes - held)
        large = np.flatnonzero(part >= self.k)
        values = self._values(plan.square[place], plan.rows, large)
        choice = large[values != 0]
        if choice.size:
            atom = int(choice[part[choice].argmax()])
            column = self._column(plan, atom)
            row = plan.square[place] * inverse(column[place]) % PRIME
            plan.square[:] = (plan.square - column[:, None] * row[None, :]) % PRIME
            plan.square[place] = row
            plan.pivots[place] = atom
            plan.side[place] = held[atom] * 2 >= sizes[atom]
            return
        # The row lives on small parts only: it leaves the others and is looked at on its own.
        every = np.arange(self._atoms, dtype=np.int64)
        word = self._values(plan.square[place], plan.rows, every)
        plan.words.append((word, word))
        query = int(np.flatnonzero(plan.square[place])[0])
        factor = plan.square[:, query] * inverse(plan.square[place, query]) % PRIME
        reduced = (plan.square - factor[:, None] * plan.square[place][None, :]) % PRIME
        keep_rows = np.arange(plan.pivots.size) != place
        keep_columns = np.arange(plan.rows.size) != query
        plan.square = np.ascontiguousarray(reduced[keep_rows][:, keep_columns])
        plan.pivots, plan.side = plan.pivots[keep_rows], plan.side[keep_rows]
        plan.rows = plan.rows[keep_columns]

    def _column(self, plan: _Plan, atom: int) -> Vector:
        """Return the reduced rows' values at an atom."""
        bits = self._bits(plan.rows, atom)
        return np.asarray(plan.square[:, bits].sum(axis=1) % PRIME, dtype=np.int64)

    def _bits(self, rows: Ids, atom: int) -> npt.NDArray[np.bool_]:
        unpacked = np.unpackbits(self._members[atom], bitorder="little")
        return unpacked[rows].astype(bool)

    def _values(self, coefficients: Vector, rows: Ids, which: Ids) -> Vector:
        """Return a combination of the rows at the given atoms."""
        spread = np.zeros(int(rows.max()) + 1 if rows.size else 1, np.int64)
        spread[rows] = coefficients
        return np.asarray(lookup(tables(spread), self._members, which, PRIME), dtype=np.int64)

    def _reduce(self, plan: _Plan) -> None:
        """Reduce the new row by the others, and find its pivot or put it apart."""
        held, sizes = plan.held, self._sizes[: self._atoms]
        # At a pivot, the row is one where its part lies inside the set.
        ones = plan.side & (held[plan.pivots] > 0)
        coefficients = np.asarray(plan.square[ones].sum(axis=0) % PRIME, dtype=np.int64)
        plan.coefficients = coefficients
        part = np.maximum(held, sizes - held)
        spread_table = self._spread_tables(coefficients, plan.rows)
        for which in self._candidates(plan, part):
            values = np.asarray(lookup(spread_table, self._members, which, PRIME), np.int64)
            pivot = self._pivot(plan, which, values)
            if pivot is not None:
                plan.pivot = pivot
                return
        every = np.arange(self._atoms, dtype=np.int64)
        values = np.asarray(lookup(spread_table, self._members, every, PRIME), np.int64)
        outside = -values % PRIME
        within = (1 - values) % PRIME
        # Atoms wholly inside or wholly outside have one value.
        outside = np.where(held == sizes, within, outside)
        within = np.where(held == 0, outside, within)
        plan.words.append((outside, within))

    def _spread_tables(self, coefficients: Vector, rows: Ids) -> Matrix:
        spread = np.zeros(int(rows.max()) + 1 if rows.size else 1, np.int64)
        spread[rows] = coefficients
        return np.asarray(tables(spread), np.int64)

    def _candidates(self, plan: _Plan, part: Vector) -> list[Ids]:
        """Return the atoms to try as pivot: those likely to do first, at last all large ones."""
        # The two parts of a split atom differ by one, so one of them always does.
        held = plan.held[plan.split]
        both = np.minimum(held, self._sizes[plan.split] - held) >= self.k
        halves = _top(plan.split[both], part, LARGEST // 4)
        large = part >= self.k
        every = np.flatnonzero(large)
        if halves.size:
            return [halves]
        if every.size <= 2 * LARGEST:
            return [every]
        # What is left of the row lies mostly where the question does.
        large &= plan.held > 0
        large[plan.pivots] = False
        return [_top(np.flatnonzero(large), part, LARGEST), every]

    def _pivot(self, plan: _Plan, which: Ids, values: Vector) -> tuple[int, bool] | None:
        held = plan.held[which]
        size = self._sizes[which]
        within = np.where((held >= self.k) & (values != 1), held, 0)
        outside = np.where((size - held >= self.k) & (values != 0), size - held, 0)
        best_in, best_out = (int(a.argmax()) if a.size else -1 for a in (within, outside))
        if best_in < 0 or max(within[best_in], outside[best_out]) == 0:
            return None
        if within[best_in] >= outside[best_out]:
            return int(which[best_in]), True
        return int(which[best_out]), False

    def _spans(self, word: Vector) -> bool:
        """Whether a word on small atoms is a combination of those already there."""
        if not self._words.shape[0]:
            return False
        here = word[self._word_atoms]
        if np.count_nonzero(here) < np.count_nonzero(word):
            return False
        both = np.vstack([self._words, here[None]])
        touched = _component(both, 1)
        return _rank(both[touched]) < int(touched.sum())

    def _is_light(self, plan: _Plan) -> bool:
        generator, sizes, new = self._generator(plan)
        touched = _component(generator, new)
        rows = generator[touched]
        used = rows.any(axis=0)
        return has_light_word(rows[:, used], sizes[used], self.k)

    def _generator(self, plan: _Plan) -> tuple[Matrix, Vector, int]:
        """Return all words on small atoms over the parts after the split, new ones last."""
        joined, atoms = self._joined(plan)
        held, sizes = plan.held, self._sizes[: self._atoms]
        whole = np.where((held > 0) & (held < sizes), sizes - held, sizes)
        weights = np.concatenate([whole, held[plan.split]])
        return joined, weights[atoms], len(plan.words)

    def _joined(self, plan: _Plan) -> tuple[Matrix, Ids]:
        """Return all words over the atoms they live on; the inner parts of split atoms come last.

        The inner part of the n-th split atom has the number it would get, `atoms + n`.
        """
        used = np.zeros(self._atoms, bool)
        used[self._word_atoms] = True
        for outside, within in plan.words:
            used |= (outside != 0) | (within != 0)
        atoms = np.flatnonzero(used)
        known = np.zeros((self._words.shape[0], atoms.size), np.int64)
        known[:, np.searchsorted(atoms, self._word_atoms)] = self._words
        inner = np.isin(atoms, plan.split, assume_unique=True)
        numbers = self._atoms + np.searchsorted(plan.split, atoms[inner])
        outside = np.vstack([known, *(pair[0][atoms][None] for pair in plan.words)])
        within = np.vstack([known[:, inner], *(pair[1][atoms[inner]][None] for pair in plan.words)])
        joined = np.hstack([outside, within])
        return joined, np.concatenate([atoms, numbers])

    # -- accepting -------------------------------------------------------------------------------
    def accept(self, decision: Decision) -> None:
        """Take an answer into the history; the decision must be the last one made."""
        if not decision.safe:
            raise ValueError("a refused decision is not accepted")
        plan = decision._plan
        if decision.known or plan is None:
            return
        self._take_words(plan)
        new = self._split(plan, decision.inside)
        rows, pivots = plan.rows, plan.pivots.copy()
        moved = plan.side & np.isin(pivots, plan.split)
        pivots[moved] = new[np.searchsorted(plan.split, pivots[moved])]
        if plan.square.shape[0] != self._rows.size or plan.square.base is not self._square:
            self._square[: rows.size, : rows.size] = plan.square
        self._rows, self._pivots = rows, pivots
        if plan.pivot is not None:
            self._add_row(plan, new, decision.inside)

    def _take_words(self, plan: _Plan) -> None:
        """Add the new words, and copy their values to both parts of each atom that splits."""
        if not plan.words and not self._words.shape[0]:
            return
        if not plan.words and not np.isin(self._word_atoms, plan.split).any():
            return
        joined, atoms = self._joined(plan)
        order = np.argsort(atoms, kind="stable")
        used = joined[:, order].any(axis=0)
        self._word_atoms = atoms[order][used]
        self._words = joined[:, order][:, used]

    def _split(self, plan: _Plan, inside: Ids) -> Ids:
        """Give the inner part of each split atom a number of its own."""
        new = np.arange(self._atoms, self._atoms + plan.split.size, dtype=np.int64)
        if not new.size:
            return new
        while self._atoms + new.size > self._sizes.size:
            self._sizes = np.concatenate([self._sizes, np.zeros_like(self._sizes)])
            self._members = np.concatenate([self._members, np.zeros_like(self._members)])
        self._members[new] = self._members[plan.split]
        self._sizes[new] = plan.held[plan.split]
        self._sizes[plan.split] -= plan.held[plan.split]
        renumber = np.arange(self._atoms, dtype=np.int32)
        renumber[plan.split] = new
        self._atom[inside] = renumber[self._atom[inside]]
        self._atoms += new.size
        return new

    def _add_row(self, plan: _Plan, new: Ids, inside: Ids) -> None:
        assert plan.pivot is not None
        assert plan.coefficients is not None
        atom, within = plan.pivot
        if within and (place := np.searchsorted(plan.split, atom)) < plan.split.size:
            atom = int(new[place]) if plan.split[place] == atom else atom
        r = self._rows.size
        bit = self._free_bit()
        if r + 1 > self._square.shape[0]:
            grown = np.zeros((2 * r, 2 * r), np.int64)
            grown[:r, :r] = self._square[:r, :r]
            self._square = grown
        bits = self._bits(self._rows, atom)
        column = np.asarray(self._square[:r, :r][:, bits].sum(axis=1) % PRIME, dtype=np.int64)
        value = (int(within) - int(plan.coefficients[bits].sum())) % PRIME
        border(self._square, r, column, plan.coefficients, inverse(value), PRIME)
        self._rows = np.append(self._rows, bit)
        self._pivots = np.append(self._pivots, atom)
        if bit < self._bits_used:  # left from a row put apart
            self._members[: self._atoms, bit >> 3] &= np.uint8(~(1 << (bit & 7)) & 0xFF)
        self._bits_used = max(self._bits_used, bit + 1)
        held = np.zeros(self._atoms, bool)
        held[self._atom[inside]] = True
        self._members[np.flatnonzero(held), bit >> 3] |= np.uint8(1 << (bit & 7))

    def _free_bit(self) -> int:
        """Return a bit position no row uses; positions of rows put apart are used again."""
        taken = np.zeros(int(self._rows.max()) + 2 if self._rows.size else 1, bool)
        taken[self._rows] = True
        bit = int(np.flatnonzero(~taken)[0])
        if bit >= 8 * self._members.shape[1]:
            self._members = np.hstack([self._members, np.zeros_like(self._members)])
        return bit


def _top(atoms: Ids, size: Vector, number: int) -> Ids:
    """Return the largest of some atoms."""
    if atoms.size <= number:
        return atoms
    return atoms[np.argpartition(size[atoms], atoms.size - number)[-number:]]


def _component(generator: Matrix, new: int) -> npt.NDArray[np.bool_]:
    """Return the rows connected to the new ones by atoms they share."""
    used = generator != 0
    touched = np.zeros(generator.shape[0], bool)
    touched[generator.shape[0] - new :] = True
    while True:
        columns = used[touched].any(axis=0)
        grown = used[:, columns].any(axis=1) | touched
        if (grown == touched).all():
            return touched
        touched = grown


def _rank(rows: Matrix) -> int:
    rows = rows.copy()
    rank = 0
    for column in range(rows.shape[1]):
        candidates = np.flatnonzero(rows[rank:, column]) + rank
        if not candidates.size:
            continue
        chosen = int(candidates[0])
        rows[[rank, chosen]] = rows[[chosen, rank]]
        rows[rank] = rows[rank] * inverse(rows[rank, column]) % PRIME
        below = rows[rank + 1 :]
        below -= below[:, column][:, None] * rows[rank][None] % PRIME
        below %= PRIME
        rank += 1
        if rank == rows.shape[0]:
            break
    return rank
