"""Third moments of a file drawn in groups: which of several draws of each group keeps them best."""

from __future__ import annotations

import itertools

import numpy as np

from discreet.microdata.columns import Numbers, Places

__all__ = ["chosen", "third_moments"]

#: Third moments that are looked at, at most: of one column, then of pairs, then of three.
_MOST = 500
#: Numbers that a product of columns holds in memory at once.
_BLOCK = 4_000_000
#: Rounds in which every group may change its draw.
_ROUNDS = 3


def third_moments(groups: Numbers) -> Numbers:
    """Return the sums of products of three columns in each group of (group, record, column).

    Each is weighted by how often it stands in the tensor of all third moments, so that distances
    between rows of the result are distances between tensors.
    """
    many, size, columns = groups.shape
    every = itertools.combinations_with_replacement(range(columns), 3)
    triples = np.array(sorted(every, key=lambda triple: len(set(triple)))[:_MOST])
    often = np.array([len(set(itertools.permutations(triple))) for triple in triples.tolist()])
    found = np.empty((many, len(triples)))
    step = max(1, _BLOCK // (size * len(triples)))
    for start in range(0, many, step):
        part = groups[start : start + step]
        one, two, three = (part[:, :, triples[:, place]] for place in range(3))
        found[start : start + step] = np.einsum("grt,grt,grt->gt", one, two, three)
    return np.asarray(found * np.sqrt(often))


def chosen(moments: Numbers, goal: Numbers) -> tuple[Places, Numbers]:
    """Return for each group which draw to take, and with which sign, so that the sum is near a goal.

    `moments` are those of (group, draw, moment). A draw and its mirror image have the same means and
    covariances and opposite third moments. Groups choose one after the other, large ones first.
    """
    many, draws, _ = moments.shape
    pick, sign = np.zeros(many, np.int64), np.zeros(many)
    left = goal.copy()
    order = np.argsort(-np.abs(moments).max(axis=(1, 2)), kind="stable")
    for _ in range(_ROUNDS):
        for group in order:
            left += sign[group] * moments[group, pick[group]]
            # |left − s·m|² without what is the same for all: |m|² − 2 s·left·m.
            size, along = (moments[group] ** 2).sum(axis=1), 2 * moments[group] @ left
            best = int(np.argmin(np.concatenate([size - along, size + along])))
            pick[group], sign[group] = best % draws, 1.0 if best < draws else -1.0
            left -= sign[group] * moments[group, pick[group]]
    return pick, sign
