"""Average size of the equivalence classes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from discreet.microdata.frequency_set import FrequencySet
from discreet.microdata.search.attribute import Attribute
from discreet.microdata.search.metrics._base import Metric, Scorer, outer
from discreet.microdata.search.rollup import Grouping, Rollup


@dataclasses.dataclass(frozen=True)
class AverageClassSize(Metric):
    """Records per class; the suppressed records together count as one class.

    Not divided by k, as in ARX, so that it serves other models too.

    Examples
    --------
    >>> AverageClassSize().settings()
    {'name': 'aecs'}
    """

    name: ClassVar[str] = "aecs"
    meaning: ClassVar[str] = "average number of records that share their values"
    reference: ClassVar[str] = (
        "LeFevre, DeWitt and Ramakrishnan: Mondrian multidimensional k-anonymity, ICDE 2006"
    )

    def scorer(
        self, table: FrequencySet, attributes: Sequence[Attribute], rollup: Rollup, limit: int
    ) -> Scorer:
        """Return the average class size on one file."""
        return _AverageClassSize(table, attributes)


class _AverageClassSize(Scorer):
    def __init__(self, table: FrequencySet, attributes: Sequence[Attribute]) -> None:
        self._n = float(table.records)
        cells = outer([a.codes.astype(np.float64) for a in attributes], np.multiply)
        # No more classes than cells, nor than different rows.
        self.floor = self._n / np.minimum(cells, max(1, len(table.count)))

    def score(self, node: Sequence[int], grouping: Grouping, kept: npt.NDArray[np.bool_]) -> float:
        suppressed = grouping.sizes[~kept].sum() > 0
        return self._n / max(1, int(kept.sum()) + int(suppressed))
