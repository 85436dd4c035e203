"""Noisy counts of every level: the only place that sees the truth."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from discreet.dp.hierarchical.basis import Basis, Query
from discreet.dp.hierarchical.budget import Budget
from discreet.dp.hierarchical.tree import Floats, Ints, Spine
from discreet.dp.noise import add_gaussian
from discreet.progress import Progress, silent

__all__ = ["Measurements", "measure"]


@dataclasses.dataclass(frozen=True, eq=False)
class Measurements:
    """What was measured, and all that the estimate is made from.

    `noisy` has, per level, the noisy answers of each query, one row per node. `totals` are figures
    that are published exactly, per level: they lie outside the promise.
    """

    spine: Spine
    basis: Basis
    budget: Budget
    noisy: tuple[Mapping[Query, Ints], ...]
    totals: Mapping[int, Ints] = dataclasses.field(default_factory=dict)
    #: Cells that may hold somebody; None: all.
    possible: npt.NDArray[np.bool_] | None = None

    def weighted(self, level: int) -> Floats:
        """Return the measurements of a level in coordinates, times their precisions."""
        found = np.zeros((self.spine.sizes[level], self.basis.cells))
        for query, variance in self.budget.variances(level).items():
            answers = self.noisy[level][query].astype(np.float64)
            found += self.basis.spread(answers, query) / variance
        return found

    def precisions(self, level: int) -> Floats:
        """Return the precision with which a level measures each coordinate."""
        return self.basis.precisions(self.budget.variances(level))


def measure(
    spine: Spine,
    basis: Basis,
    leaves: Ints,
    budget: Budget,
    *,
    exact: Sequence[int] = (),
    possible: npt.NDArray[np.bool_] | None = None,
    progress: Progress = silent,
) -> Measurements:
    """Return noisy answers to the queries of a budget, and the totals of the levels named as exact.

    Cells that cannot hold anybody get neither noise nor count. `leaves` has one row per leaf.
    """
    noisy: list[dict[Query, Ints]] = [{} for _ in spine.sizes]
    totals: dict[int, Ints] = {}
    counts = np.asarray(leaves, dtype=np.int64)
    for level in range(spine.depth - 1, -1, -1):
        if level < spine.depth - 1:
            counts = np.asarray(spine.add_up(counts, level + 1), dtype=np.int64)
        for one in budget.measures:
            if one.level != level:
                continue
            answers = np.asarray(basis.answers(counts, one.query), dtype=np.int64)
            if possible is None:
                noisy[level][one.query] = add_gaussian(answers, scale=one.scale, progress=progress)
                continue
            some = np.asarray(basis.answers(possible[None, :].astype(np.int64), one.query))[0] > 0
            found = np.zeros_like(answers)
            found[:, some] = add_gaussian(answers[:, some], scale=one.scale, progress=progress)
            noisy[level][one.query] = found
        if level in exact:
            totals[level] = counts.sum(axis=1)
    return Measurements(spine, basis, budget, tuple(noisy), totals, possible)
