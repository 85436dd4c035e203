"""Zeros that say something about people."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from discreet.audit.rules._base import Rule, Verdict, verdict
from discreet.registry import parameter

if TYPE_CHECKING:
    from discreet.data.table import Table

__all__ = ["ZeroCells"]


@dataclasses.dataclass(frozen=True)
class ZeroCells(Rule):
    """A cell of zero with contributors is sensitive: each of them is known to have nothing.

    Zeros without contributors are empty and stay as they are, unless `empty` says that being in
    the group is itself the secret (a table of counts in which "nobody" tells something).

    Examples
    --------
    >>> import pandas as pd
    >>> from discreet.data.table import Table
    >>> cells = pd.DataFrame({"act": ["Total", "A", "B"], "value": [5, 5, 0], "n": [4, 3, 1]})
    >>> table = Table.from_cells(cells, by=["act"], value="value", count="n")
    >>> ZeroCells(level=1).judge(table).sensitive.tolist()
    [False, False, True]
    """

    name: ClassVar[str] = "zero-cells"
    reference: ClassVar[str] = "Hundepool et al. (2012), Statistical Disclosure Control, §4.2"

    level: float = parameter(1.0, help="how far above zero must remain possible", above=0)
    empty: bool = parameter(False, help="also zeros without contributors")

    def judge(self, table: Table) -> Verdict:
        """Return the cells whose value is zero."""
        zero = table.value == 0
        if not self.empty:
            zero &= self.needs_count(table) > 0
        return verdict(zero, np.zeros(len(table)), np.full(len(table), self.level))
