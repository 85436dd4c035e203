"""Masks that are real numbers."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from discreet.attacks._base import Attack, Attacked, AttackReport
from discreet.registry import parameter

__all__ = ["FloatMask"]


@dataclasses.dataclass(frozen=True)
class FloatMask(Attack):
    """Tell large hidden values from small ones by the size of masked messages.

    A real-valued mask has a middle, and a sum with it leans towards what it hides; a uniform word of
    the ring leans nowhere. The area under the curve must exceed one half by more than chance does.

    Examples
    --------
    >>> FloatMask().control().succeeded
    True
    """

    name: ClassVar[str] = "float-mask"
    reference: ClassVar[str] = "Du, Han and Chen (2004), SDM; Goethals et al. (2004), ICISC"
    attacks: ClassVar[Attacked] = "view"

    errors: float = parameter(4.0, help="standard errors beyond chance", above=0)

    def run(self, messages: npt.ArrayLike, large: npt.ArrayLike) -> AttackReport:
        """Order messages by size; which of them hide large values only says how often that is right."""
        values, labels = np.asarray(messages).reshape(-1), np.asarray(large, dtype=np.bool_)
        ranks = np.empty(len(values))
        ranks[np.argsort(values, kind="stable")] = np.arange(1, len(values) + 1)
        ones, zeros = int(labels.sum()), int((~labels).sum())
        area = float((ranks[labels].sum() - ones * (ones + 1) / 2) / (ones * zeros))
        chance = float(np.sqrt((ones + zeros + 1) / (12 * ones * zeros)))
        far = abs(area - 0.5) > self.errors * chance
        return AttackReport(self.name, len(values), 0, area, area, far)

    def control(self) -> AttackReport:
        """Attack normal masks of about the size of what they hide."""
        rng = np.random.default_rng(4)
        large = rng.integers(0, 2, 2000).astype(bool)
        return self.run(np.where(large, 900.0, 10.0) + rng.normal(0, 500, 2000), large)
