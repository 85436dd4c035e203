"""What a projection leaves of the values that it should hide."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from discreet.attacks._base import Attack, Attacked, AttackReport
from discreet.registry import parameter

__all__ = ["ProjectionLeak"]

Floats = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class ProjectionLeak(Attack):
    """Guess values of 0 and 1 from a message of the product protocol, by where they lie.

    In Karr's product the second owner returns its columns less a projection; each value keeps most
    of its size. Under a mask modulo 2^64 it keeps nothing.

    Examples
    --------
    >>> values = np.array([0.0, 1.0] * 50)
    >>> ProjectionLeak().run(values * 0.8 + 0.02, values).succeeded
    True
    >>> ProjectionLeak().run(np.tile([3.0, 9.0, 9.0, 3.0], 25), values).succeeded
    False
    """

    name: ClassVar[str] = "projection-leak"
    reference: ClassVar[str] = (
        "Karr, Lin, Sanil and Reiter (2009), Journal of Official Statistics 25"
    )
    attacks: ClassVar[Attacked] = "view"

    right: float = parameter(
        0.75, help="share of values guessed right that counts", low=0.5, high=1
    )

    def run(self, message: Floats, truth: Floats) -> AttackReport:
        """Conclude which values are 1; reported is the share that is right."""
        seen, hidden = message.ravel(), truth.ravel() > 0.5
        guess = seen > np.median(seen)
        share = float((guess == hidden).mean())
        return AttackReport(self.name, len(seen), 0, share, share, share >= self.right)

    def control(self) -> AttackReport:
        """Attack Karr's product with a tenth of the dimensions taken out."""
        rng = np.random.default_rng(1)
        values = rng.permutation(np.repeat([0.0, 1.0], 100))
        basis, _ = np.linalg.qr(rng.normal(size=(200, 20)))
        return self.run(values - basis @ (basis.T @ values), values)
