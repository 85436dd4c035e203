"""Forced response: a coin decides between the truth and "yes"."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from discreet.dp.local._base import Array, Estimate, LocalMechanism, bits, require_bits
from discreet.dp.local._chances import UNIT, coin, share_of_unit
from discreet.errors import InputError
from discreet.randomness import Randomness
from discreet.registry import parameter

__all__ = ["ForcedResponse"]


@dataclasses.dataclass(frozen=True)
class ForcedResponse(LocalMechanism):
    """Tell the truth with probability p, else say yes whatever the truth.

    A yes can be denied, a no cannot: nobody is ever made to say no, so every no is certainly true
    and epsilon is infinite. Use it where only a yes is a secret, and `randomized-response`
    otherwise. With ȳ the share of yes among the reports, the share of true yes is estimated by
    (ȳ − (1 − p)) / p.

    Examples
    --------
    >>> mechanism = ForcedResponse(0.5)
    >>> mechanism.privacy
    inf
    >>> reports = mechanism.encode(["yes"] * 300 + ["no"] * 700, rng=Randomness.seeded(1))
    >>> bool(reports[:300].all())
    True
    >>> 0.2 < mechanism.estimate(reports).estimate[0] < 0.4
    True
    """

    name: ClassVar[str] = "forced-response"
    reference: ClassVar[str] = "Boruch, The American Sociologist 6 (1971)"
    p: float = parameter(0.5, help="probability of telling the truth", above=0, below=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self._truth == 0:
            raise InputError(
                f"p = {self.p:g} is too small: the report would say nothing",
                code="parameter-range",
                hint="give a p of 1e-9 or more",
                parameter="p",
            )

    @property
    def _truth(self) -> int:
        return share_of_unit(self.p)

    @property
    def privacy(self) -> float:
        """Return epsilon, which is infinite: a no is certainly true."""
        return math.inf

    @property
    def caution(self) -> str:
        """What somebody who chooses this mechanism has to know."""
        return 'epsilon is infinite: a "no" is certainly true, only a "yes" can be denied'

    def encode(self, answers: Sequence[Any], *, rng: Randomness) -> Array:
        """Randomise yes/no answers."""
        true = bits(answers)
        return true | ~coin(self._truth, len(true), rng)

    def estimate(self, reports: Array) -> Estimate:
        """Estimate the share of yes."""
        given = require_bits(self.check(reports))
        ones, n = np.array([given.sum()]), len(given)
        return self._shares(["yes"], ones, np.array([n]), (UNIT, UNIT - self._truth), n)
