"""Moments: means, variances, covariances, correlations, quantiles, and the eigenvalues."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any, ClassVar

import numpy as np

from discreet.microdata.pair import Pair
from discreet.microdata.utilities._base import Comparison, UtilityMeasure, numeric_columns
from discreet.randomness import Randomness
from discreet.registry import parameter

__all__ = ["Moments"]


@dataclasses.dataclass(frozen=True)
class Moments(UtilityMeasure):
    """Means, variances, covariances, correlations and quantiles of the numbers, before and after.

    The value is the mean difference of correlations where there are two or more columns, else of
    the mean in standard deviations. Also IL1s (mean distance of values over √2 standard deviations)
    and the difference of the eigenvalues of the covariance matrices of the standardised columns.
    Records with a missing value are left out of covariances.

    Examples
    --------
    >>> import pandas as pd
    >>> raw = pd.DataFrame({"age": [20.0, 30, 40], "pay": [1.0, 2, 3]})
    >>> found = Moments().compare(Pair.of(raw, raw), rng=Randomness.seeded(1))
    >>> found.value, found.facts["eigenvalues"]
    (0.0, 0.0)
    """

    name: ClassVar[str] = "moments"
    reference: ClassVar[str] = (
        "Domingo-Ferrer and Torra 2001; Mateo-Sanz, Domingo-Ferrer and Sebé 2005; Templ 2008"
    )

    quantiles: tuple[float, ...] = parameter(
        (0.05, 0.25, 0.5, 0.75, 0.95), help="quantiles compared"
    )

    def applies(self, pair: Pair) -> bool:
        """Needs numbers."""
        return super().applies(pair) and bool(numeric_columns(pair))

    def compare(self, pair: Pair, *, rng: Randomness) -> Comparison:
        """Return the mean difference of correlations."""
        names = numeric_columns(pair)
        before = np.stack([pair.numbers(n)[0] for n in names], axis=1)
        after = np.stack([pair.numbers(n)[1] for n in names], axis=1)
        facts: dict[str, Any] = {
            name: self._column(before[:, place], after[:, place])
            for place, name in enumerate(names)
        }
        spread = np.array([facts[name]["deviation"][0] for name in names])
        scale = np.where(spread > 0, spread, 1.0)
        moved = np.abs(before - after) / (np.sqrt(2) * scale)
        facts["IL1s"] = None if np.isnan(moved).all() else float(np.nanmean(moved))
        both = ~np.isnan(before).any(axis=1), ~np.isnan(after).any(axis=1)
        if min(both[0].sum(), both[1].sum()) < 3:
            value = float(np.mean([facts[n]["mean shift"] for n in names]))
            return self.comparison(value, "too few complete records for covariances", facts)
        one, two = (
            np.atleast_2d(np.cov(v[k] / scale, rowvar=False))
            for v, k in zip((before, after), both, strict=True)
        )
        facts["covariances"] = float(np.abs(one - two).mean())
        roots = [np.sort(np.linalg.eigvalsh(m))[::-1] for m in (one, two)]
        facts["eigenvalues"] = float(
            np.abs(roots[0] - roots[1]).sum() / max(roots[0].sum(), 1e-300)
        )
        if len(names) < 2:
            value = facts[names[0]]["mean shift"]
            return self.comparison(value, f"the mean moved by {value:.2%} of a deviation", facts)
        away = ~np.eye(len(names), dtype=bool)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a constant column has no correlation
            first, second = (
                np.corrcoef(v[k], rowvar=False) for v, k in zip((before, after), both, strict=True)
            )
        apart = np.abs(np.nan_to_num(first) - np.nan_to_num(second))[away]
        facts["correlations"] = {"mean": float(apart.mean()), "largest": float(apart.max())}
        value = float(apart.mean())
        return self.comparison(value, f"correlations moved by {value:.3f} on average", facts)

    def _column(self, before: np.ndarray, after: np.ndarray) -> dict[str, Any]:
        one, two = before[~np.isnan(before)], after[~np.isnan(after)]
        if one.size == 0 or two.size == 0:
            return {"mean": (None, None), "deviation": (0.0, 0.0), "mean shift": 1.0}
        spread = [float(v.std(ddof=1)) if v.size > 1 else 0.0 for v in (one, two)]
        scale = spread[0] if spread[0] > 0 else 1.0
        told = [np.quantile(v, self.quantiles) for v in (one, two)]
        return {
            "mean": (float(one.mean()), float(two.mean())),
            "deviation": tuple(spread),
            "mean shift": float(abs(one.mean() - two.mean()) / scale),
            "variance ratio": (spread[1] / spread[0]) ** 2 if spread[0] > 0 else None,
            "quantile shift": float(np.abs(told[0] - told[1]).mean() / scale),
        }
