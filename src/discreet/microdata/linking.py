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

#: Up to this many dimensions boxes find neighbours faster than comparing all by products.
_BOX_DIMENSIONS = 16
#: Distances held at once; files with fewer pairs are compared at once.
_BLOCK = 1 << 22


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

    Released records at the same distance cannot be told apart: the intruder picks any of them.
    """
    crowd = np.bincount(files.spot)
    if files.spots.shape[1] <= _BOX_DIMENSIONS and len(files.before) * len(files.spots) > _BLOCK:
        from discreet.microdata.neighbours import TOLERANCE
        from discreet.microdata.neighbours import nearest as boxed

        least, many = boxed(files.before, files.spots, crowd)
        slack = least * TOLERANCE
    else:
        least, many, slack = _compared(files.before, files.spots, crowd)
    own = files.spots[files.spot[np.maximum(files.own, 0)]]
    away = ((files.before - own) ** 2).sum(axis=1)
    return np.where((files.own >= 0) & (away <= least + slack), 1.0 / many, 0.0)


def _compared(queries: Numbers, spots: Numbers, crowd: Places) -> tuple[Numbers, Places, Numbers]:
    """Compare everything by products; also return how far rounding may carry a distance."""
    least, many = np.empty(len(queries)), np.empty(len(queries), np.int64)
    lengths, own = (spots**2).sum(axis=1), (queries**2).sum(axis=1)
    slack = 1e-12 * (own + lengths.max())
    step = max(1, _BLOCK // len(spots))
    for start in range(0, len(queries), step):
        rows = slice(start, start + step)
        away = lengths - 2.0 * (queries[rows] @ spots.T)
        least[rows] = away.min(axis=1)
        many[rows] = (away <= (least[rows] + slack[rows])[:, None]) @ crowd
    return least + own, many, slack


def assigned(files: Points, rng: Randomness) -> Numbers:
    """Return for each person the probability that the best one-to-one matching finds their record.

    People are matched with their own released records, in all the cheapest matching. Records on
    one spot cannot be told apart: the people matched with the spot get any of them.
    """
    from discreet.microdata.matching import cheapest

    inside = np.flatnonzero(files.own >= 0)
    right = np.zeros(files.own.size)
    if not inside.size:
        return right
    own, where = np.unique(files.spot[files.own[inside]], return_inverse=True)
    room = np.bincount(where)
    # In random order: between equally cheap matchings the solver must not favour the true one.
    people, spots = rng.permutation(inside.size), rng.permutation(own.size)
    found = np.empty(inside.size, np.int64)
    found[people] = spots[
        cheapest(files.before[inside[people]], files.spots[own[spots]], room[spots])
    ]
    right[inside] = np.where(found == where, 1.0 / room[where], 0.0)
    return right
