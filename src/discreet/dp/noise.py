"""Differentially private noise for lists of numbers, drawn by OpenDP and by nothing else."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.errors import InputError

__all__ = ["add_laplace"]


def add_laplace(
    values: npt.ArrayLike, *, sensitivity: float, epsilon: float, whole: bool = False
) -> npt.NDArray[np.float64]:
    """Return values with Laplace noise for an L1 sensitivity and a budget.

    Whole numbers get discrete noise and stay whole. The privacy map of the mechanism is asked
    whether it keeps within the budget; the noise is not trusted to be large enough by formula.

    >>> noisy = add_laplace([10, 20], sensitivity=1, epsilon=1.0, whole=True)
    >>> len(noisy), bool((noisy == np.round(noisy)).all())
    (2, True)
    """
    if not epsilon > 0 or not np.isfinite(epsilon):
        raise InputError(
            f"epsilon must be above 0, found {epsilon:g}",
            code="parameter-range",
            parameter="epsilon",
        )
    if not sensitivity > 0 or not np.isfinite(sensitivity):
        raise InputError(
            f"the sensitivity must be above 0, found {sensitivity:g}", code="parameter-range"
        )
    data = np.asarray(values, dtype=np.float64)
    if not data.size:
        return data.copy()
    scale = _scale(sensitivity, epsilon, whole)
    mechanism = _laplace(scale, whole)
    listed: list[Any] = [round(v) for v in data.tolist()] if whole else data.tolist()
    return np.asarray(mechanism(listed), dtype=np.float64)


def _scale(sensitivity: float, epsilon: float, whole: bool) -> float:
    """Return the smallest scale whose privacy loss is within the budget, rounding included."""
    distance: Any = int(np.ceil(sensitivity)) if whole else float(sensitivity)
    scale = float(distance) / epsilon
    for _ in range(64):
        if _laplace(scale, whole).map(distance) <= epsilon:
            return scale
        scale *= 1 + 1e-12
    return scale * (1 + 1e-9)


@functools.lru_cache(maxsize=64)
def _laplace(scale: float, whole: bool) -> Any:
    # Any: OpenDP's objects have no annotations.
    import opendp.prelude as dp

    dp.enable_features("contrib")
    if whole:
        domain, metric = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    else:
        domain = dp.vector_domain(dp.atom_domain(T="f64", nan=False))
        metric = dp.l1_distance(T="f64")
    return dp.m.make_laplace(domain, metric, scale=scale)
