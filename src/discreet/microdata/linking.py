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
    """People looked for and released records, as points.

    Released records on one spot cannot be told apart, so spots are kept once. `before` has the
    people looked for, `own` the place of each one's own record among the released ones (−1 for
    none), and `spot` the spot of each released record.
    """

    before: Numbers
    spots: Numbers
    spot: Places
    own: Places

    @classmethod
    def of(cls, before: Numbers, after: Numbers, origin: Places) -> Points:
        """Make the points of two files of numbers; everybody is looked for."""
        spots, spot = np.unique(after, axis=0, return_inverse=True)
        return cls(before, spots, spot.ravel(), _own(before.shape[0], origin))


def _own(people: int, origin: Places) -> Places:
    released = np.full(people, -1)
    released[origin] = np.arange(origin.size)
    return released


def points(pair: Pair, targets: Places, *, ranks: bool = False) -> Points:
    """Return the keys of the people looked for, and of the release, as points.

    With `ranks` numbers count by their rank.
    """
    sides: list[tuple[_Axis, _Axis]] = [
        _numeric(pair, name, ranks=ranks) if pair.is_numeric(name) else _categorical(pair, name)
        for name in pair.released_keys
    ]
    spot = combined([after.codes for _, after in sides], pair.size)
    first = np.unique(spot, return_index=True)[1]
    people = len(pair.before(pair.released_keys[0]))
    return Points(
        np.concatenate([before.embedded(targets) for before, _ in sides], axis=1),
        np.concatenate([after.embedded(first) for _, after in sides], axis=1),
        spot,
        _own(people, pair.origin)[targets],
    )


@dataclasses.dataclass(frozen=True, eq=False)
class _Axis:
    """One column of one file: codes that tell values apart, and where each code lies."""

    codes: Places
    #: For each code its place; the last row is that of a missing value.
    places: Numbers

    def embedded(self, rows: Places) -> Numbers:
        return self.places[self.codes[rows]]


def _numeric(pair: Pair, name: str, *, ranks: bool) -> tuple[_Axis, _Axis]:
    from discreet.microdata.masking._base import numbers

    first, second = (numbers(c, name=name) for c in (pair.before(name), pair.after(name)))
    if ranks:
        first, second = _ranks(first), _ranks(second)
    known = first[~np.isnan(first)]
    spread = float(known.std()) if known.size else 0.0
    middle = float(known.mean()) if known.size else 0.0
    scale = spread if spread > 0 else 1.0
    return _number_axis(first, middle, scale), _number_axis(second, middle, scale)


def _number_axis(values: Numbers, middle: float, scale: float) -> _Axis:
    found, codes = np.unique(values, return_inverse=True)  # all that are missing come last, as one
    return _Axis(codes.ravel(), np.nan_to_num((found - middle) / scale)[:, None])


def _ranks(values: Numbers) -> Numbers:
    from scipy.stats import rankdata

    ranked = np.full(values.size, np.nan)
    known = ~np.isnan(values)
    ranked[known] = rankdata(values[known]) / max(int(known.sum()), 1)
    return ranked


def _categorical(pair: Pair, name: str) -> tuple[_Axis, _Axis]:
    first, second, width = pair.comparable(name)
    used = np.unique(np.concatenate([first, second]))
    used = used[used >= 0]
    # With two categories one axis does: at distance 1, a missing one in the middle.
    if used.size <= 2:
        places = np.zeros((width + 1, 1))
        places[used[-1:]] = 1.0
        places[-1] = 0.5
    else:
        places = np.zeros((width + 1, used.size))
        places[used, np.arange(used.size)] = np.sqrt(0.5)
    return _Axis(first, places), _Axis(second, places)  # a missing value has the code −1


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


def nearest(files: Points) -> Numbers:
    """Return for each person the probability that the nearest released record is theirs.

    Released records on one spot cannot be told apart: the intruder picks any of them.
    """
    crowd = np.bincount(files.spot)
    found = _nearest_spot(files.before, files.spots)
    right = (files.own >= 0) & (files.spot[np.maximum(files.own, 0)] == found)
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


def assigned(files: Points, rng: Randomness) -> Numbers:
    """Return for each person whether the best one-to-one matching gives them their own record.

    People are matched with their own released records, in all the cheapest matching.
    """
    from scipy.optimize import linear_sum_assignment
    from scipy.spatial.distance import cdist

    inside = np.flatnonzero(files.own >= 0)
    # In random order: between equally cheap matchings the solver must not favour the true one.
    mixed = rng.permutation(inside.size)
    after = files.spots[files.spot[files.own[inside[mixed]]]]
    chosen = mixed[linear_sum_assignment(cdist(files.before[inside], after, "sqeuclidean"))[1]]
    right = np.zeros(files.own.size)
    right[inside] = chosen == np.arange(inside.size)
    return right
