"""The p % rule."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, ClassVar

from discreet.audit.rules._base import Inequality, Rule, Verdict
from discreet.audit.rules.pq import ambiguity, ambiguous
from discreet.registry import parameter

if TYPE_CHECKING:
    from discreet.data.table import Table

__all__ = ["PPercent"]


@dataclasses.dataclass(frozen=True)
class PPercent(Rule):
    """A cell is sensitive when its second contributor can bound the largest within p percent.

    That is when the total less the two largest contributions is below p percent of the largest;
    the level is what is missing. It is the pq rule with q = 100.

    Examples
    --------
    Three salaries of 500,000, 320,000 and 32,000: the second bounds the first within 6.4 %.

    >>> import pandas as pd
    >>> from discreet.data.table import Table
    >>> cells = pd.DataFrame({"sector": ["IT"], "value": [852e3], "x1": [500e3], "x2": [320e3]})
    >>> table = Table.from_cells(cells, by=["sector"], value="value", contributions=["x1", "x2"])
    >>> found = PPercent(10).judge(table)
    >>> found.sensitive.tolist(), found.upper.tolist()
    ([True], [18000.0])
    """

    name: ClassVar[str] = "p-percent"
    reference: ClassVar[str] = "Cox (1981), JASA 76; Hundepool et al. (2012), §4.2"

    p: float = parameter(10.0, help="percent of the largest contribution", above=0, high=100)

    def inequalities(self) -> tuple[Inequality, ...]:
        """Return 100 (T − x1 − x2) < p x1."""
        return ambiguous(self.p, 100)

    def judge(self, table: Table) -> Verdict:
        """Return the cells whose largest contribution is known too well."""
        return ambiguity(self, table, self.p / 100)
