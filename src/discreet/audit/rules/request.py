"""The request rule."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from discreet.audit.rules._base import Inequality, Rule, Verdict, holds, magnitude, verdict
from discreet.errors import InputError
from discreet.registry import parameter

if TYPE_CHECKING:
    from discreet.data.table import Table

__all__ = ["Request"]


@dataclasses.dataclass(frozen=True)
class Request(Rule):
    """A cell is sensitive when a contributor who asked for protection makes up much of it.

    Used for foreign trade, where only those who ask are protected. The table carries the largest
    contribution among those who asked (`dc.tabulate(…, request="column")`, or `table.requested`).

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from discreet.data.table import Table
    >>> cells = pd.DataFrame({"good": ["Total", "oil", "gas"], "value": [200.0, 100.0, 100.0]})
    >>> table = Table.from_cells(cells, by=["good"], value="value")
    >>> table = table.replace(requested=np.array([80.0, 80.0, 0.0]))
    >>> Request(70).judge(table).sensitive.tolist()
    [False, True, False]
    """

    name: ClassVar[str] = "request"
    reference: ClassVar[str] = "Hundepool et al. (2012), Statistical Disclosure Control, §4.2.2"

    share: float = parameter(
        70.0, help="percent of the cell the asking contributor may reach", above=0, below=100
    )

    def inequalities(self) -> tuple[Inequality, ...]:
        """Return 100 x > share T, where x is the largest contribution of those who asked."""
        return (Inequality.scaled(total=self.share, requested=-100),)

    def judge(self, table: Table) -> Verdict:
        """Return the cells in which an asking contributor exceeds the share."""
        if table.requested is None:
            raise InputError(
                "the rule request needs to know who asked for protection, which the table lacks",
                code="table-without-requests",
                hint="tabulate with request=, the column that is true for those who asked",
            )
        total = magnitude(table)
        asked = np.abs(table.requested)
        level = asked * 100 / self.share - total
        return verdict(holds(self, table), level, level)
