"""The discrete Laplace (geometric) mechanism."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import ClassVar

from discreet.dp.accountant import pure_event
from discreet.dp.libraries import opendp
from discreet.dp.mechanisms._base import Mechanism, Noise
from discreet.dp.mechanisms._source import Source

__all__ = ["Laplace"]


@dataclasses.dataclass(frozen=True)
class Laplace(Mechanism):
    """Two-sided geometric noise on whole numbers: pure ε-differential privacy.

    Examples
    --------
    >>> noise = Laplace().noise(epsilon=0.5, sensitivity=1)
    >>> noise.scale
    2.0
    >>> len(noise.draw([10, 20, 30]))
    3
    """

    name: ClassVar[str] = "laplace"
    reference: ClassVar[str] = (
        "Dwork, McSherry, Nissim and Smith (2006), Calibrating noise to sensitivity; "
        "Ghosh, Roughgarden and Sundararajan (2009), Universally utility-maximizing mechanisms"
    )

    def noise(self, *, epsilon: float, sensitivity: int) -> Noise:
        """Return noise of scale sensitivity / epsilon."""
        scale = sensitivity / epsilon
        source = _source(scale)
        # OpenDP's own map, rounded up there, is what is charged.
        cost = float(source.measurement.map(sensitivity))
        ratio = math.exp(-1 / scale) if scale > 0 else 0.0
        return Noise(
            scale,
            pure_event(cost),
            pure_event(cost),
            scale * math.log(2 / (0.05 * (1 + ratio))),
            math.sqrt(2 * ratio) / (1 - ratio) if ratio < 1 else math.inf,
            source.draw,
            lambda chance: max(1, math.ceil(scale * math.log(1 / (chance * (1 + ratio))))),
        )


@functools.lru_cache(maxsize=256)
def _source(scale: float) -> Source:
    dp = opendp()
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    return Source(dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale), scale)
