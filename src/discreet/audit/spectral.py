"""The attack to try: noise without structure falls out of data that have some."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["shrinkage", "spectral_filter"]

Floats = npt.NDArray[np.float64]


def spectral_filter(noisy: npt.ArrayLike, variance: float) -> Floats:
    """Return a guess at the originals of several columns behind independent noise.

    Correlated columns vary in few directions, independent noise in all of them. What is kept is
    the part along directions whose variance exceeds that of noise alone (Kargupta et al. 2003),
    each pulled towards the mean by as much as its noise warrants.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> truth = rng.normal(size=(2000, 1)) * np.ones(20) * 10
    >>> noisy = truth + rng.normal(size=truth.shape) * 10
    >>> rmse = np.sqrt(((spectral_filter(noisy, 100.0) - truth) ** 2).mean())
    >>> bool(rmse < 3)
    True
    """
    values = np.asarray(noisy, dtype=np.float64)
    mean = values.mean(axis=0)
    centred = values - mean
    rows, columns = centred.shape
    found, directions = np.linalg.eigh(centred.T @ centred / max(rows, 1))
    # Largest eigenvalue that noise alone has (Marchenko and Pastur).
    bound = variance * (1 + np.sqrt(columns / max(rows, 1))) ** 2
    is_kept = found > bound
    kept, factor = directions[:, is_kept], 1 - variance / found[is_kept]
    return np.asarray(mean + centred @ (kept * factor) @ kept.T)


def shrinkage(noisy: npt.ArrayLike, variance: float) -> Floats:
    """Return each column pulled towards its mean by as much as its noise warrants."""
    values = np.asarray(noisy, dtype=np.float64)
    mean, total = values.mean(axis=0), values.var(axis=0)
    factor = np.clip(1 - variance / np.where(total > 0, total, np.inf), 0.0, 1.0)
    return np.asarray(mean + (values - mean) * factor)
