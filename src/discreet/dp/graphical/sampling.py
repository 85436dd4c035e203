"""Drawing records from a model: expected counts, rounded by lot, clique after clique."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.dp.graphical.domain import Numbers
from discreet.dp.graphical.potentials import Beliefs
from discreet.randomness import Randomness

__all__ = ["rounded", "sampled"]

Codes = npt.NDArray[np.int64]


def sampled(beliefs: Beliefs, n: int, *, rng: Randomness) -> Codes:
    """Return n records as codes, one column per attribute.

    Within each combination of what a clique shares with its parent, the other attributes get as
    many records as the model expects, up or down by less than one: so that drawing adds less error
    than independent draws would.
    """
    tree = beliefs.tree
    found = np.empty((n, len(tree.sizes)), np.int64)
    for place, own in enumerate(tree.cliques):
        separator = tree.separators[place]
        fresh = [attribute for attribute in own if attribute not in separator]
        if not fresh:
            continue
        shape = tree.sizes.shape(separator)
        axes = [own.index(a) for a in (*separator, *fresh)]
        groups = int(np.prod(shape, dtype=np.int64))
        table = beliefs.tables[place].transpose(axes).reshape(groups, -1)
        group = np.zeros(n, np.int64)
        if separator:
            group = np.ravel_multi_index(tuple(found[:, list(separator)].T), shape)
        size = np.bincount(group, minlength=groups)
        counts = rounded(table, size, rng=rng)
        # Records of a group in an order drawn by lot: nothing else ties them to the new values.
        order = rng.permutation(n)
        order = order[np.argsort(group[order], kind="stable")]
        cells = np.repeat(np.tile(np.arange(table.shape[1]), groups), counts.ravel())
        values = np.unravel_index(cells, tree.sizes.shape(tuple(fresh)))
        for attribute, codes in zip(fresh, values, strict=True):
            found[order, attribute] = codes
    return found


def rounded(weights: Numbers, sizes: Codes, *, rng: Randomness) -> Codes:
    """Return whole counts for each row of weights that sum to its size, right on average.

    Expected counts are cut down to whole ones; what is left of a row is given out by systematic
    sampling, so that a cell gets one more with the chance of exactly its fraction.

    >>> rounded(np.array([[1.0, 3.0]]), np.array([8]), rng=Randomness.seeded(1)).tolist()
    [[2, 6]]
    """
    width = weights.shape[1]
    whole = weights.sum(axis=1, keepdims=True)
    shares = np.where(whole > 0, weights / np.where(whole > 0, whole, 1.0), 1.0 / width)
    expected = shares * sizes[:, None]
    counts = np.floor(expected + 1e-9)
    fractions = np.maximum(expected - counts, 0.0)
    left = np.rint(sizes - counts.sum(axis=1))
    through = np.cumsum(fractions, axis=1)
    # The last sum must be whole, whatever rounding did to it.
    last = through[:, -1:]
    through = np.where(last > 0, through * (left[:, None] / np.where(last > 0, last, 1.0)), 0.0)
    through[:, -1] = left
    start = rng.uniform(len(weights))[:, None]
    marks = np.floor(through + start)
    added = np.diff(marks, axis=1, prepend=np.floor(start))
    return np.asarray(counts + added, np.int64)
