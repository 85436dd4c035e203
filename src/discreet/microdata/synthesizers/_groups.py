"""Groups whose moments are kept exactly: none may tell the value of one of its members."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.errors import InputError
from discreet.microdata.columns import Numbers, Places
from discreet.microdata.synthesizers._moments import ALONE, FEW

__all__ = ["joined_groups"]

#: Members of a group that may decide a variance together with another one: those farthest away.
_FARTHEST = 4


def joined_groups(group: Places, values: Numbers, owner: Places) -> Places:
    """Return groups joined with the nearest until none tells the value of a member.

    A column with one value in a group leaves as it is there; and where it has one value but for a
    few people, or one of them makes nearly all of its variance, mean and variance tell theirs.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import cKDTree

    while (telling := _telling(group, values, owner)).any():
        many = telling.size
        if many == 1:
            raise InputError(
                "few people have another value of a column than most, or one makes nearly all of its "
                "variance, and exact moments would tell theirs",
                code="decided-by-one",
                hint="leave the column out, or draw it by cart",
            )
        size = np.bincount(group)[:, None]
        middle = np.stack([np.bincount(group, column) for column in values.T], axis=1) / size
        at = np.flatnonzero(telling)
        near = np.asarray(cKDTree(middle).query(middle[at], k=2)[1])
        other = np.where(near[:, 0] == at, near[:, 1], near[:, 0])
        links = coo_array((np.ones(at.size), (at, other)), shape=(many, many))
        group = connected_components(links, directed=False)[1].astype(np.int64)[group]
    return group


def _telling(group: Places, values: Numbers, owner: Places) -> npt.NDArray[np.bool_]:
    """Return for each group whether its moments tell the value of a member."""
    sizes = np.bincount(group)
    order = np.argsort(group, kind="stable")
    start = np.cumsum(sizes) - sizes
    found = np.zeros(sizes.size, bool)
    for size in np.unique(sizes):  # groups of one size together: thousands of small ones
        at = np.flatnonzero(sizes == size)
        rows = order[start[at][:, None] + np.arange(size)]
        few = _different(owner[rows]) < min(FEW, size)
        for column in values.T:
            own = column[rows]
            few |= _others(own) < min(FEW, size - 1)
            few |= _is_decided(own)
        found[at] = few
    return found


def _different(own: npt.NDArray[np.int64]) -> Places:
    """Return how many different numbers each row has."""
    return np.asarray(1 + (np.diff(np.sort(own, axis=1), axis=1) != 0).sum(axis=1))


def _others(own: Numbers) -> Places:
    """Return how many members of each group have another value than its commonest."""
    many, size = own.shape
    ordered = np.sort(own, axis=1)
    begins = np.ones((many, size), bool)
    begins[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    run = np.cumsum(begins.ravel()) - 1
    length = np.bincount(run)
    longest = length[run].reshape(many, size).max(axis=1)
    return np.asarray(size - longest)


def _is_decided(own: Numbers) -> npt.NDArray[np.bool_]:
    """Whether one member makes nearly all of a variance, to others or to one who takes theirs away."""
    size = own.shape[1]
    away = own - own.mean(axis=1, keepdims=True)
    squares = np.maximum((away**2).sum(axis=1, keepdims=True), 1e-300)
    farthest = np.argsort(-np.abs(away), axis=1)[:, :_FARTHEST]
    # The hat matrix of a constant and the column, for those farthest from the mean.
    one = np.take_along_axis(away, farthest, axis=1) / np.sqrt(squares)
    hat = 1 / size + one[:, :, None] * one[:, None, :]
    alone = np.einsum("gii->gi", hat)
    rest = np.maximum(1 - alone, 1e-12)
    with_one = alone[:, :, None] + hat**2 / rest[:, None, :]
    own_place = np.arange(one.shape[1])
    with_one[:, own_place, own_place] = 0.0
    return np.asarray((alone > ALONE).any(axis=1) | (with_one > ALONE).any(axis=(1, 2)))
