"""Targeted record swapping: households at risk change places with like households elsewhere."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from discreet.data.schema import Schema
from discreet.errors import InputError
from discreet.microdata.columns import codes
from discreet.microdata.masking._base import ColumnMasking
from discreet.randomness import Randomness
from discreet.registry import parameter

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.dataset import Dataset

__all__ = ["RecordSwapping"]

Places = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True)
class RecordSwapping(ColumnMasking):
    """Exchange the regions of whole households, those that stand out first.

    `columns` are the geographic columns, from coarse to fine. A household is at risk on a level if
    fewer than `k` records of its region there share the `keys` of one of its members; it changes
    places with a household of another region on that level, of the same size and with the same
    values of the `match` columns, if possible within the same coarser region. Random further swaps
    bring the share of swapped households up to `rate`. Every cross of regions with household size
    and `match` keeps its counts. A household without a partner stays where it is. A missing value
    is a value like others; a household lives where its first record says.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from discreet.randomness import Randomness
    >>> rows = pa.table(
    ...     {
    ...         "region": ["N", "N", "N", "S"],
    ...         "home": [1, 2, 3, 4],
    ...         "job": ["pilot", "cook", "cook", "cook"],
    ...     }
    ... )
    >>> method = RecordSwapping("region", "home", keys="job", k=2, rate=0.0)
    >>> method.apply(rows, schema=None, rng=Randomness.seeded(1))["region"].to_pylist()
    ['S', 'N', 'N', 'N']
    """

    name: ClassVar[str] = "record-swapping"
    reference: ClassVar[str] = "Shlomo, Tudor and Groom, Data swapping for census tables, PSD 2010"
    random: ClassVar[bool] = True
    keeps_missing: ClassVar[bool] = False

    household: str = parameter(help="column that says who lives together")
    keys: tuple[str, ...] = parameter((), help="columns by which a record stands out")
    match: tuple[str, ...] = parameter((), help="columns on which partners agree")
    k: int = parameter(3, help="fewest records that share the keys in a region", low=1)
    rate: float = parameter(0.05, help="share of households swapped at least", low=0, high=1)

    def __post_init__(self) -> None:
        for field in ("keys", "match"):
            given = getattr(self, field)
            object.__setattr__(self, field, (given,) if isinstance(given, str) else tuple(given))
        super().__post_init__()
        if both := set(self.columns) & {*self.keys, *self.match, self.household}:
            raise InputError(
                f"column {min(both)!r} is a region and something else",
                code="duplicate-column",
                hint="name the geographic columns only once",
                parameter="columns",
            )

    @property
    def reads(self) -> tuple[str, ...]:
        """Regions, household, keys and matching columns."""
        return tuple(dict.fromkeys((*self.columns, self.household, *self.keys, *self.match)))

    def stronger(self) -> RecordSwapping | None:
        """Return the method with rate one step further."""
        if self.rate >= 1:
            return None
        return dataclasses.replace(self, rate=min(max(self.rate, 0.02) * 1.5, 1.0))

    def apply(
        self, rows: pa.Table, *, schema: Schema | None, rng: Randomness
    ) -> Mapping[str, pa.Array]:
        """Return the regions after the swaps."""
        import pyarrow as pa

        home = _combined(rows, [self.household])
        homes = int(home.max(initial=-1)) + 1
        # The record whose regions a household shows, and the households' profiles.
        first = np.full(homes, rows.num_rows, np.int64)
        np.minimum.at(first, home, np.arange(rows.num_rows))
        profile = self._profiles(rows, home, homes)
        levels = [
            _combined(rows, self.columns[: depth + 1])[first] for depth in range(len(self.columns))
        ]
        at_risk = [self._at_risk(rows, home, homes, depth) for depth in range(len(self.columns))]
        partner = self._partners(levels, profile, at_risk, rng)
        source = pa.array(first[partner[home]])
        return {name: rows.column(name).combine_chunks().take(source) for name in self.columns}

    def mask_in_engine(self, held: Dataset, *, rng: Randomness) -> Dataset | None:
        """Return the records after the swaps: households come out as numbers, pairs go in."""
        import pyarrow as pa

        from discreet.microdata.masking._households import households, moved

        found = households(
            held.relation, self.columns, self.household,
            keys=self.keys, match=self.match, k=self.k, rng=rng,
        )  # fmt: skip
        at_risk = [np.flatnonzero(few) for few in found.at_risk]
        partner = self._partners(list(found.levels), found.profile, at_risk, rng)
        one = np.flatnonzero(partner != np.arange(partner.size))
        pairs = pa.table({"one": found.first[one], "two": found.first[partner[one]]})
        return held.replace(relation=moved(held.relation, self.columns, self.household, pairs))

    def _partners(
        self, levels: list[Places], profile: Places, at_risk: list[Places], rng: Randomness
    ) -> Places:
        """Return with whom each household changes places, itself where it stays."""
        swaps = _Swaps(levels, profile, rng)
        for depth, wanted in enumerate(at_risk):
            swaps.make(wanted, depth)
        short = round(self.rate * profile.size) - int(swaps.moved.sum())
        if short > 0:
            swaps.make(np.flatnonzero(~swaps.moved), len(levels) - 1, most=short)
        return swaps.partner

    def _profiles(self, rows: pa.Table, home: Places, homes: int) -> Places:
        """Return a number per household, equal for those of the same size and matching values."""
        size = np.bincount(home, minlength=homes)
        if not self.match:
            return size
        mark = _combined(rows, self.match)
        # Members' values as a sorted list: the same family in another order is the same.
        order = np.lexsort((mark, home))
        starts = np.concatenate(([0], np.cumsum(size)[:-1]))
        listed = mark[order]
        seen: dict[tuple[int, ...], int] = {}
        return np.array(
            [
                seen.setdefault(tuple(listed[a : a + s].tolist()), len(seen))
                for a, s in zip(starts, size, strict=True)
            ],
            np.int64,
        )

    def _at_risk(self, rows: pa.Table, home: Places, homes: int, depth: int) -> Places:
        if not self.keys:
            return np.zeros(0, np.int64)
        cell = _combined(rows, [*self.columns[: depth + 1], *self.keys])
        few = np.bincount(cell)[cell] < self.k
        return np.flatnonzero(np.bincount(home, few, minlength=homes) > 0)


class _Swaps:
    """Who has changed places with whom so far; a household moves once at most."""

    def __init__(self, levels: list[Places], profile: Places, rng: Randomness) -> None:
        self.levels, self.rng = levels, rng
        self.partner = np.arange(profile.size)
        self.moved = np.zeros(profile.size, bool)
        self.profile = profile

    def make(self, wanted: Places, depth: int, *, most: int | None = None) -> None:
        """Swap the wanted households, in random order, each with a random free partner."""
        wanted = wanted[~self.moved[wanted]]
        wanted = wanted[self.rng.permutation(wanted.size)]
        queue = self.rng.permutation(self.profile.size)
        free: dict[int, list[int]] = {}
        for home in queue[~self.moved[queue]].tolist():
            free.setdefault(int(self.profile[home]), []).append(home)
        swapped = 0
        for home in wanted.tolist():
            if most is not None and swapped >= most:
                return
            if self.moved[home]:
                continue
            other = self._choose(home, free[int(self.profile[home])], depth)
            if other is not None:
                self.partner[home], self.partner[other] = other, home
                self.moved[home] = self.moved[other] = True
                swapped += 2

    def _choose(self, home: int, waiting: list[int], depth: int) -> int | None:
        """Return a free household of another region, within the coarser one if there is one."""
        while waiting and self.moved[waiting[-1]]:
            waiting.pop()
        here = self.levels[depth]
        elsewhere = None
        for place in range(len(waiting) - 1, max(len(waiting) - 200, 0) - 1, -1):
            other = waiting[place]
            if self.moved[other] or here[other] == here[home]:
                continue
            if depth == 0 or self.levels[depth - 1][other] == self.levels[depth - 1][home]:
                return other
            elsewhere = other if elsewhere is None else elsewhere
        if elsewhere is None:  # rare: look at all of them
            return next((o for o in waiting if not self.moved[o] and here[o] != here[home]), None)
        return elsewhere


def _combined(rows: pa.Table, names: Iterable[str]) -> Places:
    """Return one number per combination of the columns' values."""
    joint = np.zeros(rows.num_rows, np.int64)
    for name in names:
        places, values = codes(rows.column(name))
        joint = joint * (len(values) + 1) + places + 1
        joint = np.unique(joint, return_inverse=True)[1].ravel()
    return joint
