"""Columns that are chosen to read the other owner's."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from discreet.attacks._base import Attack, Attacked, AttackReport
from discreet.errors import DiscreetError

__all__ = ["ChosenColumns"]

Floats = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class ChosenColumns(Attack):
    """Offer a column that is 1 for one person and 0 for all others, and multiply.

    The product with the other owner's column is that person's value, however well the protocol
    hides everything else. So columns are those that were agreed on, checked when an owner starts.

    Examples
    --------
    >>> secret = np.array([[3.0], [7.0], [9.0]])
    >>> ChosenColumns().run(lambda x: x.T @ secret, records=3, person=1, truth=7.0).succeeded
    True
    """

    name: ClassVar[str] = "chosen-columns"
    reference: ClassVar[str] = "Goethals, Laur, Lipmaa and Mielikäinen (2004), ICISC"
    attacks: ClassVar[Attacked] = "view"

    def run(
        self, multiply: Callable[[Floats], Floats], *, records: int, person: int, truth: float
    ) -> AttackReport:
        """Conclude the person's value from what a product opens."""
        chosen = np.zeros((records, 1))
        chosen[person] = 1.0
        try:
            found = float(np.asarray(multiply(chosen)).ravel()[0])
        except DiscreetError:
            return AttackReport(self.name, 1, 1, None, None, succeeded=False)
        near = abs(found - truth) <= 1e-3 * max(1.0, abs(truth))
        return AttackReport(self.name, 1, 0, found, found, near)

    def control(self) -> AttackReport:
        """Attack a product that takes whatever column is offered."""
        secret = np.random.default_rng(1).uniform(0, 100, (20, 1))
        return self.run(lambda x: x.T @ secret, records=20, person=4, truth=float(secret[4, 0]))
