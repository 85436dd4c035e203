"""Attacks on synthetic files: people of the file against people who are not in it.

Whatever an intruder guesses right of people who are not in the file follows from the population,
which the file is meant to tell about. Only what is guessed better of people in the file is a leak.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.microdata.columns import Numbers, Places, codes, numbers
from discreet.microdata.pair import Pair
from discreet.microdata.risks._base import RiskMeasure
from discreet.randomness import Randomness
from discreet.registry import parameter

__all__ = ["HoldoutRisk", "Interval", "Records", "Sides", "interval", "shared_names"]

#: Cells of a block of distances; a few of them fit into memory on any machine.
_BLOCK = 1 << 24
#: Secrets of more values are not counted among the nearest records.
_WIDE = 256
#: Files drawn from the people looked at, for an interval.
_BOOTSTRAPS = 200

Interval = tuple[float, float]


@dataclasses.dataclass(frozen=True)
class HoldoutRisk(RiskMeasure):
    """Base of the attacks that set people in the file against people who are not in it."""

    needs = "records like the original ones that the release was not made from: holdout=…"
    needs_origin = False

    targets: int = parameter(
        1_500, help="people looked for on each side at most", low=10, kw_only=True
    )

    def applies(self, pair: Pair) -> bool:
        """Needs people who are not in the file."""
        return (
            pair.holdout is not None
            and pair.size > 0
            and len(pair.holdout) > 1
            and len(pair.original) > 1
            and bool(shared_names(pair))
        )


@dataclasses.dataclass(frozen=True, eq=False)
class Records:
    """Records as arrays: categories as codes of one list, numbers scaled to the range of all."""

    codes: Places
    scaled: npt.NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, rows: Places) -> Records:
        """Return some of the records."""
        return Records(self.codes[rows], self.scaled[rows])

    def distances(self, others: Records) -> npt.NDArray[np.float32]:
        """Return Gower's distance of each record to each other one, summed over the columns."""
        found = np.zeros((len(self), len(others)), np.float32)
        for column in range(self.codes.shape[1]):
            found += self.codes[:, column, None] != others.codes[None, :, column]
        for column in range(self.scaled.shape[1]):
            one, two = self.scaled[:, column, None], others.scaled[None, :, column]
            away = np.abs(one - two)
            unknown = np.isnan(away)
            if unknown.any():  # missing is like missing, and unlike everything else
                away = np.where(unknown, np.isnan(one) != np.isnan(two), away)
            found += away
        return found

    def nearest(self, others: Records) -> Numbers:
        """Return the distance of each record to the nearest other one."""
        return np.asarray(self._each(others, lambda block: block.min(axis=1)), np.float64)

    def guesses(self, others: Records, secret: Places) -> Places:
        """Return the most frequent secret of the nearest other records; of many, the first one's."""
        width = int(secret.max()) + 1
        if width > _WIDE:
            first = self._each(others, lambda block: block.argmin(axis=1))
            return np.asarray(secret[np.asarray(first, np.int64)])
        shown = np.eye(width, dtype=np.float32)[secret]

        def guess(block: npt.NDArray[np.float32]) -> Places:
            near = block <= block.min(axis=1, keepdims=True) + 1e-6
            return np.asarray(np.argmax(near.astype(np.float32) @ shown, axis=1), np.int64)

        return np.asarray(self._each(others, guess), np.int64)

    def _each(self, others: Records, use: Callable[[Any], Any]) -> Any:
        # Any: arrays of whatever is looked for.
        size = max(1, _BLOCK // max(len(others), 1))
        parts = [
            use(self.take(np.arange(start, min(start + size, len(self)))).distances(others))
            for start in range(0, len(self), size)
        ]
        return np.concatenate(parts) if parts else np.empty(0)


@dataclasses.dataclass(frozen=True, eq=False)
class Sides:
    """The people in the file, those who are not, and the synthetic records."""

    pair: Pair
    inside: Records
    outside: Records
    synthetic: Records
    #: Names of the columns of codes and of numbers.
    names: tuple[tuple[str, ...], tuple[str, ...]]

    @classmethod
    def of(cls, pair: Pair) -> Sides:
        """Return the records of a pair with a holdout, coded together."""
        names = shared_names(pair)
        numeric = tuple(name for name in names if pair.is_numeric(name))
        coded = tuple(name for name in names if name not in numeric)
        sizes = [len(pair.original), len(pair.holdout or ()), pair.size]
        cuts = np.cumsum(sizes)[:-1]
        together = np.empty((sum(sizes), len(coded)), np.int64)
        for place, name in enumerate(coded):
            together[:, place] = _coded(_joined(pair, name))
        scaled = np.empty((sum(sizes), len(numeric)), np.float32)
        for place, name in enumerate(numeric):
            scaled[:, place] = _scaled(numbers(_joined(pair, name), name=name))
        sides = [
            Records(c, s)
            for c, s in zip(np.split(together, cuts), np.split(scaled, cuts), strict=True)
        ]
        return cls(pair, sides[0], sides[1], sides[2], (coded, numeric))

    @functools.cached_property
    def rows(self) -> tuple[Places, Places, Places]:
        """One number per different record, the same on all sides."""
        sides = (self.inside, self.outside, self.synthetic)
        whole = np.concatenate(
            [np.concatenate([s.codes, s.scaled.view(np.int32)], axis=1) for s in sides]
        )
        found = np.unique(whole, axis=0, return_inverse=True)[1].ravel()
        one, two, three = np.split(found, np.cumsum([len(s) for s in sides])[:-1])
        return one, two, three

    def chosen(self, targets: int, rng: Randomness) -> tuple[Places, Places]:
        """Return the people looked for on each side: all of them where they are few."""
        one, two = (
            np.arange(len(side))
            if len(side) <= targets
            else np.sort(rng.sample(len(side), targets))
            for side in (self.inside, self.outside)
        )
        return one, two

    def without(self, name: str) -> tuple[Sides, tuple[Places, Places, Places]]:
        """Return the records without one column, and that column as codes of each side."""
        coded, numeric = self.names
        sides = (self.inside, self.outside, self.synthetic)
        if name in coded:
            at = coded.index(name)
            secret = [side.codes[:, at] for side in sides]
            left = [Records(np.delete(s.codes, at, 1), s.scaled) for s in sides]
            names = (tuple(n for n in coded if n != name), numeric)
        else:
            at = numeric.index(name)
            secret = _tenths([side.scaled[:, at] for side in sides])
            left = [Records(s.codes, np.delete(s.scaled, at, 1)) for s in sides]
            names = (coded, tuple(n for n in numeric if n != name))
        return Sides(self.pair, left[0], left[1], left[2], names), (secret[0], secret[1], secret[2])


def interval(
    statistic: Callable[[Numbers, Numbers], float],
    inside: Numbers,
    outside: Numbers,
    *,
    rng: Randomness,
    outside_it: float = 0.05,
) -> Interval:
    """Return the bootstrap interval of a statistic of both sides; a share of the draws lies outside."""
    found = [
        statistic(
            inside[rng.integers(0, inside.size, inside.size)],
            outside[rng.integers(0, outside.size, outside.size)],
        )
        for _ in range(_BOOTSTRAPS)
    ]
    low, high = np.quantile(found, [outside_it / 2, 1 - outside_it / 2])
    return float(low), float(high)


def shared_names(pair: Pair) -> tuple[str, ...]:
    """Return the columns that all three files have."""
    kept = pair.holdout.columns if pair.holdout is not None else ()
    return tuple(n for n in pair.shared if n != pair.schema.weight and n in kept)


def _joined(pair: Pair, name: str) -> Any:
    # Any: an Arrow array of whatever type the files share.
    import pyarrow as pa

    parts = [pair.before(name), pair.unused(name), pair.after(name)]
    if pair.is_numeric(name):
        return pa.concat_arrays([part.cast(pa.float64(), safe=False) for part in parts])
    return pa.concat_arrays([part.cast(pa.string()) for part in parts])


def _coded(values: Any) -> Places:
    return codes(values)[0]


def _scaled(values: Numbers) -> Numbers:
    known = values[~np.isnan(values)]
    width = float(known.max() - known.min()) if known.size else 0.0
    return (values - (known.min() if known.size else 0.0)) / (width or 1.0)


def _tenths(sides: Sequence[Any]) -> list[Places]:
    """Return numbers as tenths of the people in the file; missing is a tenth of its own."""
    known = sides[0][~np.isnan(sides[0])]
    cuts = np.unique(np.quantile(known, np.linspace(0.1, 0.9, 9))) if known.size else np.empty(0)
    return [np.where(np.isnan(side), cuts.size + 1, np.searchsorted(cuts, side)) for side in sides]
