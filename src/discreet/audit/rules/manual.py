"""Cells named by the curator."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from discreet.audit.rules._base import Rule, Verdict, magnitude, verdict
from discreet.errors import InputError
from discreet.registry import parameter

if TYPE_CHECKING:
    from discreet.data.table import Table

__all__ = ["Manual"]


@dataclasses.dataclass(frozen=True)
class Manual(Rule):
    """The cells the curator names are sensitive, whatever the other rules say.

    A cell is written as its codes in the order of the table's attributes, with ``/`` between them.

    Examples
    --------
    >>> import pandas as pd
    >>> from discreet.data.table import Table
    >>> cells = pd.DataFrame({"sector": ["Total", "IT", "Fin"], "value": [10.0, 7.0, 3.0]})
    >>> table = Table.from_cells(cells, by=["sector"], value="value")
    >>> found = Manual(("Fin",), range=20).judge(table)
    >>> found.sensitive.tolist(), found.upper.tolist()
    ([False, False, True], [0.0, 0.0, 0.6])
    """

    name: ClassVar[str] = "manual"
    reference: ClassVar[str] = "Hundepool et al. (2012), Statistical Disclosure Control, §4.2"

    cells: tuple[str, ...] = parameter(help="codes of each cell, with / between them")
    range: float = parameter(
        10.0, help="percent of the value an attacker must remain unsure of", above=0, high=100
    )

    def judge(self, table: Table) -> Verdict:
        """Return the named cells."""
        sensitive = np.zeros(len(table), dtype=bool)
        for cell in self.cells:
            codes = [code.strip() for code in cell.split("/")]
            if len(codes) != len(table.dimensions):
                raise InputError(
                    f"manual: the cell {cell!r} has {len(codes)} codes, the table has "
                    f"{len(table.dimensions)} attributes: {', '.join(table.by)}",
                    code="unknown-cell",
                    hint="write one code for each attribute, with / between them",
                    parameter="cells",
                )
            sensitive[table.cell(*codes)] = True
        level = magnitude(table) * self.range / 100
        if table.statistic == "count":
            level = np.maximum(level, 1.0)
        return verdict(sensitive, level, level)
