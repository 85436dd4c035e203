"""Expected errors of consistent tables before any record is seen, and the split that meets targets."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from discreet.chart import COLOURS, Axis, Series, plot
from discreet.data.table import Floats
from discreet.dp.hierarchical.basis import Basis, Query, along
from discreet.dp.hierarchical.tree import Spine, fit, gather
from discreet.errors import InputError
from discreet.report import Report, Rows

__all__ = ["Plan", "expected_errors", "least_loss"]

#: The mean of the absolute value of a normal number, in standard deviations.
_ABSOLUTE = math.sqrt(2 / math.pi)
#: Shares are kept above this part of the whole.
_LEAST = 1e-6


@dataclasses.dataclass(frozen=True)
class Plan(Report):
    """What a split of a budget costs and how exact its table will be; made without records.

    `errors` are expected absolute errors of the linear estimate, per level and query. Whole tables
    are more exact where most cells are empty.
    """

    rho: float
    epsilon: float
    delta: float
    #: Share of each level, and of each query within it: what `split` and `queries` take.
    split: dict[str, float]
    queries: dict[str, dict[str, float]]
    errors: dict[str, dict[str, float]]
    #: What was asked for, where something was.
    target: dict[str, dict[str, float]]

    def rows(self) -> Rows:
        """Return one line per level and query."""
        lines = [
            (
                level,
                query,
                round(100 * self.split[level] * self.queries.get(level, {}).get(query, 0.0), 2),
                round(error, 3),
                self.target.get(level, {}).get(query),
            )
            for level, errors in self.errors.items()
            for query, error in errors.items()
        ]
        return ("level", "query", "share %", "expected error", "target"), lines

    def picture(self) -> str:
        """Return the expected error per level and query, as SVG."""
        levels = list(self.errors)
        queries = list(dict.fromkeys(query for errors in self.errors.values() for query in errors))
        series = [
            Series(
                query,
                [
                    (float(place), self.errors[level][query])
                    for place, level in enumerate(levels)
                    if query in self.errors[level]
                ],
                COLOURS[number % len(COLOURS)],
            )
            for number, query in enumerate(queries)
        ]
        across = Axis("level", names=tuple(map(str, levels)))
        return plot(series, across, Axis("expected absolute error"), size=(420, 180))


def expected_errors(
    spine: Spine,
    basis: Basis,
    variances: Sequence[Mapping[Query, float]],
    queries: Sequence[Query],
    exact: Mapping[int, Query] | None = None,
) -> Floats:
    """Return (levels, queries): the mean absolute error of a cell of a marginal, linear estimate.

    `exact` are the marginals that levels publish as they are.
    """
    known = {
        level: (basis.seen(query), np.zeros((spine.sizes[level], int(basis.seen(query).sum()))))
        for level, query in (exact or {}).items()
    }
    fitted = fit(
        gather(
            spine,
            [np.zeros((size, basis.cells)) for size in spine.sizes],
            [basis.precisions(level) for level in variances],
            known,
        )
    )
    found = np.zeros((spine.depth, len(queries)))
    for number, variance in enumerate(fitted.variance):
        # Nodes whose subtrees are alike have the same variances.
        distinct, count = np.unique(variance.round(12), axis=0, return_counts=True)
        for place, query in enumerate(queries):
            matrices = [
                (matrix.T**2) if a in query else (matrix.sum(axis=1) ** 2)[None, :]
                for a, matrix in enumerate(basis.matrices)
            ]
            error = np.sqrt(np.maximum(along(distinct, matrices), 0.0)).mean(axis=1)
            found[number, place] = _ABSOLUTE * float((error * count).sum() / count.sum())
    return found


def least_loss(
    spine: Spine,
    basis: Basis,
    start: Sequence[Mapping[Query, float]],
    targets: Mapping[tuple[int, Query], float],
    exact: Mapping[int, Query] | None = None,
) -> tuple[float, list[dict[Query, float]]]:
    """Return the least ρ found that meets targets of expected error, and the shares that do.

    `start` are shares that add up to one; what has none is not measured. For fixed shares errors
    fall with the square root of ρ, so that it only remains to choose the shares: a convex
    program in the losses of single measurements, from which nothing worse than the start comes back.
    """
    from scipy.optimize import minimize

    for (level, query), wanted in targets.items():
        known = any(
            level <= below and set(query) <= set(given) for below, given in (exact or {}).items()
        )
        if known or not wanted > 0:
            raise InputError(
                "what is published exactly needs no target"
                if known
                else f"a target is an error above 0, found {wanted!r}",
                code="bad-target",
                parameter="target",
            )
    keys = [(n, query) for n, level in enumerate(start) for query, share in level.items() if share]
    asked = list(dict.fromkeys(query for _, query in targets))
    places = [(level, asked.index(query)) for level, query in targets]
    limits = np.array(list(targets.values()))

    def ratios(losses: Floats) -> Floats:
        """Return how often each target is missed, squared: what ρ would have to grow by."""
        variances: list[dict[Query, float]] = [{} for _ in spine.sizes]
        for (level, query), loss in zip(keys, losses, strict=True):
            variances[level][query] = 1 / (2 * loss)
        errors = expected_errors(spine, basis, variances, asked, exact)
        return np.asarray(np.array([errors[place] for place in places]) ** 2 / limits**2)

    first = np.array([start[level][query] for level, query in keys])
    first = first * ratios(first).max()
    floor = math.log(_LEAST * first.sum())
    done: Any = minimize(  # type: ignore[call-overload]  # its stubs want exact array types
        lambda x: float(np.exp(x).sum() / first.sum()),
        np.log(first),
        jac=lambda x: np.exp(x) / first.sum(),
        constraints=[{"type": "ineq", "fun": lambda x: -np.log(ratios(np.exp(x)))}],
        bounds=[(floor, None)] * len(first),
        method="SLSQP",
        options={"maxiter": 200, "ftol": 1e-7},
    )
    better = np.exp(np.clip(np.nan_to_num(done.x, nan=floor), floor, None))
    better = better * ratios(better).max()
    best = better if better.sum() < first.sum() else first
    total = float(best.sum())
    shares: list[dict[Query, float]] = [{} for _ in spine.sizes]
    for (level, query), loss in zip(keys, best, strict=True):
        shares[level][query] = float(loss / total)
    return total, shares
