"""Discernibility: how many records each record is mixed up with."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from discreet.microdata.frequency_set import FrequencySet
from discreet.microdata.search.attribute import Attribute
from discreet.microdata.search.metrics._base import Metric, Scorer, outer, weights
from discreet.microdata.search.rollup import Grouping, Rollup


@dataclasses.dataclass(frozen=True)
class Discernibility(Metric):
    """Each record costs the size of its class, a suppressed one the size of the file.

    Examples
    --------
    >>> Discernibility().settings()
    {'name': 'discernibility'}
    """

    name: ClassVar[str] = "discernibility"
    meaning: ClassVar[str] = "sum over records of how many they are confused with"
    reference: ClassVar[str] = (
        "Bayardo and Agrawal: Data privacy through optimal k-anonymization, ICDE 2005"
    )

    def scorer(
        self, table: FrequencySet, attributes: Sequence[Attribute], rollup: Rollup, limit: int
    ) -> Scorer:
        """Return the discernibility on one file."""
        return _Discernibility(table, attributes, limit)


class _Discernibility(Scorer):
    def __init__(self, table: FrequencySet, attributes: Sequence[Attribute], limit: int) -> None:
        self._n, self._limit = float(table.records), float(limit)
        codes = [attribute.codes.astype(np.float64) for attribute in attributes]
        cells = outer(codes, np.multiply)
        ones = [np.ones(attribute.height) for attribute in attributes]
        self.floor = np.zeros(len(cells))
        for j, (attribute, weight) in enumerate(
            zip(attributes, weights(table, attributes), strict=True)
        ):
            # The records of one value spread over at most so many cells of the other attributes,
            # and the squares are least when they spread evenly.
            squares = np.array(
                [(np.bincount(level, weights=weight) ** 2).sum() for level in attribute.first]
            )
            own = outer([*ones[:j], squares * codes[j], *ones[j + 1 :]], np.multiply)
            np.maximum(self.floor, own / cells, out=self.floor)
        # Sums of whole numbers: the bound may not exceed them by rounding.
        self.floor *= 1 - 1e-12

    def bound(self, place: int, node: Sequence[int], least: int) -> float:
        # A suppressed class of s records costs s·n instead of s²; over all of them this is least,
        # between the least and the allowed number of records, at one of the two ends.
        extra = min(least * (self._n - least), self._limit * (self._n - self._limit))
        return float(self.floor[place]) + (extra if least else 0.0)

    def score(self, node: Sequence[int], grouping: Grouping, kept: npt.NDArray[np.bool_]) -> float:
        sizes = grouping.sizes[kept].astype(np.float64)
        return float((sizes * sizes).sum() + (self._n - sizes.sum()) * self._n)
