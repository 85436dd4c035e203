"""Least largest range over groups that do not overlap."""

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

__all__ = ["MinMax"]


@dataclasses.dataclass(frozen=True)
class MinMax(Partition):
    """Group neighbouring values so that the largest range is least.

    At most twice the least largest range of any partition, overlapping ones included
    (`min-max-exact`). O(d) for d distinct values.

    Examples
    --------
    >>> from discreet.microdata.permutation.partitions import Demand, Problem
    >>> MinMax().groups(Problem.of([0, 9, 10, 19], Demand(k=2, e=10))).tolist()
    [0, 0, 0, 0]
    """

    name: ClassVar[str] = "min-max"
    reference: ClassVar[str] = (
        "Zhang, Koudas, Srivastava and Yu: Aggregate query answering on anonymized tables, ICDE 2007"
    )

    def split(self, problem: Problem, *, rng: Randomness) -> Integers:
        """Return the group of each record."""
        from discreet.microdata.permutation.partitions import _kernels

        counts, demand = problem.counts, problem.demand
        found = _kernels.min_max(problem.values, counts, demand.k, float(demand.e))
        return labels_from_starts(_kernels.starts_of(found, counts), problem.order)
