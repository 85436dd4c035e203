"""The prior/posterior ambiguity rule."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, ClassVar

from discreet.audit.rules._base import Inequality, Rule, Verdict, holds, magnitude, verdict
from discreet.errors import InputError
from discreet.registry import parameter

if TYPE_CHECKING:
    from discreet.data.table import Table

__all__ = ["Pq", "ambiguity", "ambiguous"]


@dataclasses.dataclass(frozen=True)
class Pq(Rule):
    """A cell is sensitive when the runner-up, who knows the rest within q %, knows the largest within p %.

    Examples
    --------
    >>> import pandas as pd
    >>> from discreet.data.table import Table
    >>> cells = pd.DataFrame({"act": ["A"], "value": [120.0], "x1": [90.0], "x2": [20.0]})
    >>> table = Table.from_cells(cells, by=["act"], value="value", contributions=["x1", "x2"])
    >>> Pq(10, 100).judge(table).sensitive.tolist(), Pq(10, 50).judge(table).sensitive.tolist()
    ([False], [True])
    """

    name: ClassVar[str] = "pq"
    reference: ClassVar[str] = "Cox (1981), JASA 76; Hundepool et al. (2012), §4.2"

    p: float = parameter(10.0, help="percent within which nobody may know", above=0)
    q: float = parameter(100.0, help="percent within which everybody knows already", above=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.p >= self.q:
            raise InputError(
                f"pq: p must be below q, found p = {self.p:g} and q = {self.q:g}: nobody can be "
                "kept from knowing what everybody knows",
                code="parameter-range",
                hint="give p (after publication) smaller than q (before it)",
                parameter="p",
            )

    def inequalities(self) -> tuple[Inequality, ...]:
        """Return q (T − x1 − x2) < p x1."""
        return ambiguous(self.p, self.q)

    def judge(self, table: Table) -> Verdict:
        """Return the cells whose remainder does not blur the largest contribution enough."""
        return ambiguity(self, table, self.p / self.q)


def ambiguity(rule: Rule, table: Table, share: float) -> Verdict:
    """Judge by the remainder: what is left of a cell without its two largest contributions."""
    top = rule.needs_contributions(table, 2)
    remainder = magnitude(table) - top[:, 0] - top[:, 1]
    need = share * top[:, 0]
    level = need - remainder
    return verdict(holds(rule, table), level, level)


def ambiguous(p: float, q: float) -> tuple[Inequality, ...]:
    """Return q (T − x1 − x2) < p x1 in whole numbers."""
    return (Inequality.scaled(total=q, largest=(-q - p, -q)),)
