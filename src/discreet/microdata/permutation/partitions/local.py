"""Groups of records that are close in their quasi-identifiers, for range queries on them."""

from __future__ import annotations

import dataclasses
from typing import ClassVar, Literal

import numpy as np

from discreet.errors import InputError
from discreet.microdata.permutation.partitions._base import (
    Floats,
    Integers,
    Partition,
    Problem,
)
from discreet.randomness import Randomness
from discreet.registry import parameter

__all__ = ["Local"]

#: More records than this teach nothing more about the width.
_TRAINING_RECORDS = 5_000
_TRAINING_QUERIES = 400
#: Widths tried, as multiples of k.
_WIDTHS = (1, 2, 4, 8, 16, 32, 64)
_ROUNDS = 12


@dataclasses.dataclass(frozen=True)
class Local(Partition):
    """Group records that are close in their quasi-identifiers.

    A range query on a quasi-identifier then covers most groups wholly, and these add nothing to its
    error. The space is cut into cells of at least `width` records (``mondrian``), and groups are
    made inside each cell by the least Σ size·range; or records are scanned along a Hilbert curve
    (one quasi-identifier: in its order) and a group is closed as soon as it is valid
    (``hilbert``). Without `width` it is chosen on sample queries, together with how much each
    quasi-identifier counts, so that the quasi-identifier that gains least against `weighted` gains
    most.

    Examples
    --------
    >>> from discreet.microdata.permutation.partitions import Demand, Problem
    >>> problem = Problem.of([1, 50, 2, 60, 3, 70], Demand(k=2), quasi=[20, 21, 35, 36, 50, 51])
    >>> Local(width=2).groups(problem).tolist()
    [0, 0, 1, 1, 2, 2]
    """

    name: ClassVar[str] = "local"
    reference: ClassVar[str] = (
        "LeFevre, DeWitt and Ramakrishnan: Mondrian multidimensional k-anonymity, ICDE 2006; "
        "Ghinita, Karras, Kalnis and Mamoulis: Fast data anonymization with low information loss, "
        "VLDB 2007"
    )
    looks_at_quasi: ClassVar[bool] = True

    columns: tuple[str, ...] = parameter(
        (), help="quasi-identifiers to be close in; empty: all of them"
    )
    width: int | None = parameter(
        None, help="least records in a cell; nothing: chosen on sample queries", low=1
    )
    order: Literal["mondrian", "hilbert"] = parameter(
        "mondrian", help="cut the space into cells, or scan along a curve"
    )

    def split(self, problem: Problem, *, rng: Randomness) -> Integers:
        """Return the group of each record."""
        places = self._places(problem)
        if self.order == "hilbert":
            return _scan(problem, places)
        width, weights = self.width, np.ones(places.shape[1])
        if width is None:
            width, weights = _train(problem, places, rng)
        return _cells(problem, places * weights, width)

    def _places(self, problem: Problem) -> Floats:
        if problem.quasi is None or problem.quasi.shape[1] == 0:
            raise InputError(
                "local needs quasi-identifiers, and the data has none",
                code="no-quasi-identifiers",
                hint='give columns the role "quasi", or use partition="weighted"',
            )
        unknown = [name for name in self.columns if name not in problem.quasi_names]
        if unknown:
            raise InputError(
                f"local: {unknown[0]!r} is not a quasi-identifier",
                code="unknown-column",
                hint="choose from " + ", ".join(problem.quasi_names),
                column=unknown[0],
            )
        kept = [problem.quasi_names.index(name) for name in self.columns]
        raw = problem.quasi[:, kept] if kept else problem.quasi
        low, high = raw.min(axis=0), raw.max(axis=0)
        return np.ascontiguousarray((raw - low) / np.where(high > low, high - low, 1.0))


def _cells(problem: Problem, places: Floats, width: int) -> Integers:
    from discreet.microdata.permutation.partitions import _kernels

    k, e = problem.demand.k, float(problem.demand.e)
    classes, values = problem.classes, problem.values
    index, starts = _kernels.cells(places, classes, values, k, e, width)
    labels: Integers = _kernels.weighted_within(index, starts, classes, values, k, e)
    return labels


def _scan(problem: Problem, places: Floats) -> Integers:
    from discreet.microdata.permutation.partitions import _kernels

    along = places[:, 0] if places.shape[1] == 1 else _hilbert(places)
    # Equal places are taken in the order of their values, which makes narrow groups.
    order = np.lexsort((problem.classes, along)).astype(np.int64)
    no_strips = np.empty(0, dtype=np.int64)
    k, e = problem.demand.k, float(problem.demand.e)
    labels: Integers = _kernels.scan(order, no_strips, problem.classes, problem.values, k, e)
    return labels


def _hilbert(places: Floats) -> Integers:
    """Return each point's place on a Hilbert curve (Skilling 2004, transposed form)."""
    axes = places.shape[1]
    bits = min(62 // axes, 16)
    x = np.minimum((places * (1 << bits)).astype(np.int64), (1 << bits) - 1).T.copy()
    high = 1 << (bits - 1)
    step = high
    while step > 1:
        below = step - 1
        for axis in range(axes):
            flip = (x[axis] & step) != 0
            x[0][flip] ^= below
            swap = np.where(flip, 0, (x[0] ^ x[axis]) & below)
            x[0] ^= swap
            x[axis] ^= swap
        step >>= 1
    for axis in range(1, axes):
        x[axis] ^= x[axis - 1]
    turn = np.zeros_like(x[0])
    step = high
    while step > 1:
        turn[(x[axes - 1] & step) != 0] ^= step - 1
        step >>= 1
    x ^= turn
    distance = np.zeros_like(x[0])
    for bit in range(bits - 1, -1, -1):
        for axis in range(axes):
            distance = (distance << 1) | ((x[axis] >> bit) & 1)
    return np.asarray(distance)


def _train(problem: Problem, places: Floats, rng: Randomness) -> tuple[int, Floats]:
    """Return the width, and the weight of each axis, that serve sample queries best.

    What counts is the axis that gains least against `weighted`; after each round it weighs more.
    """
    from discreet.microdata.permutation.partitions.weighted import Weighted
    from discreet.microdata.permutation.workload import Workload

    if len(problem.classes) > _TRAINING_RECORDS:
        chosen = rng.sample(len(problem.classes), _TRAINING_RECORDS)
        sample = Problem.of(problem.values[problem.classes[chosen]], problem.demand)
        if len(sample.values) < problem.demand.k:
            return problem.demand.k, np.ones(places.shape[1])
        problem, places = sample, np.ascontiguousarray(places[chosen])
    amounts = problem.values[problem.classes]
    if problem.values[0] <= 0:  # shifted, so that no query has an answer of 0 to be relative to
        amounts = amounts - (2 * problem.values[0] - problem.values[-1] - 1.0)
    if (problem.values[-1] - problem.values[0]) < problem.demand.e:
        return problem.demand.k, np.ones(places.shape[1])
    work = [
        Workload.ranges(places[:, axis], _TRAINING_QUERIES, rng=rng)
        for axis in range(places.shape[1])
    ]
    plain = Weighted().split(problem, rng=rng)
    aim = np.array([np.maximum(w.errors(plain, amounts).mean(), 1e-12) for w in work])
    best, found = np.inf, (problem.demand.k, np.ones(places.shape[1]))
    for multiple in _WIDTHS:
        width = problem.demand.k * multiple
        if 2 * width > len(problem.classes):
            break
        weights = np.ones(places.shape[1])
        for _ in range(_ROUNDS if places.shape[1] > 1 else 1):
            labels = _cells(problem, places * weights, width)
            ratio = np.array([w.errors(labels, amounts).mean() for w in work]) / aim
            if ratio.max() < best:
                best, found = float(ratio.max()), (width, weights)
            weights = weights * np.clip(ratio / max(ratio.mean(), 1e-12), 0.5, 2.0)
    return found
