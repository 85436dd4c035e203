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
import functools
import os

import numpy as np
import numpy.typing as npt

from discreet.queries.history.field import (
    PRIME,
    Marks,
    Matrix,
    Square,
    Vector,
    border,
    combine,
    find_pivot,
    fingerprints,
    inverse,
    lookup,
    marked,
    replace_pivot,
    scan,
    tables,
    times,
    touch,
)
from discreet.queries.history.words import New, Words

__all__ = ["Auditor", "Decision", "warm"]

Ids = npt.NDArray[np.int64]
#: A split pivot of so many times k records in both parts is taken before all others: the row of
#: the inverse that it touches is one alone.
ROOMY = 8


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
class _Inverse:
    """The inverse of the matrix of the pivots: rows are pivots, columns are answered sums."""

    square: Square
    marks: Marks
    rows: Ids  # bit positions of the answered sums
    pivots: Ids
    row_at: Ids  # of each atom the row whose pivot it is, or −1
    prints: Matrix  # two fingerprints of each answered sum

    @property
    def size(self) -> int:
        return int(self.rows.size)

    def copy(self) -> _Inverse:
        r = self.size
        return _Inverse(
            self.square[:r, :r].copy(), self.marks[:r].copy(), self.rows, self.pivots.copy(),
            self.row_at.copy(), self.prints,
        )  # fmt: skip


@dataclasses.dataclass(eq=False)
class _Plan:
    """The state after the answer, as far as it differs."""

    touched: Ids  # atoms that hold records of the query set, in order …
    inner: Vector  # … and how many
    split: Ids  # atoms of which only a part is inside
    prints: Vector  # of the query set
    own: npt.NDArray[np.bool_]  # whether it holds words' own atoms
    inverse: _Inverse
    coefficients: Vector | None = None  # the new row reduced by the others …
    sums: tuple[Vector, Matrix] = (np.zeros(0, np.int64), np.zeros((0, 256), np.int64))
    pivot: tuple[int, bool] | None = None  # … its pivot: atom and side
    beside: int = -1  # the row whose pivot is in the other part of that atom
    left: Vector = dataclasses.field(default_factory=lambda: np.zeros(2, np.int64))  # its prints
    words: list[New] = dataclasses.field(default_factory=list)  # new words on small atoms


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
        self.records = int(self._counts.sum())
        self._atom = np.zeros(counts.size, np.int32)
        self._sizes = np.zeros(16, np.int64)
        self._sizes[0] = self.records
        self._scratch = np.zeros(16, np.int64)
        self._atoms = 1
        # The total is taken as known: a complement below k is a difference below k.
        # Of each atom one bit for each row, eight rows in a byte.
        self._members = np.zeros((8, 16), np.uint8)
        self._members[0, 0] = 1
        self._bits_used = 1
        self._inverse = _Inverse(
            np.zeros((64, 64), np.int32), np.zeros((64, 1), np.uint64), np.zeros(1, np.int64),
            np.zeros(1, np.int64), np.full(16, -1, np.int64), np.zeros((2, 1), np.int64),
        )  # fmt: skip
        self._inverse.square[0, 0] = 1
        self._inverse.marks[0, 0] = 1
        self._inverse.row_at[0] = 0
        # A secret number for each profile: a combination of sets that is nothing adds up to
        # zero, any other does so once in 2⁶² times.
        drawn = np.frombuffer(os.urandom(16 * counts.size), np.uint64).reshape(2, counts.size)
        self._secret = np.where(self._counts > 0, (drawn % PRIME).astype(np.int64), 0)
        self._inverse.prints[:, 0] = self._secret.sum(axis=1) % PRIME
        self._words = Words()

    @property
    def atoms(self) -> int:
        """Number of atoms the history distinguishes."""
        return self._atoms

    @property
    def rank(self) -> int:
        """Number of independent answers, the total included."""
        return self._inverse.size + len(self._words)

    def bytes(self) -> int:
        """Return the memory the history takes."""
        inverse_ = self._inverse
        arrays = (
            self._atom, self._sizes, self._members, self._counts, self._secret, inverse_.square, inverse_.marks,
        )  # fmt: skip
        return sum(array.nbytes for array in arrays) + self._words.nbytes

    # -- deciding --------------------------------------------------------------------------------
    def decide(self, inside: npt.NDArray[np.integer]) -> Decision:
        """Return whether the sum over the profiles `inside` may be answered."""
        places = inside.astype(np.int64, copy=False)
        touched = np.sort(touch(places, self._atom, self._counts, self._scratch))
        inner = self._scratch[touched]
        own = self._scratch[self._words.own_atoms] > 0
        self._scratch[touched] = 0
        total = int(inner.sum())
        if total < self.k or 0 < self.records - total < self.k:
            return Decision(safe=False)
        split = touched[inner < self._sizes[touched]]
        prints = fingerprints(self._secret, places, PRIME)
        plan = self._pivoted(_Plan(touched, inner, split, prints, own, self._inverse))
        self._combine(plan)
        if not split.size and self._is_known(plan):
            return Decision(safe=True, known=True)
        self._reduce(plan)
        if plan.words:
            held, sizes = self._held(plan), self._sizes[: self._atoms]
            if self._words.are_light(plan.words, held, sizes, split, self.k):
                return Decision(safe=False)
        return Decision(True, False, places, plan)

    def _held(self, plan: _Plan) -> Vector:
        held = np.zeros(self._atoms, np.int64)
        held[plan.touched] = plan.inner
        return held

    def _pivoted(self, plan: _Plan) -> _Plan:
        """Return the plan with every pivot in a part of at least k records, or its row put apart."""
        part = np.maximum(plan.inner, self._sizes[plan.touched] - plan.inner)
        rows = plan.inverse.row_at[plan.touched]
        broken = plan.touched[(rows >= 0) & (part < self.k)]
        if not broken.size:
            return plan
        held = self._held(plan)
        # Another pivot is as good whether or not the question will be answered.
        lost = [int(atom) for atom in broken if not self._move_pivot(int(atom), held)]
        if lost:
            plan.inverse = plan.inverse.copy()
            for atom in lost:
                self._put_apart(plan, int(plan.inverse.row_at[atom]))
        return plan

    def _move_pivot(self, atom: int, held: Vector) -> bool:
        """Give the row with a pivot another one, in the largest part where it is not zero."""
        at = self._inverse
        place = int(at.row_at[atom])
        r = at.size
        sizes = self._sizes[: self._atoms]
        part = np.maximum(held, sizes - held)
        large = np.flatnonzero(part >= self.k)
        used, sums = tables(self._spread(at.square[place, :r].astype(np.int64), at.rows))
        # An atom of which nothing is held has one part, where the row has its own value.
        found, _ = find_pivot(
            used,
            sums,
            self._members,
            large,
            np.zeros_like(large),
            part[large],
            self.k,
            ROOMY * self.k,
            PRIME,
        )
        if found < 0:
            return False
        column = times(at.square, at.marks, self._bits(at, found), r, PRIME)
        replace_pivot(at.square, at.marks, r, place, column, inverse(column[place]), PRIME)
        at.row_at[atom] = -1
        at.row_at[found] = place
        at.pivots[place] = found
        return True

    def _put_apart(self, plan: _Plan, place: int) -> None:
        """Take a row that lives on small parts only from the others, to be looked at on its own."""
        at = plan.inverse
        square = at.square.astype(np.int64)
        row = square[place]
        used, sums = tables(self._spread(row, at.rows))
        every = np.arange(self._atoms, dtype=np.int64)
        word = np.asarray(lookup(used, sums, self._members, every, PRIME), np.int64)
        prints = (at.prints[:, : at.size] * row % PRIME).sum(axis=1) % PRIME
        plan.words.append((word, word, prints))
        query = int(np.flatnonzero(row)[0])
        factor = square[:, query] * inverse(row[query]) % PRIME
        changed = np.flatnonzero(factor)
        square[changed] = (square[changed] - factor[changed, None] * row[None, :]) % PRIME
        keep_rows = np.arange(at.size) != place
        keep_columns = np.arange(at.size) != query
        at.square = square[keep_rows][:, keep_columns].astype(np.int32)
        at.pivots, at.rows = at.pivots[keep_rows], at.rows[keep_columns]
        at.prints = at.prints[:, : keep_columns.size][:, keep_columns]
        at.row_at[:] = -1
        at.row_at[at.pivots] = np.arange(at.pivots.size)
        at.marks = np.zeros((at.size, (at.size + 64) >> 6), np.uint64)
        marked(at.square, at.marks)

    def _bits(self, at: _Inverse, atom: int) -> Marks:
        """Return which of the answered sums hold an atom, as one bit each."""
        held = np.unpackbits(self._members[:, atom], bitorder="little")[at.rows]
        packed = np.zeros(8 * ((at.size + 64) >> 6), np.uint8)
        packed[: (at.size + 7) >> 3] = np.packbits(held, bitorder="little")
        return packed.view(np.uint64)

    def _spread(self, coefficients: Vector, rows: Ids) -> Vector:
        """Return coefficients of rows at the rows' bit positions."""
        spread = np.zeros(self._bits_used, np.int64)
        spread[rows] = coefficients
        return spread

    def _combine(self, plan: _Plan) -> None:
        """Find the combination of the others that equals the new row at all pivots."""
        at = plan.inverse
        # At a pivot, the row is one where the pivot's part lies inside the set.
        rows = at.row_at[plan.touched]
        ones = rows[(rows >= 0) & (2 * plan.inner >= self._sizes[plan.touched])]
        plan.coefficients = combine(at.square, at.marks, ones, at.size, PRIME)
        plan.sums = tables(self._spread(plan.coefficients, at.rows))
        used = np.flatnonzero(plan.coefficients)
        products = at.prints[:, used] * plan.coefficients[used] % PRIME
        plan.left = (plan.prints - products.sum(axis=1)) % PRIME

    def _is_known(self, plan: _Plan) -> bool:
        """Whether a row that is constant on atoms is a combination of the others and of words."""
        assert plan.coefficients is not None
        own = self._words.own_atoms
        if not plan.left.any() or not own.size:
            return not plan.left.any()
        values = lookup(*plan.sums, self._members, own, PRIME)
        return self._words.equal((plan.own - values) % PRIME, plan.left)

    def _reduce(self, plan: _Plan) -> None:
        """Find a pivot of the new row less the combination, or put it apart."""
        at = plan.inverse
        assert plan.coefficients is not None
        sizes = self._sizes[plan.touched]
        rows = at.row_at[plan.touched]
        both = np.minimum(plan.inner, sizes - plan.inner)
        roomy = np.where(rows >= 0, both, 0)
        best = int(roomy.argmax())
        if roomy[best] >= ROOMY * self.k:
            # The combination equals the row in the part of the pivot, so not in the other one.
            plan.pivot = int(plan.touched[best]), bool(2 * plan.inner[best] < sizes[best])
            plan.beside = int(rows[best])
            return
        used, sums = plan.sums
        for chosen in (both >= self.k, both < self.k):
            # The two parts of a split atom differ by one, so one of them always does.
            found = find_pivot(
                used, sums, self._members, plan.touched[chosen], plan.inner[chosen],
                sizes[chosen], self.k, ROOMY * self.k, PRIME,
            )  # fmt: skip
            if found[0] >= 0:
                plan.pivot = int(found[0]), bool(found[1])
                return
        held, sizes = self._held(plan), self._sizes[: self._atoms]
        rest = np.where(held == 0, sizes, 0)
        atom, values = scan(used, sums, self._members, rest, self.k, PRIME)
        if atom >= 0:
            plan.pivot = int(atom), False
            return
        outside = -values % PRIME
        within = (1 - values) % PRIME
        # Atoms wholly inside or wholly outside have one value.
        outside = np.where(held == sizes, within, outside)
        within = np.where(held == 0, outside, within)
        plan.words.append((outside, within, plan.left))

    # -- accepting -------------------------------------------------------------------------------
    def accept(self, decision: Decision) -> None:
        """Take an answer into the history; the decision must be the last one made."""
        if not decision.safe:
            raise ValueError("a refused decision is not accepted")
        plan = decision._plan
        if decision.known or plan is None:
            return
        if plan.inverse is not self._inverse:
            self._write_back(plan.inverse)
        at = self._inverse
        rows = at.row_at[plan.touched]
        sizes = self._sizes[plan.touched]
        moved = (rows >= 0) & (plan.inner < sizes) & (2 * plan.inner >= sizes)
        new = self._split(plan, decision.inside)
        self._words.split(plan.split, new)
        for outside, within, prints in plan.words:
            values = np.concatenate([outside, within[plan.split]])
            self._words.add(values, prints, self._sizes[: self._atoms])
        atoms = plan.touched[moved]
        there = new[np.searchsorted(plan.split, atoms)]
        at.row_at[atoms] = -1
        at.row_at[there] = rows[moved]
        at.pivots[rows[moved]] = there
        if plan.pivot is not None:
            self._add_row(plan, new)

    def _write_back(self, changed: _Inverse) -> None:
        at, r = self._inverse, changed.size
        at.square[: at.size, : at.size] = 0
        at.marks[: at.size] = 0
        at.square[:r, :r] = changed.square
        words = (r + 63) >> 6
        at.marks[:r, :words] = changed.marks[:, :words]
        at.rows, at.pivots, at.prints = changed.rows, changed.pivots, changed.prints
        at.row_at[: changed.row_at.size] = changed.row_at

    def _split(self, plan: _Plan, inside: Ids) -> Ids:
        """Give the inner part of each split atom a number of its own."""
        new = np.arange(self._atoms, self._atoms + plan.split.size, dtype=np.int64)
        if not new.size:
            return new
        while self._atoms + new.size > self._sizes.size:
            self._grow_atoms()
        self._members[:, new] = self._members[:, plan.split]
        held = plan.inner[np.searchsorted(plan.touched, plan.split)]
        self._sizes[new] = held
        self._sizes[plan.split] -= held
        renumber = np.arange(self._atoms, dtype=np.int32)
        renumber[plan.split] = new
        self._atom[inside] = renumber[self._atom[inside]]
        self._atoms += new.size
        return new

    def _grow_atoms(self) -> None:
        self._sizes = np.concatenate([self._sizes, np.zeros_like(self._sizes)])
        self._scratch = np.concatenate([self._scratch, np.zeros_like(self._scratch)])
        self._members = np.hstack([self._members, np.zeros_like(self._members)])
        row_at = self._inverse.row_at
        self._inverse.row_at = np.concatenate([row_at, np.full_like(row_at, -1)])

    def _add_row(self, plan: _Plan, new: Ids) -> None:
        assert plan.pivot is not None
        assert plan.coefficients is not None
        at = self._inverse
        atom, within = plan.pivot
        if within and (place := np.searchsorted(plan.split, atom)) < plan.split.size:
            atom = int(new[place]) if plan.split[place] == atom else atom
        r = at.size
        bit = self._free_bit()
        if r + 1 > at.square.shape[0]:
            self._grow_square()
        if plan.beside >= 0:  # the answers so far do not tell the two parts apart
            column = np.zeros(r, np.int64)
            column[plan.beside] = 1
            value = 1 if within else PRIME - 1
        else:
            bits = self._bits(at, atom)
            column = times(at.square, at.marks, bits, r, PRIME)
            held = np.unpackbits(bits.view(np.uint8), count=r, bitorder="little").astype(bool)
            value = (int(within) - int(plan.coefficients[held].sum())) % PRIME
        border(at.square, at.marks, r, column, plan.coefficients, inverse(value), PRIME)
        at.rows = np.append(at.rows, bit)
        if r + 1 > at.prints.shape[1]:
            at.prints = np.hstack([at.prints, np.zeros_like(at.prints)])
        at.prints[:, r] = plan.prints
        at.pivots = np.append(at.pivots, atom)
        at.row_at[atom] = r
        if bit < self._bits_used:  # left from a row put apart
            self._members[bit >> 3, : self._atoms] &= np.uint8(~(1 << (bit & 7)) & 0xFF)
        self._bits_used = max(self._bits_used, bit + 1)
        inside = plan.touched.copy()
        inside[np.searchsorted(plan.touched, plan.split)] = new
        self._members[bit >> 3, inside] |= np.uint8(1 << (bit & 7))

    def _grow_square(self) -> None:
        at = self._inverse
        r = at.size
        square = np.zeros((2 * r, 2 * r), np.int32)
        square[:r, :r] = at.square[:r, :r]
        marks = np.zeros((2 * r, (2 * r + 63) >> 6), np.uint64)
        marks[:r, : at.marks.shape[1]] = at.marks[:r]
        at.square, at.marks = square, marks

    def _free_bit(self) -> int:
        """Return a bit position no row uses; positions of rows put apart are used again."""
        rows = self._inverse.rows
        bit = rows.size
        if bit < self._bits_used:
            taken = np.zeros(self._bits_used + 1, bool)
            taken[rows] = True
            bit = int(np.flatnonzero(~taken)[0])
        if bit >= 8 * self._members.shape[0]:
            self._members = np.vstack([self._members, np.zeros_like(self._members)])
        return bit


@functools.cache
def warm() -> None:
    """Have everything compiled that decisions need, so that no question waits for it."""
    rng = np.random.default_rng(1)
    for k in (2, 3, 4):
        auditor = Auditor(np.ones(40, np.int64), k)
        for _ in range(40):
            decision = auditor.decide(np.flatnonzero(rng.random(40) < 0.5))
            if decision.safe:
                auditor.accept(decision)
