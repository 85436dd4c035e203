"""Combinations of answers that live on small atoms only, in which sets below k are looked for."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.queries.history.field import PRIME, Vector, eliminate, inverse
from discreet.queries.history.light_words import light_with, own_columns

__all__ = ["Words"]

Ids = npt.NDArray[np.int64]
#: A word before it is taken: its values outside the question and inside, for each atom, and its
#: fingerprints.
New = tuple[Vector, Vector, Vector]


class Words:
    """Independent words, each with an atom of its own where all others are zero."""

    def __init__(self) -> None:
        self._rows = np.zeros((0, 0), np.int64)
        self._atoms = np.zeros(0, np.int64)
        self._own = np.zeros(0, np.int64)  # column of each word's own atom
        self._prints = np.zeros((2, 0), np.int64)
        # Words of different labels share no atom; nor do columns.
        self._label = np.zeros(0, np.int64)
        self._column_label = np.zeros(0, np.int64)
        self._labels = 0

    def __len__(self) -> int:
        return int(self._rows.shape[0])

    @property
    def nbytes(self) -> int:
        """The memory they take."""
        return self._rows.nbytes

    @property
    def own_atoms(self) -> Ids:
        """Atoms at which a combination of words has their coefficients."""
        return self._atoms[self._own]

    def equal(self, coefficients: Vector, prints: Vector) -> bool:
        """Whether the combination with these coefficients has these fingerprints."""
        used = np.flatnonzero(coefficients)
        products = self._prints[:, used] * coefficients[used] % PRIME
        return bool((products.sum(axis=1) % PRIME == prints).all())

    def are_light(self, words: list[New], held: Vector, sizes: Vector, split: Ids, k: int) -> bool:
        """Whether new words, with those here, would isolate fewer than k records."""
        support = np.zeros(sizes.size, bool)
        for outside, within, _ in words:
            support |= (outside != 0) | (within != 0)
        known = np.flatnonzero(np.isin(self._label, self._met(support)))
        rows, columns = self._rows, np.arange(self._atoms.size)
        if known.size < len(self):
            rows = rows[known]
            columns = np.flatnonzero(rows.any(axis=0))
            rows = rows[:, columns]
        atoms = np.union1d(np.flatnonzero(support), self._atoms[columns])
        inner = np.flatnonzero(np.isin(atoms, split, assume_unique=True))
        # The inner part of a split atom comes after all atoms.
        generator = np.zeros((known.size + len(words), atoms.size + inner.size), np.int64)
        generator[: known.size, np.searchsorted(atoms, self._atoms[columns])] = rows
        generator[:, atoms.size :] = generator[:, inner]
        for place, (outside, within, _) in enumerate(words, known.size):
            generator[place, : atoms.size] = outside[atoms]
            generator[place, atoms.size :] = within[atoms[inner]]
        there = held[atoms]
        whole = np.where((there > 0) & (there < sizes[atoms]), sizes[atoms] - there, sizes[atoms])
        weights = np.concatenate([whole, there[inner]])
        own = np.full(generator.shape[0], -1, np.int64)
        own[: known.size] = np.searchsorted(atoms, self._atoms[self._own[known]])
        changed = own_columns(generator, weights, own)
        return changed is None or light_with(generator, weights, own, np.flatnonzero(changed), k)

    def _met(self, support: npt.NDArray[np.bool_]) -> Ids:
        """Return the labels of the words that a support meets."""
        return np.unique(self._column_label[support[self._atoms]])

    def split(self, split: Ids, new: Ids) -> None:
        """Give both parts of each split atom the values it had."""
        if not len(self) or not split.size:
            return
        column = np.flatnonzero(np.isin(self._atoms, split))
        if column.size:
            parts = new[np.searchsorted(split, self._atoms[column])]
            self._atoms = np.concatenate([self._atoms, parts])
            self._rows = np.hstack([self._rows, self._rows[:, column]])
            self._column_label = np.concatenate([self._column_label, self._column_label[column]])

    def add(self, word: Vector, prints: Vector, sizes: Vector) -> None:
        """Add a word that is no combination of the others; one value per atom."""
        support = word != 0
        met = self._met(support)
        missing = np.setdiff1d(np.flatnonzero(support), self._atoms, assume_unique=True)
        self._labels += 1
        self._label[np.isin(self._label, met)] = self._labels
        self._column_label[np.isin(self._column_label, met)] = self._labels
        if missing.size:
            blank = np.zeros((len(self), missing.size), np.int64)
            self._atoms = np.concatenate([self._atoms, missing])
            self._rows = np.hstack([self._rows, blank])
            more = np.full(missing.size, self._labels)
            self._column_label = np.concatenate([self._column_label, more])
        left, prints = word[self._atoms], prints.copy()
        for row, factor in enumerate(left[self._own]):
            if factor:
                left = (left - factor * self._rows[row]) % PRIME
                prints = (prints - factor * self._prints[:, row]) % PRIME
        held = np.flatnonzero(left)
        own = int(held[sizes[self._atoms[held]].argmax()])  # see `light_words.own_columns`
        scale = inverse(int(left[own]))
        left, prints = left * scale % PRIME, prints * scale % PRIME
        factors = self._rows[:, own].copy()
        self._prints = (self._prints - factors[None] * prints[:, None] % PRIME) % PRIME
        self._rows = np.vstack([self._rows, left[None]])
        self._prints = np.hstack([self._prints, prints[:, None]])
        self._own = np.append(self._own, own)
        self._label = np.append(self._label, self._labels)
        eliminate(self._rows, len(self) - 1, own, PRIME)
