"""Least largest range over all partitions, overlapping groups included."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np

from discreet.errors import InfeasibleError
from discreet.microdata.permutation.partitions._base import Integers, Partition, Problem
from discreet.randomness import Randomness

__all__ = ["MinMaxExact"]

#: The chain of groups is searched in about d³ steps per candidate range.
LIMIT = 200


@dataclasses.dataclass(frozen=True)
class MinMaxExact(Partition):
    """Group the values so that the largest range is the least of all partitions.

    Some optimum is a chain of groups of which only neighbours overlap. The candidates for the
    largest range are the differences of values: they are searched by halving, each decided by a
    dynamic programme over the chain. For at most 200 distinct values.

    Examples
    --------
    >>> from discreet.microdata.permutation.partitions import Demand, Problem
    >>> MinMaxExact().groups(Problem.of([0, 9, 10, 19], Demand(k=2, e=10))).tolist()
    [0, 1, 0, 1]
    """

    name: ClassVar[str] = "min-max-exact"
    reference: ClassVar[str] = (
        "Zhang, Koudas, Srivastava and Yu: Aggregate query answering on anonymized tables, ICDE 2007"
    )

    def split(self, problem: Problem, *, rng: Randomness) -> Integers:
        """Return the group of each record."""
        from discreet.microdata.permutation.partitions import _kernels

        u, m = problem.values, problem.counts
        k, e = problem.demand.k, float(problem.demand.e)
        if len(u) > LIMIT:
            raise InfeasibleError(
                f"min-max-exact is for at most {LIMIT} distinct values, found {len(u)}",
                code="too-many-values",
                hint="use min-max, whose largest range is at most twice as large",
                limit=LIMIT,
            )
        ranges = np.unique(u[:, None] - u[None, :])
        ranges = ranges[(ranges >= e) & (ranges > 0)]
        low, high = 0, len(ranges) - 1  # the whole range is always enough
        while low < high:
            middle = (low + high) // 2
            end, _ = _kernels.chain(u, m, k, e, float(ranges[middle]))
            low, high = (low, middle) if end[len(u), 0] >= 0 else (middle + 1, high)
        end, back = _kernels.chain(u, m, k, e, float(ranges[low]))
        return _labels(_trace(end, back, len(u)), problem)


def _trace(end: Integers, back: Integers, d: int) -> list[tuple[int, int, int]]:
    """Return for each group its first value, its last value and the singles it took of the next."""
    start, taken = d, 0
    chain = []
    while start > 0:
        first, before = (int(x) for x in back[start, taken])
        chain.append((first, int(end[start, taken]) - 1, taken))
        start, taken = first, before
    return chain[::-1]


def _labels(chain: list[tuple[int, int, int]], problem: Problem) -> Integers:
    counts, order = problem.counts, problem.order
    offsets = np.concatenate([[0], np.cumsum(counts)])
    labels = np.empty(len(order), dtype=np.int64)
    for group, (first, last, taken) in enumerate(chain):
        # Every value so far unassigned goes here; the next group then takes back what it needs.
        labels[order[offsets[first] : offsets[last + 1]]] = group
        if group == 0:
            continue
        _, last_before, taken = chain[group - 1]
        overlap = np.arange(first, last_before + 1)
        for value in overlap[counts[overlap] >= 2]:
            labels[order[offsets[value]]] = group - 1
        singles = overlap[(counts[overlap] == 1) & (overlap != first)]
        kept = np.concatenate([singles[-1:], singles[:-1]])[:taken]  # the last must stay
        labels[order[offsets[kept]]] = group - 1
    return labels
