"""Non-uniform entropy: how much is lost about the original value, in bits."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from discreet.microdata.classes import Numbers
from discreet.microdata.frequency_set import FrequencySet
from discreet.microdata.search.attribute import Attribute
from discreet.microdata.search.metrics._base import Metric, Scorer, outer, weights
from discreet.microdata.search.rollup import Grouping, Rollup


@dataclasses.dataclass(frozen=True)
class NonUniformEntropy(Metric):
    """Bits needed to tell the original values from the generalised ones, summed over the file.

    A value that a records have, generalised to one that b records have, loses log₂(b/a) bits in
    each record. Suppressed records lose, further, what their generalised values tell among
    themselves.

    Examples
    --------
    >>> NonUniformEntropy().settings()
    {'name': 'entropy'}
    """

    name: ClassVar[str] = "entropy"
    meaning: ClassVar[str] = "bits that a reader lacks to know the original values"
    is_published: ClassVar[bool] = False
    reference: ClassVar[str] = (
        "Gionis and Tassa: k-anonymization with minimal loss of information, TKDE 21(2), 2009"
    )

    def scorer(
        self, table: FrequencySet, attributes: Sequence[Attribute], rollup: Rollup, limit: int
    ) -> Scorer:
        """Return the entropy lost on one file."""
        return _NonUniformEntropy(table, attributes, rollup)


class _NonUniformEntropy(Scorer):
    def __init__(
        self, table: FrequencySet, attributes: Sequence[Attribute], rollup: Rollup
    ) -> None:
        self._attributes, self._rollup = attributes, rollup
        lost = []
        for attribute, weight in zip(attributes, weights(table, attributes), strict=True):
            lost.append(np.array([_bits(weight, level) for level in attribute.first]))
        self._lost = lost
        self.floor = outer(lost, np.add)

    def score(self, node: Sequence[int], grouping: Grouping, kept: npt.NDArray[np.bool_]) -> float:
        found = sum(float(self._lost[j][level]) for j, level in enumerate(node))
        gone = np.flatnonzero(~kept)
        sizes = grouping.sizes[gone]
        suppressed = float(sizes.sum())
        if not suppressed:
            return found
        for j in range(len(node)):
            places = self._rollup.places(grouping, j)[gone]
            counts = np.bincount(places, weights=sizes)
            counts = counts[counts > 0]
            found -= float((counts * np.log2(counts / suppressed)).sum())
        return found


def _bits(weight: Numbers, first: npt.NDArray[np.int64]) -> float:
    """Return Σ a·log₂(b/a) over the values: a records of a value, b of what it becomes."""
    occurs = weight > 0
    b = np.bincount(first, weights=weight, minlength=len(weight))[first][occurs]
    return float((weight[occurs] * np.log2(b / weight[occurs])).sum())
