"""Sample queries, and the width of the bounds that a partition gives them."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.randomness import Randomness

__all__ = ["Workload"]

Floats = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True, eq=False)
class Workload:
    """Queries as the sets of records they select, one row each.

    Examples
    --------
    >>> work = Workload.ranges([20, 21, 22], width=2)
    >>> work.selected.astype(int).tolist()
    [[1, 1, 0], [0, 1, 1]]
    """

    selected: npt.NDArray[np.bool_]
    #: For ranges: where each begins, and the place after its end.
    edges: Floats | None = None

    @classmethod
    def ranges(
        cls,
        places: Any,
        count: int | None = None,
        *,
        width: float | None = None,
        rng: Randomness | None = None,
    ) -> Workload:
        """Return range queries on one attribute: random ones, or all starts of one width.

        Any: whatever numpy takes for an array.
        """
        places = np.asarray(places, dtype=np.float64)
        values = np.unique(places)
        if width is not None:
            starts = np.arange(values[0], values[-1] - width + 2)
            edges = np.column_stack([starts, starts + width])
        else:
            assert count is not None
            rng = rng or Randomness.secure()
            ends = values[np.sort(rng.integers(0, len(values), 2 * count).reshape(-1, 2), axis=1)]
            edges = np.column_stack([ends[:, 0], np.nextafter(ends[:, 1], np.inf)])
        rows = (places >= edges[:, :1]) & (places < edges[:, 1:])
        kept = rows.any(axis=1)
        return cls(rows[kept], edges[kept])

    @classmethod
    def arbitrary(cls, records: int, size: int, count: int, *, rng: Randomness) -> Workload:
        """Return queries that each select a random set of records of one size."""
        rows = np.zeros((count, records), dtype=bool)
        for row in rows:
            row[rng.sample(records, size)] = True
        return cls(rows)

    def errors(self, labels: npt.NDArray[np.int64], amounts: Floats) -> Floats:
        """Return for each query the width of the bounds of AVG relative to the true answer.

        Infinite where the true answer is 0 and the bounds are not.
        """
        # Relative to a sum near 0 an error says nothing; callers shift amounts where they need to.
        order = np.lexsort((amounts, labels))
        sizes = np.bincount(labels)
        ends = np.cumsum(sizes)
        # Row 0 of each group is the empty selection, so that groups without hits need no mask.
        first = np.concatenate([[0], np.cumsum(sizes + 1)[:-1]])
        low, high = _partial_sums(amounts[order], sizes)
        rows = self.selected[:, order]
        hits = np.add.reduceat(rows, ends - sizes, axis=1, dtype=np.int64)
        width = high[first + hits].sum(axis=1) - low[first + hits].sum(axis=1)
        truth = np.abs(rows @ amounts[order])
        errors = np.where(width == 0, 0.0, np.inf)
        np.divide(width, truth, out=errors, where=truth > 0)
        return errors

    def generalized_errors(
        self, labels: npt.NDArray[np.int64], amounts: Floats, spans: Floats | None
    ) -> Floats:
        """Return the same for a table whose groups show only common quasi-identifiers.

        A record whose group lies inside a range is surely selected; of a group that a query merely
        touches any record may be. `spans` holds the interval (begin, end) that each group shows of
        the attribute; without it nothing is sure.
        """
        groups = int(labels.max()) + 1
        errors = np.empty(len(self.selected))
        for place, row in enumerate(self.selected):
            touched = np.bincount(labels[row], minlength=groups) > 0
            sure = np.zeros(groups, dtype=bool)
            if spans is not None and self.edges is not None:
                low, high = self.edges[place]
                sure = (spans[:, 0] >= low) & (spans[:, 1] < high)
            certain = amounts[sure[labels] & row]
            possible = np.sort(amounts[(touched & ~sure)[labels]])
            width = _highest_mean(certain, possible) + _highest_mean(-certain, -possible[::-1])
            errors[place] = width / abs(amounts[row].mean())
        return errors


def _highest_mean(certain: Floats, possible: Floats) -> float:
    # Records are added from the largest down for as long as the mean rises; ascending order is given.
    falling = possible[::-1]
    if len(certain) == 0:
        return float(falling[0])
    sums = certain.sum() + np.concatenate([[0.0], np.cumsum(falling)])
    return float((sums / (len(certain) + np.arange(len(sums)))).max())


def _partial_sums(ordered: Floats, sizes: npt.NDArray[np.int64]) -> tuple[Floats, Floats]:
    # Sums of the h smallest and of the h largest values of each group, h = 0 … size.
    ends = np.cumsum(sizes)
    run = np.concatenate([[0.0], np.cumsum(ordered)])
    begins = np.repeat(ends - sizes, sizes + 1)
    hits = np.arange(len(begins)) - np.repeat(np.cumsum(sizes + 1) - sizes - 1, sizes + 1)
    stops = np.repeat(ends, sizes + 1)
    return run[begins + hits] - run[begins], run[stops] - run[stops - hits]
