"""The (n, k)-dominance rule."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, ClassVar

from discreet.audit.rules._base import Inequality, Rule, Verdict, holds, magnitude, verdict
from discreet.registry import parameter

if TYPE_CHECKING:
    from discreet.data.table import Table

__all__ = ["Dominance"]


@dataclasses.dataclass(frozen=True)
class Dominance(Rule):
    """A cell is sensitive when its n largest contributions exceed k percent of the total.

    The level is what the total would have to grow by for the rule to be met:
    100/k times the n largest contributions, less the total.

    Examples
    --------
    Castro's cell (M3, P5), where one of five people earns 350 of 363:

    >>> import pandas as pd
    >>> from discreet.data.table import Table
    >>> cells = pd.DataFrame({"town": ["M3"], "value": [363.0], "largest": [350.0]})
    >>> table = Table.from_cells(cells, by=["town"], value="value", contributions=["largest"])
    >>> found = Dominance(1, 50).judge(table)
    >>> found.sensitive.tolist(), found.upper.tolist()
    ([True], [337.0])
    """

    name: ClassVar[str] = "dominance"
    reference: ClassVar[str] = "Cox (1981), JASA 76; Castro (2012), EJOR 216"

    n: int = parameter(1, help="number of largest contributors", low=1)
    k: float = parameter(75.0, help="percent of the total they may reach", above=0, below=100)

    def inequalities(self) -> tuple[Inequality, ...]:
        """Return 100 (x1 + … + xn) > k T."""
        return (Inequality.scaled(total=self.k, largest=(-100,) * self.n),)

    def judge(self, table: Table) -> Verdict:
        """Return the cells that their largest contributors dominate."""
        top = self.needs_contributions(table, self.n).sum(axis=1)
        total = magnitude(table)
        level = top * 100 / self.k - total
        return verdict(holds(self, table), level, level)
