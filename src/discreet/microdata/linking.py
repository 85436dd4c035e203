"""Linking the records of two files: by equal keys, by distance, or one to one.

Records are points: numbers divided by their spread, categories as corners at distance 1 from each
other, a missing category half-way to all, a missing number at the mean. A column of many categories
would need an axis for each, so its codes are compared instead, which gives the same distances.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from discreet.microdata.columns import combined
from discreet.microdata.pair import Pair
from discreet.randomness import Randomness

__all__ = ["Points", "assigned", "exact", "nearest", "points"]

Places = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]

#: Up to this many dimensions boxes find neighbours faster than comparing all by products.
_BOX_DIMENSIONS = 16
#: Categories of a column that become axes; columns with more are compared by their codes.
AXES = 32
#: Distances held at once; files with fewer pairs are compared at once.
_BLOCK = 1 << 22


@dataclasses.dataclass(frozen=True, eq=False)
class Points:
    """People looked for and released records, as points.

    Released records on one spot cannot be told apart, so spots are kept once. `before` has the
    people looked for, `own` the place of each one's own record among the released ones (−1 for
    none), and `spot` the spot of each released record. `codes` and `spot_codes` have the columns
    of many categories, −1 where missing.
    """

    before: Numbers
    spots: Numbers
    spot: Places
    own: Places
    #: The people on each spot; by default as many as there are records.
    crowd: Places | None = None
    codes: Places | None = None
    spot_codes: Places | None = None

    @classmethod
    def of(cls, before: Numbers, after: Numbers, origin: Places) -> Points:
        """Make the points of two files of numbers; everybody is looked for."""
        spots, spot = np.unique(after, axis=0, return_inverse=True)
        return cls(before, spots, spot.ravel(), _own(before.shape[0], origin))


def _own(people: int, origin: Places) -> Places:
    released = np.full(people, -1)
    released[origin] = np.arange(origin.size)
    return released


def points(pair: Pair, targets: Places, *, ranks: bool = False, axes: int = AXES) -> Points:
    """Return the keys of the people looked for, and of the release, as points.

    With `ranks` numbers count by their rank. A key with more categories than `axes` is compared
    code by code.
    """
    sides: list[tuple[_Axis, _Axis]] = [
        _numeric(pair, name, ranks=ranks)
        if pair.is_numeric(name)
        else _categorical(pair, name, axes)
        for name in pair.released_keys
    ]
    spot = combined([after.codes for _, after in sides], pair.size)
    first = np.unique(spot, return_index=True)[1]
    people = len(pair.before(pair.released_keys[0]))
    wide = [(before, after) for before, after in sides if before.places is None]
    return Points(
        _embedded([before for before, _ in sides], targets),
        _embedded([after for _, after in sides], first),
        spot,
        _own(people, pair.origin)[targets],
        pair.people_in(spot),
        np.stack([before.codes[targets] for before, _ in wide], axis=1) if wide else None,
        np.stack([after.codes[first] for _, after in wide], axis=1) if wide else None,
    )


def _embedded(axes: Sequence[_Axis], rows: Places) -> Numbers:
    parts = [axis.places[axis.codes[rows]] for axis in axes if axis.places is not None]
    return np.concatenate([np.empty((rows.size, 0)), *parts], axis=1)


@dataclasses.dataclass(frozen=True, eq=False)
class _Axis:
    """One column of one file: codes that tell values apart, and where each code lies."""

    codes: Places
    #: For each code its place, the last row for a missing value; None where codes are compared.
    places: Numbers | None


def _numeric(pair: Pair, name: str, *, ranks: bool) -> tuple[_Axis, _Axis]:
    from discreet.microdata.columns import numbers

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


def _categorical(pair: Pair, name: str, axes: int) -> tuple[_Axis, _Axis]:
    first, second, width = pair.comparable(name)
    used = np.unique(np.concatenate([first, second]))
    used = used[used >= 0]
    # With two categories one axis does: at distance 1, a missing one in the middle.
    if used.size <= 2:
        places = np.zeros((width + 1, 1))
        places[used[-1:]] = 1.0
        places[-1] = 0.5
    elif used.size > axes:
        return _Axis(first, None), _Axis(second, None)
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
    counts = np.zeros(int(joint.max()) + 1, dtype=np.int64)
    people = pair.people_in(after)
    counts[: people.size] = people
    released = np.full(before.size, -1)
    released[pair.origin] = np.arange(pair.size)
    own = released[targets]
    agree = (own >= 0) & (after[np.maximum(own, 0)] == before[targets])
    return np.where(agree, 1.0 / np.maximum(counts[before[targets]], 1), 0.0)


def nearest(files: Points) -> Numbers:
    """Return for each person the probability that the nearest released record is theirs.

    Released records at the same distance cannot be told apart: the intruder picks any of them.
    """
    crowd = np.bincount(files.spot) if files.crowd is None else files.crowd
    large = len(files.before) * len(files.spots) > _BLOCK
    if large and files.codes is None and files.spots.shape[1] <= _BOX_DIMENSIONS:
        from discreet.microdata.neighbours import TOLERANCE
        from discreet.microdata.neighbours import nearest as boxed

        least, many = boxed(files.before, files.spots, crowd)
        slack = least * TOLERANCE
    else:
        least, many, slack = _compared(
            files.before, files.spots, crowd, files.codes, files.spot_codes
        )
    own = files.spot[np.maximum(files.own, 0)]
    away = ((files.before - files.spots[own]) ** 2).sum(axis=1)
    if files.codes is not None and files.spot_codes is not None:
        away += _unlike(files.codes, files.spot_codes[own]).sum(axis=1)
    return np.where((files.own >= 0) & (away <= least + slack), 1.0 / many, 0.0)


def _compared(
    queries: Numbers,
    spots: Numbers,
    crowd: Places,
    codes: Places | None = None,
    spot_codes: Places | None = None,
) -> tuple[Numbers, Places, Numbers]:
    """Compare everything by products; also return how far rounding may carry a distance."""
    least, many = np.empty(len(queries)), np.empty(len(queries), np.int64)
    lengths, own = (spots**2).sum(axis=1), (queries**2).sum(axis=1)
    wide = 0 if codes is None else codes.shape[1]
    slack = 1e-12 * (own + lengths.max() + wide)
    step = max(1, _BLOCK // len(spots))
    for start in range(0, len(queries), step):
        rows = slice(start, start + step)
        away = lengths - 2.0 * (queries[rows] @ spots.T)
        if codes is not None and spot_codes is not None:
            _add_unlike(away, codes[rows], spot_codes)
        least[rows] = away.min(axis=1)
        many[rows] = (away <= (least[rows] + slack[rows])[:, None]) @ crowd
    return least + own, many, slack


def _unlike(first: Places, second: Places) -> Numbers:
    """Return the squared distance of codes: 1 where they differ, half of it to a missing one.

    >>> _unlike(np.array([3, 3, -1, -1]), np.array([3, 4, 3, -1])).tolist()
    [0.0, 1.0, 0.5, 0.0]
    """
    return np.where(first == second, 0.0, np.where((first < 0) | (second < 0), 0.5, 1.0))


def _add_unlike(away: Numbers, codes: Places, spot_codes: Places) -> None:
    """Add the distances of the columns of many categories to those of every pair."""
    for own, other in zip(codes.T, spot_codes.T, strict=True):
        if own.min(initial=0) < 0 or other.min(initial=0) < 0:
            away += _unlike(own[:, None], other)
        else:
            away += own[:, None] != other


def assigned(files: Points, rng: Randomness) -> Numbers:
    """Return for each person the probability that the best one-to-one matching finds their record.

    People are matched with their own released records, in all the cheapest matching. Records on
    one spot cannot be told apart: the people matched with the spot get any of them.
    """
    inside = np.flatnonzero(files.own >= 0)
    right = np.zeros(files.own.size)
    if not inside.size:
        return right
    own, where = np.unique(files.spot[files.own[inside]], return_inverse=True)
    room = np.bincount(where)
    # In random order: between equally cheap matchings the solver must not favour the true one.
    people, spots = rng.permutation(inside.size), rng.permutation(own.size)
    found = np.empty(inside.size, np.int64)
    found[people] = spots[_matched(files, inside[people], own[spots], room[spots])]
    right[inside] = np.where(found == where, 1.0 / room[where], 0.0)
    return right


def _matched(files: Points, people: Places, spots: Places, room: Places) -> Places:
    """Return for each person the place among the spots in a matching of least total distance."""
    from discreet.microdata.matching import cheapest

    before, after = files.before[people], files.spots[spots]
    if files.codes is None or files.spot_codes is None:
        return cheapest(before, after, room)
    from scipy.optimize import linear_sum_assignment

    away = (before**2).sum(axis=1)[:, None] + (after**2).sum(axis=1) - 2.0 * (before @ after.T)
    _add_unlike(away, files.codes[people], files.spot_codes[spots])
    seats = np.repeat(np.arange(spots.size), room)
    return seats[linear_sum_assignment(away[:, seats])[1]]
