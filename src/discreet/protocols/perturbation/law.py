"""The published distribution of the noise."""

from __future__ import annotations

import dataclasses
from typing import Literal

import numpy as np
import numpy.typing as npt

from discreet.errors import InputError
from discreet.randomness import Randomness

__all__ = ["NoiseLaw"]

Floats = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class NoiseLaw:
    """Noise around zero: uniform on ±scale, or normal with standard deviation scale.

    Examples
    --------
    >>> NoiseLaw("uniform", 50.0).interval(0.95)
    95.0
    >>> round(NoiseLaw("gaussian", 25.0).interval(0.95), 2)
    98.0
    """

    shape: Literal["uniform", "gaussian"]
    scale: float

    def __post_init__(self) -> None:
        if self.shape not in ("uniform", "gaussian"):
            raise InputError(
                f"there is no noise {self.shape!r}",
                code="unknown-noise",
                hint="write 'uniform' or 'gaussian'",
            )
        if not (np.isfinite(self.scale) and self.scale > 0):
            raise InputError(
                f"the scale of noise is {self.scale}",
                code="out-of-range",
                hint="give a positive number, in the unit of the column",
            )

    @property
    def variance(self) -> float:
        """Variance of the noise."""
        return self.scale**2 / 3 if self.shape == "uniform" else self.scale**2

    def interval(self, confidence: float) -> float:
        """Return the width of the interval that holds a value with some confidence."""
        from scipy.stats import norm

        if self.shape == "uniform":
            return float(2 * self.scale * confidence)
        return float(2 * self.scale * norm.ppf((1 + confidence) / 2))

    def draw(self, size: int, *, rng: Randomness) -> Floats:
        """Return noise."""
        if self.shape == "uniform":
            return rng.uniform(size, -self.scale, self.scale)
        return rng.normal(size, 0.0, self.scale)

    def cumulative(self, values: Floats) -> Floats:
        """Return the distribution function."""
        from scipy.stats import norm

        if self.shape == "uniform":
            return np.asarray(np.clip((values / self.scale + 1) / 2, 0.0, 1.0))
        return np.asarray(norm.cdf(values / self.scale))
