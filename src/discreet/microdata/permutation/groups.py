"""From a partition to what is released: the permuted order and the help table."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from discreet.microdata.permutation.amounts import Amounts
from discreet.randomness import Randomness

__all__ = ["GROUP", "HELP_COLUMNS", "Groups"]

Integers = npt.NDArray[np.int64]

#: The column that both released tables share.
GROUP = "group_id"
HELP_COLUMNS = (
    "row_id",
    GROUP,
    "hits",
    "lb_sum",
    "ub_sum",
    "lb_min",
    "ub_min",
    "lb_max",
    "ub_max",
    "mean",
)


@dataclasses.dataclass(frozen=True, eq=False)
class Groups:
    """A partition of the records, ordered by group and inside each group by value."""

    amounts: Amounts
    #: The records in the order of the release: by group, as they came inside a group.
    order: Integers
    #: Where each group begins in that order; also the group's id. One more at the end.
    starts: Integers
    #: The records by group and value.
    ranked: Integers

    @classmethod
    def of(cls, amounts: Amounts, labels: Integers) -> Groups:
        """Order the records by their group."""
        from discreet.microdata.permutation import _passes

        groups = int(labels.max()) + 1
        order, starts = _passes.by_group(labels, groups)
        # Two stable countings, by value and then by group, sort every group by value.
        risen, _ = _passes.by_group(amounts.classes.astype(np.int64), len(amounts.distinct))
        regrouped, _ = _passes.by_group(labels[risen], groups)
        return cls(amounts, order, starts, risen[regrouped])

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def sizes(self) -> Integers:
        """Records in each group."""
        return np.diff(self.starts)

    @property
    def ids(self) -> Integers:
        """The group id of each record, in the order of the release."""
        return np.repeat(self.starts[:-1], self.sizes)

    def facts(self) -> tuple[Integers, npt.NDArray[np.float64], Integers]:
        """Return for each group its distinct values, its range and its commonest value's count."""
        from discreet.microdata.permutation import _passes

        classes = self.amounts.classes[self.ranked]
        found: tuple[Integers, npt.NDArray[np.float64], Integers] = _passes.group_facts(
            classes, self.starts, self.amounts.distinct
        )
        return found

    def shuffled(self, rng: Randomness) -> Integers:
        """Return the records by group, inside each in an order drawn by lot."""
        from discreet.microdata.permutation import _passes

        drawn = self.order.copy()
        _passes.shuffle(drawn, self.starts, rng.words(len(drawn)))
        return drawn

    def permuted(self, rng: Randomness) -> pa.Array:
        """Return the sensitive values by group, inside each in an order drawn by lot."""
        return self.amounts.column.take(pa.array(self.shuffled(rng)))

    def help_table(self) -> pa.Table:
        """Return what any number of hits in each group can contribute to an aggregate.

        `row_id` is `group_id + hits`, one dense key. With v₁ ≤ … ≤ vₙ the values of a group, row
        h holds v₁+…+v_h, the sum of the h largest, v₁, vₙ₋ₕ₊₁, v_h and vₙ; so `lb_max` lists the
        values upwards and `ub_min` downwards. `mean` is the mean of the group, for estimates.
        """
        from discreet.microdata.permutation import _passes

        amounts, sizes = self.amounts, self.sizes
        rows = np.arange(1, len(self.ranked) + 1)
        ids = self.ids
        table = {"row_id": pa.array(rows), GROUP: pa.array(ids), "hits": pa.array(rows - ids)}
        if not amounts.is_number:
            return pa.table(table)
        classes = amounts.classes[self.ranked]
        low, high = _passes.help_sums(amounts.low[classes], amounts.high[classes], self.starts)
        ends = np.repeat(self.starts[1:], sizes)
        downwards = ids + ends - rows  # the place of the h-th largest
        middle = (low[self.starts[1:] - 1] + high[self.starts[1:] - 1]) * (float(amounts.step) / 2)
        values = amounts.column.take(pa.array(self.ranked))
        return pa.table(
            {
                **table,
                "lb_sum": amounts.sums(low),
                "ub_sum": amounts.sums(high),
                "lb_min": values.take(pa.array(ids)),
                "ub_min": values.take(pa.array(downwards)),
                "lb_max": values,
                "ub_max": values.take(pa.array(ends - 1)),
                "mean": pa.array(np.repeat(middle / sizes, sizes)),
            }
        )
