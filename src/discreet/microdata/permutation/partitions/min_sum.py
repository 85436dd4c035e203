"""Least sum of ranges."""

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
from discreet.registry import parameter

__all__ = ["MinSum"]


@dataclasses.dataclass(frozen=True)
class MinSum(Partition):
    """Group the values so that the sum of the groups' ranges is least.

    Some optimum has ranges that do not overlap, so the answer is optimal among all partitions. O(d)
    for d distinct values; among equals the partition with most groups is taken.

    Examples
    --------
    >>> from discreet.microdata.permutation.partitions import Demand, Problem
    >>> MinSum().groups(Problem.of([10, 90, 11, 50, 91, 52], Demand(k=2))).tolist()
    [0, 2, 0, 1, 2, 1]
    """

    name: ClassVar[str] = "min-sum"
    reference: ClassVar[str] = (
        "Zhang, Koudas, Srivastava and Yu: Aggregate query answering on anonymized tables, ICDE 2007"
    )

    share: bool = parameter(
        True, help="let two groups share a value: as good in the sum, with more and smaller groups"
    )

    def split(self, problem: Problem, *, rng: Randomness) -> Integers:
        """Return the group of each record."""
        from discreet.microdata.permutation.partitions import _kernels

        counts, demand = problem.counts, problem.demand
        found = _kernels.min_sum(problem.values, counts, demand.k, float(demand.e), self.share)
        return labels_from_starts(_kernels.starts_of(found, counts), problem.order)
