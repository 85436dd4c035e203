"""Linking the records of two files: by equal keys, by distance, or one to one.

Records are points: numbers divided by their spread, categories as corners at distance 1 from each
other, a missing category half-way to all, a missing number at the mean.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from discreet.microdata.pair import Pair, combined
from discreet.randomness import Randomness

__all__ = ["Points", "assigned", "exact", "nearest", "points"]

Places = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]

#: Up to this many dimensions a tree finds neighbours faster than comparing all.
_TREE_DIMENSIONS = 12
_BLOCK = 1 << 24


@dataclasses.dataclass(frozen=True, eq=False)
class Points:
    """Both files as points, and for each released record the place of its original."""

    before: Numbers
    after: Numbers
    origin: Places


def points(pair: Pair, *, ranks: bool = False) -> Points:
    """Return the keys of a pair of files as points; with `ranks` numbers count by their rank."""
    before, after = [], []
    for name in pair.released_keys:
        if pair.is_numeric(name):
            first, second = _numeric(pair, name, ranks=ranks)
        else:
            first, second = _categorical(pair, name)
        before.append(first)
        after.append(second)
    return Points(np.concatenate(before, axis=1), np.concatenate(after, axis=1), pair.origin)


def _numeric(pair: Pair, name: str, *, ranks: bool) -> tuple[Numbers, Numbers]:
    from discreet.microdata.masking._base import numbers

    first, second = (numbers(c, name=name) for c in (pair.before(name), pair.after(name)))
    if ranks:
        first, second = _ranks(first), _ranks(second)
    known = first[~np.isnan(first)]
    spread = float(known.std()) if known.size else 0.0
    middle = float(known.mean()) if known.size else 0.0
    scale = spread if spread > 0 else 1.0
    return tuple(np.nan_to_num((v - middle) / scale)[:, None] for v in (first, second))  # type: ignore[return-value]  # two of them


def _ranks(values: Numbers) -> Numbers:
    from scipy.stats import rankdata

    ranked = np.full(values.size, np.nan)
    known = ~np.isnan(values)
    ranked[known] = rankdata(values[known]) / max(int(known.sum()), 1)
    return ranked


def _categorical(pair: Pair, name: str) -> tuple[Numbers, Numbers]:
    first, second, _ = pair.comparable(name)
    used = np.unique(np.concatenate([first, second]))
    used = used[used >= 0]
    # With two categories one axis does: at distance 1, a missing one in the middle.
    if used.size <= 2:
        return tuple(
            np.where(v < 0, 0.5, (v == used[-1]).astype(float))[:, None]
            if used.size
            else np.zeros((v.size, 1))
            for v in (first, second)
        )  # type: ignore[return-value]  # two of them
    return _corners(first, used), _corners(second, used)


def _corners(values: Places, used: Places) -> Numbers:
    table = np.zeros((values.size, used.size))
    known = np.flatnonzero(values >= 0)
    table[known, np.searchsorted(used, values[known])] = np.sqrt(0.5)
    return table


def exact(pair: Pair, targets: Places) -> Numbers:
    """Return for each target the probability that a random record with the same keys is theirs."""
    first, second = [], []
    for name in pair.released_keys:
        one, two, _ = pair.comparable(name)
        first.append(one)
        second.append(two)
    joint = combined(
        [np.concatenate([a, b]) for a, b in zip(first, second, strict=True)],
        len(pair.before(pair.released_keys[0])) + pair.size,
    )
    before, after = joint[: -pair.size], joint[-pair.size :]
    counts = np.bincount(after, minlength=int(joint.max()) + 1)
    released = np.full(before.size, -1)
    released[pair.origin] = np.arange(pair.size)
    own = released[targets]
    agree = (own >= 0) & (after[np.maximum(own, 0)] == before[targets])
    return np.where(agree, 1.0 / np.maximum(counts[before[targets]], 1), 0.0)


def nearest(files: Points, targets: Places) -> Numbers:
    """Return for each target the probability that the nearest released record is theirs.

    Released records on one spot cannot be told apart: the intruder picks any of them.
    """
    spots, spot = np.unique(files.after, axis=0, return_inverse=True)
    spot = spot.ravel()
    crowd = np.bincount(spot)
    found = _nearest_spot(files.before[targets], spots)
    released = np.full(files.before.shape[0], -1)
    released[files.origin] = np.arange(files.origin.size)
    own = released[targets]
    right = (own >= 0) & (spot[np.maximum(own, 0)] == found)
    return np.where(right, 1.0 / crowd[found], 0.0)


def _nearest_spot(queries: Numbers, spots: Numbers) -> Places:
    if spots.shape[1] <= _TREE_DIMENSIONS:
        from scipy.spatial import cKDTree

        return np.asarray(cKDTree(spots).query(queries, workers=-1)[1], dtype=np.int64)
    found = np.empty(queries.shape[0], np.int64)
    lengths = (spots**2).sum(axis=1)
    step = max(1, _BLOCK // max(spots.shape[0], 1))
    for start in range(0, queries.shape[0], step):
        block = queries[start : start + step]
        found[start : start + step] = np.argmin(lengths - 2.0 * (block @ spots.T), axis=1)
    return found


def assigned(files: Points, targets: Places, rng: Randomness) -> Numbers:
    """Return for each target whether the best one-to-one matching gives them their own record.

    Targets are matched with their own released records, in all the cheapest matching.
    """
    from scipy.optimize import linear_sum_assignment
    from scipy.spatial.distance import cdist

    released = np.full(files.before.shape[0], -1)
    released[files.origin] = np.arange(files.origin.size)
    inside = targets[released[targets] >= 0]
    if inside.size == 0:
        return np.zeros(targets.size)
    # In random order: between equally cheap matchings the solver must not favour the true one.
    mixed = rng.permutation(inside.size)
    cost = cdist(files.before[inside], files.after[released[inside[mixed]]], "sqeuclidean")
    chosen = mixed[linear_sum_assignment(cost)[1]]
    right = dict(zip(inside.tolist(), (chosen == np.arange(inside.size)).tolist(), strict=True))
    return np.array([float(right.get(int(target), False)) for target in targets])
