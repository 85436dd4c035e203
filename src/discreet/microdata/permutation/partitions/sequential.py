"""Groups closed as soon as they are valid, in random order: the baseline."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np

from discreet.microdata.permutation.partitions._base import Integers, Partition, Problem
from discreet.randomness import Randomness

__all__ = ["Sequential"]


@dataclasses.dataclass(frozen=True)
class Sequential(Partition):
    """Scan the records in random order and close a group as soon as it is valid.

    The baseline of the paper's comparison: it looks neither at the values nor at who has them. The
    unfinished rest joins the last closed group.

    Examples
    --------
    >>> from discreet.microdata.permutation.partitions import Demand, Problem
    >>> rng = Randomness.seeded(1)
    >>> groups = Sequential().groups(Problem.of([1, 2, 3, 4, 5, 6], Demand(k=2)), rng=rng)
    >>> sorted(groups.tolist())
    [0, 0, 1, 1, 2, 2]
    """

    name: ClassVar[str] = "sequential"
    reference: ClassVar[str] = (
        "Zhang, Koudas, Srivastava and Yu: Aggregate query answering on anonymized tables, ICDE 2007"
    )

    def split(self, problem: Problem, *, rng: Randomness) -> Integers:
        """Return the group of each record."""
        from discreet.microdata.permutation.partitions import _kernels

        order = rng.permutation(len(problem.classes))
        no_strips = np.empty(0, dtype=np.int64)
        k, e = problem.demand.k, float(problem.demand.e)
        labels: Integers = _kernels.scan(order, no_strips, problem.classes, problem.values, k, e)
        return labels
