"""What every sensitivity rule says: which cells are sensitive, and how much protection they need."""

from __future__ import annotations

import abc
import dataclasses
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from discreet.errors import InputError
from discreet.registry import Member

if TYPE_CHECKING:
    from discreet.data.table import Table

__all__ = ["Rule", "Verdict"]

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclasses.dataclass(frozen=True, eq=False)
class Verdict:
    """What a rule says of every cell.

    `lower` and `upper` are the protection levels: how far below and above its value a sensitive
    cell must remain possible to an attacker; 0 where the cell is not sensitive.
    """

    sensitive: Bools
    lower: Floats
    upper: Floats

    def __or__(self, other: Verdict) -> Verdict:
        """Combine two rules: sensitive by either, with the greater need."""
        return Verdict(
            self.sensitive | other.sensitive,
            np.maximum(self.lower, other.lower),
            np.maximum(self.upper, other.upper),
        )


@dataclasses.dataclass(frozen=True)
class Rule(Member):
    """Says which cells of a table are sensitive, and their protection levels."""

    #: Whether two safe cells of different contributors are safe together (Cox 1981).
    subadditive: ClassVar[bool] = True

    @abc.abstractmethod
    def judge(self, table: Table) -> Verdict:
        """Return the verdict on every cell."""

    def completed(self, table: Table) -> Table:
        """Return the table with the empty cells that the rule judges, where it judges such."""
        return table

    def needs_count(self, table: Table) -> npt.NDArray[np.int64]:
        """Return the number of contributors of each cell, or say that the table lacks it."""
        if table.count is None:
            raise InputError(
                f"the rule {self.name} needs the number of contributors, which the table lacks",
                code="table-without-count",
                hint="give the column of frequencies as count=",
            )
        return table.count

    def needs_contributions(self, table: Table, n: int) -> Floats:
        """Return the size of the n largest contributions of each cell, or say that they are missing.

        Negative contributions count with their size, as what they hide is as large.
        """
        found = 0 if table.contributions is None else table.contributions.shape[1]
        if table.contributions is None or found < n:
            raise InputError(
                f"the rule {self.name} needs the {n} largest contributions, the table has {found}",
                code="table-without-contributions",
                hint="give their columns as contributions=[…], largest first, or tabulate records",
            )
        return np.asarray(np.abs(table.contributions[:, :n]))


def magnitude(table: Table) -> Floats:
    """Return what the contributors of each cell add up to in size.

    Where contributions are negative the value understates it; the table then carries the sum of
    the absolute contributions, or else at least the largest ones are known.
    """
    if table.magnitude is not None:
        return table.magnitude
    size = np.abs(table.value)
    if table.contributions is None or not (table.contributions < 0).any():
        return np.asarray(size)
    return np.asarray(np.maximum(size, np.abs(table.contributions).sum(axis=1)))


def verdict(sensitive: Bools, lower: Floats, upper: Floats) -> Verdict:
    """Return a verdict with levels of zero where a cell is not sensitive."""
    return Verdict(sensitive, np.where(sensitive, lower, 0.0), np.where(sensitive, upper, 0.0))
