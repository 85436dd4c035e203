"""What a mechanism is: a share of the budget and a sensitivity in, noise and its loss out."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Sequence
from typing import ClassVar

from discreet.registry import Member

__all__ = ["Mechanism", "Noise"]


@dataclasses.dataclass(frozen=True)
class Noise:
    """Noise of one scale, with what it costs, as the accountant spells it."""

    scale: float
    event: str
    #: The same cost for an accountant that convolves the distributions of privacy losses.
    convolved_event: str
    #: Half-width that holds 95 of 100 draws.
    error_95: float
    deviation: float
    draw: Callable[[Sequence[int]], list[int]] = dataclasses.field(repr=False)
    #: Smallest t with P(noise ≥ t) ≤ a given probability.
    tail: Callable[[float], int] = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True)
class Mechanism(Member):
    """Settings of one kind of noise."""

    #: Whether its cost is ρ of zero-concentrated differential privacy; otherwise it is pure ε.
    is_concentrated: ClassVar[bool] = False

    @abc.abstractmethod
    def noise(self, *, epsilon: float, sensitivity: int) -> Noise:
        """Return the noise that hides a change of `sensitivity` at a cost of epsilon.

        For mechanisms that are not pure, epsilon stands for ρ = ε²/2 of zero-concentrated
        differential privacy, which is what pure ε would cost there.
        """
