"""What every metric is: a score for a generalisation, and bounds that spare evaluations."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from discreet.microdata.classes import Numbers
from discreet.microdata.frequency_set import FrequencySet
from discreet.microdata.search.attribute import Attribute
from discreet.microdata.search.rollup import Grouping, Rollup
from discreet.registry import Member

__all__ = ["Metric", "Scorer", "outer", "weights"]


class Scorer(abc.ABC):
    """A metric on one file: less is better."""

    #: For every node, flat in the order of the lattice, no more than its score.
    floor: Numbers

    def bound(self, place: int, node: Sequence[int], least: int) -> float:
        """Return no more than a node's score, given how many records it suppresses at least."""
        return float(self.floor[place])

    @abc.abstractmethod
    def score(self, node: Sequence[int], grouping: Grouping, kept: npt.NDArray[np.bool_]) -> float:
        """Return the score of a node whose classes are kept or suppressed as given."""

    def final(self, score: float) -> float:
        """Return the score as the literature states it."""
        return score


@dataclasses.dataclass(frozen=True)
class Metric(Member):
    """Base of every metric of information loss."""

    #: What a value says, for people who read a report.
    meaning: ClassVar[str] = ""
    #: Whether it follows from the released file; what counts the original values would tell them.
    is_published: ClassVar[bool] = True

    @abc.abstractmethod
    def scorer(
        self, table: FrequencySet, attributes: Sequence[Attribute], rollup: Rollup, limit: int
    ) -> Scorer:
        """Return the metric on one file, of which at most `limit` records may be suppressed."""


def weights(table: FrequencySet, attributes: Sequence[Attribute]) -> list[Numbers]:
    """Return how many records have each value, by the value's place along the tree."""
    return [
        np.bincount(
            attribute.rank[coded.codes], weights=table.count, minlength=len(attribute.rank)
        ).astype(np.float64)
        for coded, attribute in zip(table.quasi, attributes, strict=True)
    ]


def outer(levels: Sequence[Numbers], operation: np.ufunc) -> Numbers:
    """Combine one number per level of each attribute into one per node, flat.

    >>> outer([np.array([1.0, 2.0]), np.array([10.0, 20.0])], np.add)
    array([11., 21., 12., 22.])
    """
    found = np.asarray(levels[0], dtype=np.float64)
    for level in levels[1:]:
        found = operation.outer(found, level).ravel()
    return found
