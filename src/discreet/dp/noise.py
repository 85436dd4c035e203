"""Differentially private noise for lists of numbers, drawn by OpenDP and by nothing else."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.dp.libraries import opendp
from discreet.errors import EngineError, InputError
from discreet.progress import Progress, silent

__all__ = ["add_gaussian", "add_laplace", "gaussian_loss"]

#: Numbers given to OpenDP at a time, each a list of Python's own numbers meanwhile.
CHUNK = 200_000


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
    dp = opendp()
    if whole:
        domain, metric = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    else:
        domain = dp.vector_domain(dp.atom_domain(T="f64", nan=False))
        metric = dp.l1_distance(T="f64")
    return dp.m.make_laplace(domain, metric, scale=scale)


def add_gaussian(
    values: npt.ArrayLike, *, scale: float, cores: int | None = None, progress: Progress = silent
) -> npt.NDArray[np.int64]:
    """Return whole numbers with discrete Gaussian noise of a scale, whatever their number.

    The noise is drawn in chunks by all cores: OpenDP lets go of the interpreter while it draws.
    What it costs is said by `gaussian_loss`.

    >>> add_gaussian([[10, 20], [30, 40]], scale=2.0).shape
    (2, 2)
    """
    data = np.asarray(values, dtype=np.int64)
    flat, noisy = data.reshape(-1), np.empty(data.size, dtype=np.int64)
    mechanism = _gaussian(float(scale))

    def draw(start: int) -> int:
        part = slice(start, start + CHUNK)
        noisy[part] = mechanism(flat[part].tolist())
        return start

    starts = range(0, data.size, CHUNK)
    try:
        for start in _side_by_side(draw, starts, cores):
            progress("drawing noise", min(start + CHUNK, data.size), data.size)
    except EngineError:
        raise
    except Exception as error:  # OpenDP raises its own exception for overflow
        raise EngineError("OpenDP could not draw noise", code="noise-failed") from error
    return noisy.reshape(data.shape)


def _side_by_side(draw: Any, starts: range, cores: int | None) -> Iterator[int]:
    """Call a function on several threads. Any: a function of a number."""
    workers = min(cores or os.cpu_count() or 1, len(starts))
    if workers <= 1:
        yield from map(draw, starts)
        return
    with ThreadPoolExecutor(workers) as pool:
        yield from pool.map(draw, starts)


def gaussian_loss(scale: float, distance: float) -> float:
    """Return the ρ that OpenDP proves for discrete Gaussian noise and a distance between vectors.

    >>> gaussian_loss(2.0, 1.0)
    0.125
    """
    if not scale > 0 or not np.isfinite(scale):
        raise InputError(f"the scale must be above 0, found {scale:g}", code="parameter-range")
    return float(_gaussian(float(scale)).map(float(distance)))


@functools.lru_cache(maxsize=256)
def _gaussian(scale: float) -> Any:
    # Any: as above.
    dp = opendp()
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    return dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale)
