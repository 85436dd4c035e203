"""Cells that hide single values, and slots that hide sums of them.

Every value is told as the cell it lies in, of a grid that depends on the settings alone, and the
sum over each node of a tree of records as the slot it lies in. Slots divide the range that the
parts below leave possible, and none is shorter than the widest part. It follows that every value
of a record's cell, together with suitable values of the others, agrees with all cells and slots:

Let a node's parts range over [aₖ, bₖ], with sums A and B of the ends, and let D be the widest of
them. Fix one part at v. The others add up to anything in [A − aₖ, B − bₖ], so the node's sum can be
anything in [v + A − aₖ, v + B − bₖ]. A slot [a, b] misses that range only if b < v + A − aₖ or
a > v + B − bₖ. But b ≥ A + D ≥ v + A − aₖ, because the first slot is D long at least, and likewise
a ≤ B − D ≤ v + B − bₖ. By induction from the root down the value v is possible whatever the slots.

With values that are multiples of a step, the same holds for multiples of it: cells and slots end
on them, and the sums of the parts take each of them.
"""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np
import numpy.typing as npt

from discreet.queries.guards._slots import FANOUT, Stacked, narrowed

__all__ = ["Grid", "Tree", "leaves_of", "step_of"]

Floats = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]
#: Values beyond this are cut to it.
LARGEST = 1e30
#: Bounds of respondents count in steps of this share.
SHARE = 0.05


def round_up(value: float) -> float:
    """Return the next of 1, 2, 5, 10, 20, 50 … or of their fractions.

    >>> round_up(1_900.0), round_up(0.03)
    (2000.0, 0.05)
    """
    if value <= 0 or not math.isfinite(value):
        return 0.0
    power = 10.0 ** math.floor(math.log10(value))
    for digit in (1.0, 2.0, 5.0):
        if value <= digit * power * (1 + 1e-12):
            return digit * power
    return 10.0 * power


def step_of(values: Floats) -> float:
    """Return the largest of 1, 2, 5, 10 … that all values are multiples of; 0 if not even 0.01.

    >>> (
    ...     step_of(np.array([3000.0, 50_000.0])),
    ...     step_of(np.array([0.5, 2.25])),
    ...     step_of(np.array([1 / 3])),
    ... )
    (1000.0, 0.05, 0.0)
    """
    scaled = np.abs(values) * 100
    if not values.size or scaled.max(initial=0.0) > 2.0**53:
        return 0.0
    whole = np.round(scaled)
    if (np.abs(scaled - whole) > 1e-6 * np.maximum(scaled, 1.0)).any():
        return 0.0
    common = int(np.gcd.reduce(whole.astype(np.int64)))
    if common == 0:
        return 1.0
    digits = [d * 10**p for p in range(len(str(common))) for d in (1, 2, 5)]
    return float(max(d for d in digits if common % d == 0)) / 100


@dataclasses.dataclass(frozen=True)
class Grid:
    """The cells of one column, for any share of the value that a cell must be wide.

    >>> grid = Grid(minimum=10.0, step=1.0, largest=1000.0)
    >>> low, high = grid.cells(np.array([5.0, -5.0, 100.0]), np.array([0.3, 0.3, 0.3]))
    >>> low.tolist(), high.tolist()
    ([0.0, -11.0, 81.0], [11.0, -1.0, 117.0])
    """

    minimum: float
    #: Values are multiples of it; 0 if of nothing.
    step: float
    #: What everybody may know: no value is larger.
    largest: float

    def edges(self, share: float) -> Floats:
        """Return where cells begin, from zero up, if each is `share` of its values wide."""
        step = self.step
        # A column of zeros, or without a least width, still needs cells that end.
        least = max(self.minimum, step, self.largest * 1e-9, 1e-300)
        edges = [0.0]
        while edges[-1] <= self.largest:
            # Below zero the first cell begins a step away from it.
            end = max(edges[-1] + least, max(edges[-1], step) / (1 - share))
            # The last value inside is a step below the edge; the cells next to zero lose zero.
            edges.append((math.ceil(end / step) + 2) * step if step else end)
        return np.array(edges)

    def cells(self, values: Floats, shares: Floats) -> tuple[Floats, Floats]:
        """Return the smallest and largest value of the cell that each value lies in."""
        low, high = np.empty(values.size), np.empty(values.size)
        rounded = np.ceil(shares / SHARE - 1e-9) * SHARE
        for share in np.unique(rounded):
            here = rounded == share
            if share >= 1 - 1e-9:
                # Cells on one side of zero cannot be that wide: there is only one.
                low[here], high[here] = -share * self.largest, share * self.largest
                continue
            low[here], high[here] = self._sided(values[here], float(share))
        return low, high

    def _sided(self, values: Floats, share: float) -> tuple[Floats, Floats]:
        edges = self.edges(share)
        place = np.clip(np.searchsorted(edges, np.abs(values), side="right") - 1, 0, edges.size - 2)
        inner, outer = edges[place], edges[place + 1] - self.step
        negative = values < 0
        # Zero lies in the cell above it.
        inner = np.where(negative & (place == 0), self.step, inner)
        return np.where(negative, -outer, inner), np.where(negative, -inner, outer)


def leaves_of(profiles: Ids, size: int) -> Ids:
    """Return the leaf of each record: `size` or more that follow each other, of one profile if it has so many.

    >>> leaves_of(np.array([0, 0, 0, 0, 1, 2, 2, 3]), 2).tolist()
    [0, 0, 1, 1, 2, 2, 2, 2]
    """
    if not profiles.size:
        return np.zeros(0, np.int64)
    starts = np.flatnonzero(np.r_[True, profiles[1:] != profiles[:-1]])
    counts = np.diff(np.r_[starts, profiles.size]).tolist()
    sizes: list[int] = []
    pending = 0
    for count in counts:
        if not pending and count >= size:
            parts, rest = divmod(int(count), count // size)
            sizes += [parts + 1] * rest + [parts] * (count // size - rest)
            continue
        pending += int(count)
        if pending >= size:
            sizes.append(pending)
            pending = 0
    if pending and sizes:
        sizes[-1] += pending
    elif pending:
        sizes.append(pending)
    return np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)


@dataclasses.dataclass(frozen=True, eq=False)
class Level:
    """The nodes of one level: what their parts add up to, and the slot of their sum."""

    #: Sums of the ends of the parts.
    low: Floats
    high: Floats
    #: Ends of the slots.
    least: Floats
    most: Floats


@dataclasses.dataclass(frozen=True, eq=False)
class Tree:
    """Slots of the sums over leaves, over eight leaves each, and so on up to all records."""

    levels: tuple[Level, ...]

    @classmethod
    def of(cls, leaf: Ids, values: Floats, low: Floats, high: Floats, step: float) -> Tree:
        """Return the tree over records with values in cells [low, high], by the leaf of each."""
        levels = []
        node, sums, lows, highs = leaf, values, low, high
        while True:
            count = int(node.max(initial=-1)) + 1
            level, sums = _level(node, count, sums, lows, highs, step)
            levels.append(level)
            if count <= 1:
                return cls(tuple(levels))
            lows, highs = level.least, level.most
            node = np.arange(count) // FANOUT

    @classmethod
    def flat(cls, low: Floats, high: Floats) -> Tree:
        """Return the tree of one leaf that says nothing beyond the records' own ends."""
        ends = np.array([low.sum()]), np.array([high.sum()])
        return cls((Level(*ends, *ends),))

    def scaled(self, factor: float, shift: float, counts: Ids, slack: tuple[float, float]) -> Tree:
        """Return the tree of factor · value + shift + something within the slack."""
        levels = []
        number = counts.astype(np.float64)
        for level in self.levels:
            down, up = number * (shift + slack[0]), number * (shift + slack[1])
            ends = [factor * end for end in (level.low, level.high, level.least, level.most)]
            if factor < 0:
                ends = [ends[1], ends[0], ends[3], ends[2]]
            levels.append(Level(ends[0] + down, ends[1] + up, ends[2] + down, ends[3] + up))
            number = _added(np.arange(number.size) // FANOUT, number, 0)
        return Tree(tuple(levels))

    def ranges(
        self, group: Ids, groups: int, leaf: Ids, low: Floats, high: Floats
    ) -> tuple[Floats, Floats]:
        """Return the range of each group's sum.

        A group holds some records of some leaves, whose cells add up to [low, high] there; a leaf
        may come several times for a group, as parts of what the group holds of it.
        """
        order = np.argsort(leaf, kind="stable")
        return self.narrowed(order, group[order], groups, leaf, low, high)

    def narrowed(
        self, places: Ids, group: Ids, groups: int, leaf: Ids, low: Floats, high: Floats
    ) -> tuple[Floats, Floats]:
        """Return the range of each group's sum, whose parts stand at places in the order of leaves."""
        return narrowed(places, group, groups, leaf, low, high, self._stacked)

    @functools.cached_property
    def _stacked(self) -> Stacked:
        """The levels one after the other, and where each begins."""
        starts = np.cumsum([0, *(level.low.size for level in self.levels)])
        ends = [
            np.concatenate([np.asarray(getattr(level, name)) for level in self.levels])
            for name in ("low", "high", "least", "most")
        ]
        return starts.astype(np.int64), ends[0], ends[1], ends[2], ends[3]


def _added(place: Ids, values: Floats, size: int) -> Floats:
    return np.asarray(np.bincount(place, weights=values, minlength=size), np.float64)


def _level(
    node: Ids, count: int, values: Floats, low: Floats, high: Floats, step: float
) -> tuple[Level, Floats]:
    """Return a level of nodes and the sum of each; parts have values within [low, high]."""
    lows, highs = _added(node, low, count), _added(node, high, count)
    sums = _added(node, values, count)
    widest = np.zeros(count)
    np.maximum.at(widest, node, high - low)
    first = widest + 2 * step
    inner = highs - lows - 2 * first
    number = np.floor(inner / np.where(widest > 0, widest + 2 * step, np.inf))
    divided = number >= 1
    length = np.where(divided, inner / np.maximum(number, 1), 0.0)
    start = lows + first
    place = np.where(divided, np.floor((sums - start) / np.where(length > 0, length, 1.0)), 0.0)
    place = np.clip(place, -1, number)

    def edge(at: Floats) -> Floats:
        found = start + at * length
        return np.ceil(found / step) * step if step else found

    # A sum below the edge that it was counted above, by rounding to steps, is one slot lower.
    place = np.where(divided & (place >= 0) & (sums < edge(place)), place - 1, place)
    place = np.where(divided & (place < number) & (sums >= edge(place + 1)), place + 1, place)
    least = np.where(divided & (place >= 0), edge(place), lows)
    most = np.where(divided & (place < number), edge(place + 1) - step, highs)
    return Level(lows, highs, least, most), sums
