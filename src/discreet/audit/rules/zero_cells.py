"""Zeros that say something about people."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from discreet.audit.rules._base import Inequality, LevelBound, Rule, Verdict, verdict
from discreet.errors import InputError
from discreet.registry import parameter

if TYPE_CHECKING:
    from discreet.data.table import Table

__all__ = ["ZeroCells"]

#: More combinations of codes than this are not written out.
_LARGEST = 2_000_000


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

    def inequalities(self) -> tuple[Inequality, ...]:
        """Return 0 < count and T < 1, T in whole units; where empty cells count no form can say it."""
        return () if self.empty else (Inequality(count=-1), Inequality(total=1, constant=-1))

    def level_bound(self) -> LevelBound:
        """Return the level, which is an amount."""
        return LevelBound(amount=self.level)

    def completed(self, table: Table) -> Table:
        """Return the table with a cell for every combination of codes, where empty ones count."""
        if not self.empty:
            return table
        sizes = [len(dimension.codes) for dimension in table.dimensions]
        number = float(np.prod(np.array(sizes, dtype=np.float64)))
        if number > _LARGEST:
            raise InputError(
                f"zero-cells: the table has {number:,.0f} combinations of codes, too many to "
                "protect the empty ones",
                code="table-too-large",
                hint="cross fewer attributes, or leave out empty",
                parameter="empty",
            )
        return table.with_empty(np.indices(sizes).reshape(len(sizes), -1).T.astype(np.int32))

    def judges_zeros(self, table: Table) -> bool:
        """Return whether it judges zeros: all of them or none."""
        del table
        return True

    def judge(self, table: Table) -> Verdict:
        """Return the cells whose value is zero."""
        zero = table.value == 0
        if not self.empty:
            zero &= self.needs_count(table) > 0
        return verdict(zero, np.zeros(len(table)), np.full(len(table), self.level))
