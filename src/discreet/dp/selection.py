"""Choosing one of several candidates privately: the lowest score, with noise from OpenDP."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

from discreet.dp.accountant import gaussian_event, pure_event
from discreet.dp.libraries import opendp
from discreet.errors import EngineError

__all__ = ["Selection", "select_lowest"]


@dataclasses.dataclass(frozen=True)
class Selection:
    """A private choice, with what it costs, as the accountant spells it."""

    scale: float
    event: str
    #: The place of the chosen score.
    choose: Callable[[Sequence[int]], int] = dataclasses.field(repr=False)


def select_lowest(*, epsilon: float, sensitivity: int, concentrated: bool = False) -> Selection:
    """Return the choice of a low score, where one unit changes no score by more than so much.

    Pure ε-differential privacy by permute-and-flip (McKenna and Sheldon 2020); with
    `concentrated`, ρ = ε²/2 of zero-concentrated differential privacy.

    >>> chosen = select_lowest(epsilon=100.0, sensitivity=1)
    >>> chosen.event, chosen.choose([30, 0, 40])
    ('pure 100.0', 1)
    """
    scale = sensitivity / epsilon if concentrated else 2 * sensitivity / epsilon
    measurement = _measurement(scale, concentrated)
    # OpenDP's own map, rounded up there, is what is charged.
    cost = float(measurement.map(sensitivity))
    event = gaussian_event(cost) if concentrated else pure_event(cost)
    return Selection(scale, event, functools.partial(_chosen, measurement))


def _chosen(measurement: Any, scores: Sequence[int]) -> int:
    try:
        return int(measurement([int(score) for score in scores]))
    except Exception as error:  # OpenDP raises its own exception for overflow and bad domains
        raise EngineError("OpenDP could not choose", code="noise-failed") from error


@functools.lru_cache(maxsize=256)
def _measurement(scale: float, concentrated: bool) -> Any:
    # Any: OpenDP's generated functions are not annotated.
    dp = opendp()
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    measure = dp.zero_concentrated_divergence() if concentrated else dp.max_divergence()
    return dp.m.make_noisy_max(domain, dp.linf_distance(T="i64"), measure, scale, negate=True)
