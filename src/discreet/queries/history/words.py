"""Combinations of answers that live on small atoms only, in which sets below k are looked for."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.queries.history.field import PRIME, Matrix, Vector, eliminate, inverse
from discreet.queries.history.light_words import light_with, own_columns

__all__ = ["Words"]

Ids = npt.NDArray[np.int64]


class Words:
    """Independent words, each with an atom of its own where all others are zero."""

    def __init__(self) -> None:
        self._rows = np.zeros((0, 0), np.int64)
        self._atoms = np.zeros(0, np.int64)
        self._own = np.zeros(0, np.int64)  # column of each word's own atom

    def __len__(self) -> int:
        return int(self._rows.shape[0])

    @property
    def nbytes(self) -> int:
        """The memory they take."""
        return self._rows.nbytes

    def spans(self, word: Vector) -> bool:
        """Whether a word (one value per atom) is a combination of those already here."""
        if not len(self):
            return not word.any()
        here = word[self._atoms]
        if np.count_nonzero(here) < np.count_nonzero(word):
            return False
        return not self._reduced(here).any()

    def _reduced(self, here: Vector) -> Vector:
        """Return a word less its combination of the others; zero at every word's own atom."""
        left = here.copy()
        for row, factor in enumerate(here[self._own]):
            if factor:
                left = (left - factor * self._rows[row]) % PRIME
        return left

    def are_light(
        self,
        words: list[tuple[Vector, Vector]],
        held: Vector,
        sizes: Vector,
        split: Ids,
        k: int,
    ) -> bool:
        """Whether new words, with those here, would isolate fewer than k records.

        A new word has a value outside the question and one inside it, for each atom.
        """
        joined, atoms, inner = self._joined(words, split, sizes.size)
        whole = np.where((held > 0) & (held < sizes), sizes - held, sizes)
        weights = np.concatenate([whole, held[split]])[np.concatenate([atoms, inner])]
        touched = _component(joined, len(words))
        rows = np.ascontiguousarray(joined[touched])
        own = np.full(joined.shape[0], -1, np.int64)
        own[: len(self)] = np.searchsorted(atoms, self._atoms[self._own])
        own = own[touched]
        changed = own_columns(rows, weights, own)
        return changed is None or light_with(rows, weights, own, np.flatnonzero(changed), k)

    def _joined(
        self, words: list[tuple[Vector, Vector]], split: Ids, count: int
    ) -> tuple[Matrix, Ids, Ids]:
        """Return all words, new ones last, over the atoms they live on and inner parts of these.

        The inner part of the n-th split atom has the number it would get, `count + n`.
        """
        used = np.zeros(count, bool)
        used[self._atoms] = True
        for outside, within in words:
            used |= (outside != 0) | (within != 0)
        atoms = np.flatnonzero(used)
        known = np.zeros((len(self), atoms.size), np.int64)
        known[:, np.searchsorted(atoms, self._atoms)] = self._rows
        inner = np.isin(atoms, split, assume_unique=True)
        numbers = count + np.searchsorted(split, atoms[inner])
        outside = np.vstack([known, *(pair[0][atoms][None] for pair in words)])
        within = np.vstack([known[:, inner], *(pair[1][atoms[inner]][None] for pair in words)])
        return np.hstack([outside, within]), atoms, numbers

    def split(self, split: Ids, new: Ids) -> None:
        """Give both parts of each split atom the values it had."""
        if not len(self) or not split.size:
            return
        column = np.flatnonzero(np.isin(self._atoms, split))
        if column.size:
            parts = new[np.searchsorted(split, self._atoms[column])]
            self._atoms = np.concatenate([self._atoms, parts])
            self._rows = np.hstack([self._rows, self._rows[:, column]])

    def add(self, word: Vector, sizes: Vector) -> None:
        """Add a word that is no combination of the others; one value per atom."""
        missing = np.setdiff1d(np.flatnonzero(word), self._atoms, assume_unique=True)
        if missing.size:
            blank = np.zeros((len(self), missing.size), np.int64)
            self._atoms = np.concatenate([self._atoms, missing])
            self._rows = np.hstack([self._rows, blank])
        left = self._reduced(word[self._atoms])
        held = np.flatnonzero(left)
        own = int(held[sizes[self._atoms[held]].argmax()])  # see `light_words.own_columns`
        left = left * inverse(int(left[own])) % PRIME
        self._rows = np.vstack([self._rows, left[None]])
        self._own = np.append(self._own, own)
        eliminate(self._rows, len(self) - 1, own, PRIME)


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
