"""The discrete Gaussian mechanism."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import ClassVar

from discreet.dp.accountant import gaussian_event, normal_event
from discreet.dp.libraries import opendp
from discreet.dp.mechanisms._base import Mechanism, Noise
from discreet.dp.mechanisms._source import Source

__all__ = ["Gaussian"]


@dataclasses.dataclass(frozen=True)
class Gaussian(Mechanism):
    """Normal noise on whole numbers: zero-concentrated differential privacy.

    Examples
    --------
    >>> noise = Gaussian().noise(epsilon=0.5, sensitivity=1)
    >>> noise.scale, noise.event
    (2.0, 'zcdp 0.125')
    """

    name: ClassVar[str] = "gaussian"
    reference: ClassVar[str] = (
        "Canonne, Kamath and Steinke (2020), The discrete Gaussian for differential privacy"
    )
    is_concentrated: ClassVar[bool] = True

    def noise(self, *, epsilon: float, sensitivity: int) -> Noise:
        """Return noise with ρ = ε²/2, of standard deviation sensitivity / epsilon."""
        scale = sensitivity / epsilon
        source = _source(scale)
        cost = float(source.measurement.map(float(sensitivity)))
        return Noise(
            scale,
            gaussian_event(cost),
            normal_event(cost, scale),
            1.959964 * scale,
            scale,
            source.draw,
            lambda chance: max(1, math.ceil(scale * math.sqrt(2 * math.log(1 / chance)))),
        )


@functools.lru_cache(maxsize=256)
def _source(scale: float) -> Source:
    dp = opendp()
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    return Source(dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale), scale)
