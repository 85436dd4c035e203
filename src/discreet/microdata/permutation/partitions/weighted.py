"""Least Σ size·range: the best all-round default."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from discreet.microdata.permutation.partitions._base import (
    Integers,
    Partition,
    Problem,
    labels_from_starts,
)
from discreet.randomness import Randomness

__all__ = ["Weighted"]


@dataclasses.dataclass(frozen=True)
class Weighted(Partition):
    """Group neighbouring values so that the sum of size × range is least.

    A query that selects records at random meets a group in proportion to its size, so this is the
    error such a query expects. O(n log n).

    Examples
    --------
    >>> from discreet.microdata.permutation.partitions import Demand, Problem
    >>> Weighted().groups(Problem.of([10, 90, 11, 12, 91, 95], Demand(k=3))).tolist()
    [0, 1, 0, 0, 1, 1]
    """

    name: ClassVar[str] = "weighted"
    reference: ClassVar[str] = (
        "Zhang, Koudas, Srivastava and Yu: Aggregate query answering on anonymized tables, "
        "ICDE 2007 (framework); Galil and Park: Dynamic programming with convexity, 1992"
    )

    def split(self, problem: Problem, *, rng: Randomness) -> Integers:
        """Return the group of each record."""
        from discreet.microdata.permutation.partitions import _kernels

        demand = problem.demand
        starts = _kernels.weighted(problem.values, problem.counts, demand.k, float(demand.e))
        return labels_from_starts(starts, problem.order)
