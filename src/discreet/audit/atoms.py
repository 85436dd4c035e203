"""Atoms: records that no release tells apart, and how many people stand behind them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["SCALE", "atoms_of", "incidence", "weights_of"]

Ints = npt.NDArray[np.int64]

#: A person counts as so many; one whose records lie in several atoms is shared out among them.
SCALE = 60


def atoms_of(memberships: Sequence[Ints]) -> Ints:
    """Return the atom of each record: records with the same numbers in all memberships share one.

    >>> atoms_of([np.array([0, 0, 1, 1]), np.array([5, 6, 6, 6])]).tolist()
    [0, 1, 2, 2]
    """
    if not memberships:
        return np.zeros(0, np.int64)
    found = np.zeros(len(memberships[0]), np.int64)
    for members in memberships:
        _, places = np.unique(members, return_inverse=True)
        places = places.astype(np.int64).ravel()
        together = found * (int(places.max(initial=0)) + 1) + places
        _, found = np.unique(together, return_inverse=True)
        found = found.astype(np.int64).ravel()
    return found


def weights_of(atoms: Ints, units: Ints, halved: npt.NDArray[np.bool_] | None = None) -> Ints:
    """Return how many people, in parts of `SCALE`, surely stand behind each atom.

    A unit in several atoms counts in each with its share, so that a set of atoms never weighs more
    than the units in it. Records in `halved` may be one of two of the same person.

    >>> weights_of(np.array([0, 0, 1]), np.array([7, 8, 8])).tolist()
    [90, 30]
    """
    size = int(atoms.max(initial=-1)) + 1
    if not size:
        return np.zeros(0, np.int64)
    pairs = np.unique(np.stack([units, atoms], axis=1), axis=0)
    _, place, times = np.unique(pairs[:, 0], return_inverse=True, return_counts=True)
    share = SCALE // times[place.ravel()]
    if halved is not None and halved.any():
        some = np.isin(pairs[:, 0], units[halved])
        share = np.where(some, share // 2, share)
    return np.bincount(pairs[:, 1], weights=share, minlength=size).astype(np.int64)


def incidence(
    combinations: Ints, ancestors: Sequence[tuple[Ints, Ints]], sizes: Sequence[int]
) -> tuple[Ints, Ints]:
    """Return pairs of a cell's key and a combination that counts into it.

    `combinations` are rows of codes; `ancestors` gives for each attribute, as (start, codes), the
    codes that each code counts into; keys are numbers in mixed radix over `sizes`.
    """
    which = np.arange(len(combinations), dtype=np.int64)
    key = np.zeros(len(combinations), np.int64)
    for place, ((start, codes), size) in enumerate(zip(ancestors, sizes, strict=True)):
        own = combinations[which, place]
        many = start[own + 1] - start[own]
        first = np.repeat(start[own], many)
        step = np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)
        key = np.repeat(key, many) * size + codes[first + step]
        which = np.repeat(which, many)
    return key, which
