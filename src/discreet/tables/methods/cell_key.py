"""The cell-key method."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np

from discreet.audit.sliding import holds_whole_numbers, levels, needed_width
from discreet.data.table import Bools, Floats, Ints, Table
from discreet.errors import InputError
from discreet.progress import Progress, silent
from discreet.randomness import Randomness
from discreet.registry import parameter
from discreet.tables.methods._base import (
    Protected,
    TableMethod,
    changed,
    is_whole,
    least_of,
    remaining_width,
    within_share,
)
from discreet.tables.methods._keys import Words, cell_keys, read_key, rehash, unit_interval
from discreet.tables.methods._narrowing import left_by_totals, narrowing
from discreet.tables.methods._perturbation import deviations, transition

__all__ = ["CellKey"]

#: The share of keys with which a count that is called safe may be narrowed below its level.
RARE = 1e-3


@dataclasses.dataclass(frozen=True)
class CellKey(TableMethod):
    """Adds bounded noise that is the same wherever the same records are counted.

    Every record has a secret key; the key of a cell is the sum of its records' keys, so that the
    same group of records gets the same noise in every table and every run with the same key file:
    asking again, or under another name, gives the same number. Counts are changed by at most
    `deviation` with the given variance and without bias; zeros stay zero. Sums are changed by
    between `least` and `most` percent of the largest contribution, up or down alike. Totals get
    their own noise, so that they no longer add up exactly: the loss says by how much.

    The verdict does not depend on the key. A sum is called safe where its own noise and that of every
    total it is part of leave its levels whatever is drawn: a total that is nearly all one
    contributor's does not. Totals exclude values of a count where noise was drawn at the edge of
    what it may be; a count is called safe where, to somebody who knows all others, that happens
    with at most one key in 1,000. A larger `deviation` with the same variance
    makes it rarer and changes the numbers hardly: with a variance of 2 and two attributes 8 is
    enough for a minimum frequency of 3, 10 for 5. What is excluded is what cannot be; what is
    unlikely is another matter, and the next paragraph says how much less than the bound it is.

    What averages out: a count is also the sum of its parts in every crossing that is published,
    and parts have noise of their own. From m crossings into k parts each, the best estimate of the
    count has the variance of one noise divided by 1 + m / k: with 20 crossings by sex it is a
    ninth of it. Publish few crossings of small groups, or choose a larger variance.

    Examples
    --------
    >>> import pandas as pd
    >>> from discreet.data.table import Table
    >>> cells = pd.DataFrame({"sector": ["Total", "IT", "Fin"], "value": [9, 9, 0]})
    >>> table = Table.from_cells(
    ...     cells, by=["sector"], value="value", count="value", statistic="count"
    ... )
    >>> noisy = CellKey(deviation=2, variance=1.0).hide(table, rng=Randomness.seeded(1)).value
    >>> bool((abs(noisy - table.value) <= 2).all()), float(noisy[2])
    (True, 0.0)
    """

    name: ClassVar[str] = "cell-key"
    reference: ClassVar[str] = "Fraser and Wooton (2005), ABS; Thompson et al. (2013), UNECE"
    needs_rules: ClassVar[bool] = False
    is_random: ClassVar[bool] = True
    linked: ClassVar[str] = "apart"
    is_additive: ClassVar[bool] = False

    deviation: int = parameter(10, help="largest change of a count", low=1, high=100)
    variance: float = parameter(2.0, help="variance of the change of a count", above=0)
    smallest: int = parameter(0, help="counts from 1 to this are never published", low=0, high=100)
    least: float = parameter(
        5.0, help="smallest change of a sum, percent of the largest contribution", low=0, below=100
    )
    most: float = parameter(
        20.0,
        help="largest change of a sum, percent of the largest contribution",
        above=0,
        below=100,
    )
    key: str | None = parameter(
        None,
        help="file with the secret key; without one the noise is of this run only",
        file="secret",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.least > self.most:
            raise InputError(
                f"cell-key: least must not be above most, found {self.least:g} and {self.most:g}",
                code="parameter-range",
                parameter="least",
            )
        transition(self.deviation, float(self.variance), self.smallest)

    def hide(self, table: Table, *, rng: Randomness, progress: Progress = silent) -> Protected:
        """Return every cell with its noise."""
        secret = read_key(self.key, rng)
        progress("summing keys", 0, 1)
        keys = cell_keys(table, secret)
        progress("summing keys", 1, 1)
        if table.statistic == "count":
            return self._counts(table, keys)
        return self._magnitudes(table, rehash(keys, secret, table.measure or "value"))

    def _counts(self, table: Table, keys: Words) -> Protected:
        records, scale = _scaled(table)
        step = deviations(
            records,
            unit_interval(keys),
            deviation=self.deviation,
            variance=self.variance,
            smallest=self.smallest,
        )
        value = table.value + step * scale
        reach = self.deviation * scale
        return Protected(
            table,
            value,
            changed(table),
            # Zeros stay zero: who is counted at all was counted before.
            np.maximum(value - reach, self._floor(table, value, scale)),
            np.where(table.value == 0, 0.0, value + reach),
            facts={"deviation": self.deviation, "variance": self.variance},
        )

    def kept(self, table: Table) -> Bools | None:
        """Return which cells keep their levels with every key, counts with nearly every one."""
        if table.statistic != "count":
            return self._kept_magnitudes(table)
        records, scale = _scaled(table)
        rows = np.array(transition(self.deviation, float(self.variance), self.smallest))
        rows = rows[np.minimum(records, len(rows) - 1)]
        steps = np.arange(-self.deviation, self.deviation + 1)

        def excludes(level: float) -> Bools:
            # A value further away than this needs a step beyond the largest.
            return steps[None, :] < level / np.maximum(scale, 1e-300)[:, None] - self.deviation

        chance = narrowing(
            table,
            lambda level: np.asarray((rows * excludes(level)).sum(axis=1)),
            lambda level: np.asarray((rows[:, ::-1] * excludes(level)).sum(axis=1)),
        )
        # Of a zero everybody knows that it is one.
        return np.asarray((chance <= RARE) & (table.value != 0))

    def _kept_magnitudes(self, table: Table) -> Bools:
        if table.most is not None:
            # No more than all people of a cell have the greatest value: noise of a share is undone.
            return np.zeros(len(table), dtype=bool)
        most, size, top = self.most / 100, np.abs(table.value), self._largest(table)
        # What is printed lies at most so far off; between its bounds a value can be so large.
        width = needed_width(table, (size + most * top) / (1 - most))
        own = np.maximum(size - most * top, 0.0) * 2 * most / (1 - most**2)
        slack = most * np.maximum(size - top, 0.0) / (1 + most)
        lower = within_share(table, table.value, most)[0]
        own, slack = (np.where(np.isneginf(lower), np.inf, one) for one in (own, slack))
        kept = left_by_totals(table, slack) >= width
        if holds_whole_numbers(table):
            # An interval holds up to one whole number fewer than its width; noise that is a share
            # of the value never reaches the least that everybody knows.
            own = own - 1
            kept &= levels(table)[0] < table.value - least_of(table) - 1e-9
        return np.asarray(kept & (own >= width * (1 - 1e-9)))

    def _floor(self, table: Table, value: Floats, scale: Floats) -> Floats:
        """Return what a count is known not to fall below: one record wherever there is somebody."""
        if (table.value == 0).any():  # a printed zero may be one
            return np.where(value > 0, np.minimum(scale, value), 0.0)
        return np.minimum(scale, table.value)

    def _magnitudes(self, table: Table, keys: Words) -> Protected:
        top = self._largest(table)
        up = np.where(keys & np.uint64(1), 1.0, -1.0)
        share = (self.least + (self.most - self.least) * unit_interval(keys)) / 100
        value = table.value + up * share * top
        # The largest contribution is at most the cell, and that is all anybody knows of it.
        lower, upper = within_share(table, value, self.most / 100)
        return Protected(
            table,
            value,
            changed(table),
            lower,
            upper,
            spread=remaining_width(table, self.least / 100, self.most / 100),
            facts={"most": self.most, "least": self.least},
        )

    def _largest(self, table: Table) -> Floats:
        if table.contributions is None:
            return np.abs(table.value)
        return np.asarray(np.abs(table.contributions[:, 0]))


def _scaled(table: Table) -> tuple[Ints, Floats]:
    """Return how many records each count is of, and how much one of them counts on average."""
    records, scale = np.round(table.value).astype(np.int64), np.ones(len(table))
    source = getattr(table, "source", None)
    weighted = source is not None and source.weight is not None
    if table.count is not None and (weighted or not is_whole(table, strictly=True)):
        records = table.count
        scale = table.value / np.maximum(records, 1)
    return records, scale
