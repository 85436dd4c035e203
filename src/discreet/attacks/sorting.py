"""The sorting attack."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np

from discreet.attacks._releases import Floats, Permuted, ReleaseAttack
from discreet.registry import parameter

__all__ = ["Sorting"]


@dataclasses.dataclass(frozen=True)
class Sorting(ReleaseAttack):
    """Sort each group of a permuted release by a column that follows the permuted one.

    With tax = 0.3 · salary the order of the taxes is that of the salaries, so everybody's salary is
    found. Which column to take, and in which direction, the groups say: their means were not
    permuted.

    Examples
    --------
    >>> Sorting().control().share
    1.0
    """

    name: ClassVar[str] = "sorting"
    reference: ClassVar[str] = (
        "Wong, Fu, Wang and Pei (2007), Minimality attack in privacy preserving data publishing"
    )

    column: str | None = parameter(None, help="column to sort by; the likeliest if left out")

    def guesses(self, released: Permuted) -> Floats:
        """Give the values of each group out in the order of the column."""
        middle = released.means(released.values)
        follows = {
            name: _correlation(released.means(values), middle)
            for name, values in released.columns.items()
            if self.column in (None, name)
        }
        best = max(follows, key=lambda name: abs(follows[name]))
        return released.ordered(np.sign(follows[best] or 1.0) * released.columns[best])


def _correlation(one: Floats, two: Floats) -> float:
    if one.std() == 0 or two.std() == 0:
        return 0.0
    return float(np.corrcoef(one, two)[0, 1])
