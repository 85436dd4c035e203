"""Smoothing: numbers drawn around those of a leaf, so that fewer of them are somebody's own."""

from __future__ import annotations

import numpy as np

from discreet.microdata.columns import Numbers, Places
from discreet.microdata.synthesizers._leaves import Leaves
from discreet.microdata.synthesizers._variables import Variable
from discreet.randomness import Randomness

__all__ = ["smoothed"]


def smoothed(
    variable: Variable,
    leaves: Leaves,
    leaf: Places,
    values: Numbers,
    limits: tuple[float, float] | None,
    *,
    rng: Randomness,
) -> Numbers:
    """Return donors' numbers with normal noise of the leaf's kernel bandwidth (Silverman's rule).

    Numbers that fall outside the public limits, or beyond the least and largest of the file where
    none are declared, are mirrored back inside. Decimals are those of the column.
    """
    own = variable.scale[variable.places[leaves.donors]]
    owner = np.repeat(np.arange(leaves.count.size), leaves.count)
    count = np.maximum(leaves.count, 1)
    mean = np.bincount(owner, own, minlength=count.size) / count
    variance = np.bincount(owner, (own - mean[owner]) ** 2, minlength=count.size) / count
    width = 0.9 * np.sqrt(variance) * count**-0.2
    low, high = limits or (float(variable.scale[0]), float(variable.scale[-2]))
    found = values + width[leaf] * rng.normal(values.size)
    for _ in range(2):
        found = np.where(found < low, 2 * low - found, found)
        found = np.where(found > high, 2 * high - found, found)
    return np.clip(np.round(np.clip(found, low, high), variable.decimals), low, high)
