"""Noisy counts of every level: the only place that sees the truth."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from discreet.dp.hierarchical.basis import Basis, Query
from discreet.dp.hierarchical.budget import Budget
from discreet.dp.hierarchical.tree import Floats, Ints, Spine
from discreet.dp.noise import add_gaussian
from discreet.progress import Progress, silent

__all__ = ["Measurements", "Simulated", "measure"]

#: Adds noise of a scale to whole numbers.
Simulated = Callable[[Ints, float], Ints]


@dataclasses.dataclass(frozen=True, eq=False)
class Measurements:
    """What was measured, and all that the estimate is made from.

    `noisy` has, per level, the noisy answers of each query, one row per node. `exact` are marginals
    that are published exactly, at most one per level: they lie outside the promise.
    """

    spine: Spine
    basis: Basis
    budget: Budget
    noisy: tuple[Mapping[Query, Ints], ...]
    exact: Mapping[int, tuple[Query, Ints]] = dataclasses.field(default_factory=dict)
    #: Cells that may hold somebody; None: all.
    possible: npt.NDArray[np.bool_] | None = None

    def weighted(self, level: int) -> Floats:
        """Return the measurements of a level in coordinates, times their precisions."""
        found = np.zeros((self.spine.sizes[level], self.basis.cells))
        for query, variance in self.budget.variances(level).items():
            answers = self.noisy[level][query].astype(np.float64)
            found += self.basis.spread(answers, query) / variance
        return found

    def known(self, level: int) -> tuple[Query, Ints] | None:
        """Return the marginal of a level that is exact, by itself or as a sum of a level below."""
        below = [number for number in self.exact if number >= level]
        if not below:
            return None
        # Marginals of higher levels have all attributes of lower ones, so that the next is enough.
        query, answers = self.exact[min(below)]
        for number in range(min(below), level, -1):
            answers = np.asarray(self.spine.add_up(answers, number), dtype=np.int64)
        return query, answers

    def precisions(self, level: int) -> Floats:
        """Return the precision with which a level measures each coordinate."""
        return self.basis.precisions(self.budget.variances(level))


def measure(
    spine: Spine,
    basis: Basis,
    leaves: Ints,
    budget: Budget,
    *,
    exact: Mapping[int, Query] | None = None,
    possible: npt.NDArray[np.bool_] | None = None,
    progress: Progress = silent,
    simulated: Simulated | None = None,
) -> Measurements:
    """Return noisy answers to the queries of a budget, and the marginals that are exact.

    Cells that cannot hold anybody get neither noise nor count. `leaves` has one row per leaf.
    `simulated` draws in place of OpenDP where published counts are measured again, to see how exact
    a method is; what it draws protects nobody.
    """
    noisy: list[dict[Query, Ints]] = [{} for _ in spine.sizes]
    published: dict[int, tuple[Query, Ints]] = {}

    def drawn(values: Ints, scale: float) -> Ints:
        if simulated is not None:
            return simulated(values, scale)
        return add_gaussian(values, scale=scale, progress=progress)

    counts = np.asarray(leaves, dtype=np.int64)
    for level in range(spine.depth - 1, -1, -1):
        if level < spine.depth - 1:
            counts = np.asarray(spine.add_up(counts, level + 1), dtype=np.int64)
        for one in budget.measures:
            if one.level != level:
                continue
            answers = np.asarray(basis.answers(counts, one.query), dtype=np.int64)
            if possible is None:
                noisy[level][one.query] = drawn(answers, one.scale)
                continue
            some = np.asarray(basis.answers(possible[None, :].astype(np.int64), one.query))[0] > 0
            found = np.zeros_like(answers)
            found[:, some] = drawn(answers[:, some], one.scale)
            noisy[level][one.query] = found
        if exact is not None and level in exact:
            query = exact[level]
            published[level] = query, np.asarray(basis.answers(counts, query), dtype=np.int64)
    return Measurements(spine, basis, budget, tuple(noisy), published, possible)
