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
        count = sizes.size
        support = np.zeros(count, bool)
        for outside, within in words:
            support |= (outside != 0) | (within != 0)
        known = self._connected(support)
        rows = self._rows[known]
        columns = np.flatnonzero(rows.any(axis=0))
        atoms = np.union1d(np.flatnonzero(support), self._atoms[columns])
        joined = np.zeros((known.size + len(words), atoms.size), np.int64)
        joined[: known.size, np.searchsorted(atoms, self._atoms[columns])] = rows[:, columns]
        inner = np.isin(atoms, split, assume_unique=True)
        parts = joined[:, inner]
        for place, (outside, within) in enumerate(words, known.size):
            joined[place] = outside[atoms]
            parts[place] = within[atoms[inner]]
        generator = np.hstack([joined, parts])
        # The inner part of a split atom comes after all atoms.
        whole = np.where((held > 0) & (held < sizes), sizes - held, sizes)
        weights = np.concatenate([whole[atoms], held[atoms[inner]]])
        own = np.full(generator.shape[0], -1, np.int64)
        own[: known.size] = np.searchsorted(atoms, self._atoms[self._own[known]])
        changed = own_columns(generator, weights, own)
        return changed is None or light_with(generator, weights, own, np.flatnonzero(changed), k)

    def _connected(self, support: npt.NDArray[np.bool_]) -> Ids:
        """Return the words that share atoms with a support, directly or through each other."""
        if not len(self):
            return np.zeros(0, np.int64)
        columns = support[self._atoms]
        touched = self._rows[:, columns].any(axis=1)
        while True:
            columns = columns | self._rows[touched].any(axis=0)
            grown = self._rows[:, columns].any(axis=1)
            if (grown == touched).all():
                return np.flatnonzero(touched)
            touched = grown

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
