"""Optimal full-domain generalisation: the least lossy node of the lattice that keeps a promise.

The nodes are visited from those with the largest part of the lattice below them. Each evaluated
node tells how many records every finer node must suppress at least: splitting a class and
dropping parts of it leaves a subset of it, and the models say how large such a subset can be
(`Model.largest`). Nodes that must suppress too much, or whose score cannot beat the best one
found, are never evaluated. Nothing is assumed beyond what the models prove, so the result is the
optimum over the whole lattice, for models that are not monotonic under suppression too.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from discreet.errors import InfeasibleError, InputError
from discreet.microdata.classes import UNITS
from discreet.microdata.frequency_set import FrequencySet
from discreet.microdata.models._base import Model
from discreet.microdata.search.attribute import Attribute
from discreet.microdata.search.metrics._base import Metric, Scorer
from discreet.microdata.search.rollup import Grouping, Rollup
from discreet.progress import Progress, silent

__all__ = ["Optimum", "optimum"]

#: Beyond this many nodes the lattice is not searched: its bounds alone would fill the memory.
LARGEST_LATTICE = 1 << 25
#: Nodes whose bounds are looked at together.
_BLOCK = 4096


@dataclasses.dataclass(frozen=True, eq=False)
class Optimum:
    """The best node, with its classes and what was suppressed."""

    node: tuple[int, ...]
    score: float
    suppressed: int
    grouping: Grouping
    kept: npt.NDArray[np.bool_]
    rollup: Rollup
    nodes: int
    evaluated: int


def optimum(
    table: FrequencySet,
    attributes: Sequence[Attribute],
    models: Sequence[Model],
    metric: Metric,
    *,
    limit: int,
    progress: Progress = silent,
) -> Optimum:
    """Return the node with the least score that suppresses at most `limit` records.

    Between nodes of equal score the one with fewer levels in all is taken, then the first in the
    order of the attributes.
    """
    shape = tuple(attribute.height for attribute in attributes)
    size = math.prod(shape)
    if size > LARGEST_LATTICE:
        raise InputError(
            f"the hierarchies span {size:,} generalisations, more than the {LARGEST_LATTICE:,} that "
            "are searched",
            code="lattice-too-large",
            hint="bound some levels with highest={column: level}, or use Mondrian",
        )
    rollup = Rollup(table, attributes)
    scorer = metric.scorer(table, attributes, rollup, limit)
    search = _Search(table, rollup, scorer, models, limit, shape)
    below = np.ones(1, dtype=np.int64)
    for height in shape:
        below = np.multiply.outer(below, np.arange(1, height + 1)).ravel()
    order = np.argsort(-below, kind="stable")
    for start in range(0, size, _BLOCK):
        progress("searching the generalisations", start, size)
        search.visit(order[start : start + _BLOCK])
    progress("searching the generalisations", size, size)
    return search.result()


class _Search:
    def __init__(
        self,
        table: FrequencySet,
        rollup: Rollup,
        scorer: Scorer,
        models: Sequence[Model],
        limit: int,
        shape: tuple[int, ...],
    ) -> None:
        self._records, self._rollup, self._scorer = table.records, rollup, scorer
        self._models, self._limit, self._shape = models, limit, shape
        self._smallest = max((model.smallest for model in models), default=1)
        self._units = (UNITS,) if UNITS in table.cells else ()
        named = (c for model in models for c in model.columns)
        self._columns = (*self._units, *dict.fromkeys(named))
        # A promise about sizes alone needs no look at the values.
        self._sizes_only = not self._units and all(
            not model.columns and not hasattr(model, "population") for model in models
        )
        #: For every node the number of records that it suppresses at least.
        self._least = np.zeros(shape, dtype=np.int64)
        self._best = math.inf
        self._found: tuple[tuple[int, ...], Grouping, npt.NDArray[np.bool_], int] | None = None
        self._nearest: int | None = None
        self._evaluated = 0

    def visit(self, places: npt.NDArray[np.int64]) -> None:
        least = self._least.reshape(-1)
        open_ = (least[places] <= self._limit) & (self._scorer.floor[places] <= self._best)
        places = places[open_]
        nodes = np.stack(np.unravel_index(places, self._shape), axis=1).tolist()
        for place, node in zip(places.tolist(), nodes, strict=True):
            known = int(least[place])
            if known > self._limit:
                continue
            if self._scorer.bound(place, node, known) > self._best:
                continue
            self._evaluate(node)

    def _evaluate(self, node: list[int]) -> None:
        self._evaluated += 1
        grouping = self._rollup.at(node)
        kept, least = self._kept(grouping)
        below = self._least[tuple([slice(0, level + 1) for level in node])]
        np.maximum(below, least, out=below)
        if kept is None:
            return
        suppressed = self._records - int(grouping.sizes[kept].sum())
        if self._nearest is None or suppressed < self._nearest:
            self._nearest = suppressed
        if suppressed > self._limit:
            return
        score = self._scorer.score(node, grouping, kept)
        if score < self._best or (score == self._best and self._is_finer(node)):
            self._best, self._found = score, (tuple(node), grouping, kept, suppressed)

    def _is_finer(self, node: list[int]) -> bool:
        """Whether a node of the best score is to be preferred to the one found."""
        if self._found is None:
            return True
        other = self._found[0]
        return (sum(node), tuple(node)) < (sum(other), other)

    def _kept(self, grouping: Grouping) -> tuple[npt.NDArray[np.bool_] | None, int]:
        """Return which classes stay, and how many records every finer node suppresses at least."""
        large = grouping.sizes >= self._smallest
        small = self._records - int(grouping.sizes[large].sum())
        if self._sizes_only:
            return large, small
        if small > self._limit and self._nearest is not None:
            return None, small
        classes = grouping.classes(self._columns).chosen(large)
        kept = np.ones(len(classes), dtype=bool)
        most = classes.sizes.copy()
        for model in self._models:
            kept &= model.satisfied(classes)
            if not self._units:  # the bounds count people, and each may have any number of records
                np.minimum(most, model.largest(classes), out=most)
        most[(most < self._smallest) | (classes.people < self._smallest)] = 0
        found = np.zeros(len(grouping), dtype=bool)
        found[large] = kept
        return found, self._records - int(most.sum())

    def result(self) -> Optimum:
        if self._found is None:
            raise self._infeasible()
        node, grouping, kept, suppressed = self._found
        return Optimum(
            node,
            self._scorer.final(self._best),
            suppressed,
            grouping,
            kept,
            self._rollup,
            math.prod(self._shape),
            self._evaluated,
        )

    def _infeasible(self) -> InfeasibleError:
        nearest = self._records if self._nearest is None else self._nearest
        share = math.ceil(nearest / max(1, self._records) * 10_000) / 10_000
        return InfeasibleError(
            f"no generalisation keeps the models with at most {self._limit:,} of {self._records:,} "
            f"records suppressed; the nearest found suppresses {nearest:,}",
            code="suppression-limit",
            hint=f"allow suppression={share:g}, ask for less, or give the hierarchies more levels"
            if nearest < self._records
            else "no record could stay: ask for less",
            limit=self._limit,
            feasible=nearest,
            feasible_share=share,
        )
