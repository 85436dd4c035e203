"""The minimum frequency rule."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from discreet.audit.rules._base import (
    Inequality,
    LevelBound,
    Rule,
    Verdict,
    holds,
    magnitude,
    verdict,
)
from discreet.registry import parameter

if TYPE_CHECKING:
    from discreet.data.table import Table

__all__ = ["MinimumFrequency"]


@dataclasses.dataclass(frozen=True)
class MinimumFrequency(Rule):
    """A cell is sensitive when fewer than n contributors stand behind it.

    The rule itself says nothing about how much protection such a cell needs. In a table of counts
    another count must remain possible on both sides (a level of 1, or `range` percent of the
    value where that is more); in a table of magnitudes the level is `range` percent of the value.

    Examples
    --------
    >>> import pandas as pd
    >>> from discreet.data.table import Table
    >>> cells = pd.DataFrame({"sector": ["Total", "IT", "Fin"], "value": [9, 7, 2]})
    >>> table = Table.from_cells(cells, by=["sector"], value="value", count="value")
    >>> MinimumFrequency(3).judge(table.replace(statistic="count")).sensitive.tolist()
    [False, False, True]
    """

    name: ClassVar[str] = "minimum-frequency"
    reference: ClassVar[str] = "Hundepool et al. (2012), Statistical Disclosure Control, §4.2"

    n: int = parameter(3, help="smallest safe number of contributors", low=1)
    range: float = parameter(
        10.0, help="percent of the value an attacker must remain unsure of", above=0, high=100
    )

    def inequalities(self) -> tuple[Inequality, ...]:
        """Return 0 < count < n."""
        return Inequality(count=-1), Inequality(count=1, constant=-self.n)

    def level_bound(self) -> LevelBound:
        """Return `range` percent of the value, and of counts that, or one."""
        share = Fraction(str(self.range)) / 100
        return LevelBound(share, contributors=max(1, math.ceil(share * (self.n - 1))))

    def judge(self, table: Table) -> Verdict:
        """Return the cells with at least one and fewer than n contributors."""
        level = magnitude(table) * self.range / 100
        if table.statistic == "count":
            level = np.maximum(level, 1.0)
        return verdict(holds(self, table), level, level)
