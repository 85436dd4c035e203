"""Loss: the share of each attribute's domain that a generalised value covers."""

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
class GeneralizationLoss(Metric):
    """ARX's Loss: how much of its hierarchy each value covers, geometric mean over the attributes.

    For an attribute with D single values, v is the mean over the records of the share of single
    values that the generalised value covers, 1 for a suppressed record; it is scaled to
    (v − 1/D)/(1 − 1/D), and the score is the geometric mean of one plus these, minus one.

    Examples
    --------
    >>> GeneralizationLoss().settings()
    {'name': 'loss'}
    """

    name: ClassVar[str] = "loss"
    meaning: ClassVar[str] = (
        "share of detail lost in the columns that others may know (0: none, 1: all)"
    )
    reference: ClassVar[str] = (
        "Iyengar: Transforming data to satisfy privacy constraints, KDD 2002; as scaled by ARX"
    )

    def scorer(
        self, table: FrequencySet, attributes: Sequence[Attribute], rollup: Rollup, limit: int
    ) -> Scorer:
        """Return the loss on one file."""
        return _Loss(table, attributes, rollup)


class _Loss(Scorer):
    def __init__(
        self, table: FrequencySet, attributes: Sequence[Attribute], rollup: Rollup
    ) -> None:
        self._attributes, self._rollup = attributes, rollup
        n = max(1, table.records)
        self._factors: list[list[float]] = []
        self._least: list[list[float]] = []
        self._scale = []
        for attribute, weight in zip(attributes, weights(table, attributes), strict=True):
            # One more single value would be needed for a loss to be possible at all.
            scale = 1 / (1 - 1 / attribute.leaves) if attribute.leaves > 1 else 0.0
            occurs = weight > 0
            mean = (attribute.share * weight).sum(axis=1) / n
            self._factors.append((1 + (mean - 1 / attribute.leaves) * scale).tolist())
            gain = 1 - attribute.share[:, occurs].max(axis=1, initial=0)
            self._least.append((gain * scale / n).tolist())
            self._scale.append(scale / n)
        self.floor = outer([np.array(f) for f in self._factors], np.multiply)

    def bound(self, place: int, node: Sequence[int], least: int) -> float:
        found = 1.0
        for j, level in enumerate(node):
            found *= self._factors[j][level] + self._least[j][level] * least
        return found

    def score(self, node: Sequence[int], grouping: Grouping, kept: npt.NDArray[np.bool_]) -> float:
        gone = np.flatnonzero(~kept)
        sizes = grouping.sizes[gone]
        suppressed = int(sizes.sum())
        found = 1.0
        for j, level in enumerate(node):
            factor = self._factors[j][level]
            if suppressed:
                covered = self._attributes[j].share[level][self._rollup.places(grouping, j)[gone]]
                factor += (suppressed - float((sizes * covered).sum())) * self._scale[j]
            found *= factor
        return found

    def final(self, score: float) -> float:
        return float(score ** (1 / len(self._attributes)) - 1)
