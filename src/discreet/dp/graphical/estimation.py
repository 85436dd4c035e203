"""Estimating a model from noisy marginals: mirror descent on its potentials (Private-PGM)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

import numpy as np

from discreet.dp.graphical.domain import Clique, Numbers, Sizes
from discreet.dp.graphical.junction_tree import junction_tree
from discreet.dp.graphical.potentials import Beliefs, propagated

__all__ = ["Measured", "Model", "estimate", "measured"]


@dataclasses.dataclass(frozen=True, eq=False)
class Measured:
    """Noisy counts of one clique: what was measured of it, weighted by precision."""

    counts: Numbers
    #: One over the variance of each count.
    precision: float

    def joined(self, other: Measured) -> Measured:
        """Return both together, as if measured once with less noise."""
        whole = self.precision + other.precision
        counts = (self.precision * self.counts + other.precision * other.counts) / whole
        return Measured(counts, whole)


@dataclasses.dataclass(frozen=True, eq=False)
class Model:
    """Potentials of the measured cliques, and the marginals that follow."""

    potentials: Mapping[Clique, Numbers]
    beliefs: Beliefs
    loss: float
    #: The step that fitted last: a warm start for the next fit.
    step: float


def measured(found: Iterable[tuple[Clique, Numbers, float]]) -> dict[Clique, Measured]:
    """Return measurements (clique, counts, standard deviation) by clique, joined where repeated."""
    joined: dict[Clique, Measured] = {}
    for own, counts, deviation in found:
        one = Measured(np.asarray(counts, np.float64), deviation**-2)
        joined[own] = joined[own].joined(one) if own in joined else one
    return joined


def total_of(measurements: Mapping[Clique, Measured]) -> float:
    """Return the number of records that the measurements tell, weighted by their precision."""
    weights = {own: m.precision / m.counts.size for own, m in measurements.items()}
    whole = sum(weights.values())
    found = sum(weights[own] * m.counts.sum() for own, m in measurements.items()) / whole
    return max(1.0, float(found))


def estimate(
    sizes: Sizes,
    measurements: Mapping[Clique, Measured],
    *,
    warm: Model | None = None,
    total: float | None = None,
    rounds: int = 1000,
    tolerance: float = 1e-5,
) -> Model:
    """Return the model whose marginals come nearest to the measured ones.

    Of all distributions with these marginals it is the one of most entropy. The loss is half the
    sum of squared differences, each weighted by its precision. Descent stops when ten rounds lower
    the loss by less than the tolerance of it.
    """
    count = total_of(measurements) if total is None else total
    tree = junction_tree(sizes, measurements)
    start = dict(warm.potentials) if warm is not None else {}
    potentials = {own: start.get(own, np.zeros(sizes.shape(own))) for own in measurements}
    beliefs = propagated(tree, potentials, count)
    loss, slopes, tables = _loss(beliefs, measurements)
    if warm is not None:
        step = 2 * warm.step
    else:
        step = 1 / (count * sum(one.precision for one in measurements.values()))
    earlier = loss
    for done in range(1, rounds + 1):
        for _ in range(40):
            tried = {own: table - step * slopes[own] for own, table in potentials.items()}
            there = propagated(tree, tried, count)
            reached, next_slopes, next_tables = _loss(there, measurements)
            moved = sum(
                float(np.vdot(slopes[own], tables[own] - next_tables[own])) for own in measurements
            )
            if loss - reached >= 0.5 * moved or step < 1e-300:
                break
            step /= 2
        potentials, beliefs, loss = tried, there, reached
        slopes, tables = next_slopes, next_tables
        step *= 1.25
        if done % 10 == 0:
            if earlier - loss <= tolerance * max(loss, 1e-12):
                break
            earlier = loss
    return Model(potentials, beliefs, loss, step)


def _loss(
    beliefs: Beliefs, measurements: Mapping[Clique, Measured]
) -> tuple[float, dict[Clique, Numbers], dict[Clique, Numbers]]:
    """Return the loss, its slope in each measured table, and these tables."""
    loss, slopes, tables = 0.0, {}, {}
    for own, one in measurements.items():
        tables[own] = beliefs.marginal(own)
        away = tables[own] - one.counts
        loss += 0.5 * one.precision * float(np.vdot(away, away))
        slopes[own] = one.precision * away
    return loss, slopes, tables
