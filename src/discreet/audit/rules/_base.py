"""What every sensitivity rule says: which cells are sensitive, and how much protection they need."""

from __future__ import annotations

import abc
import dataclasses
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from discreet.errors import InputError
from discreet.registry import Member

if TYPE_CHECKING:
    from discreet.data.table import Table

__all__ = ["Inequality", "LevelBound", "Rule", "Verdict", "holds"]

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
class Inequality:
    """A linear form of what is known of a cell, with whole coefficients: it holds below zero.

    Whole numbers have one answer whoever evaluates them: a curator on a table, or owners together
    on numbers that none of them sees.
    """

    constant: int = 0
    count: int = 0
    total: int = 0
    #: Coefficients of the largest contributions, the largest first.
    largest: tuple[int, ...] = ()
    #: Coefficient of the largest contribution among those who asked for protection.
    requested: int = 0

    @classmethod
    def scaled(
        cls, *, total: float = 0, largest: Sequence[float] = (), requested: float = 0
    ) -> Inequality:
        """Return the form with the smallest whole coefficients in the same proportion.

        >>> Inequality.scaled(total=100, largest=(-112.5, -100))
        Inequality(constant=0, count=0, total=8, largest=(-9, -8), requested=0)
        """
        exact = [Fraction(str(number)) for number in (total, requested, *largest)]
        factor = math.lcm(*(number.denominator for number in exact))
        whole = [int(number * factor) for number in exact]
        shared = math.gcd(*whole) or 1
        first, asked, *rest = (number // shared for number in whole)
        return cls(total=first, largest=tuple(rest), requested=asked)


@dataclasses.dataclass(frozen=True)
class LevelBound:
    """The greatest protection level of a rule, whatever the contributions: who judges unseen cells uses it."""

    #: Of the cell's total.
    share: Fraction = Fraction(0)
    #: And an amount besides.
    amount: float = 0.0
    #: How many contributors more or fewer must remain possible.
    contributors: int = 0

    def __or__(self, other: LevelBound) -> LevelBound:
        """Combine two rules: the greater of each."""
        return LevelBound(
            max(self.share, other.share),
            max(self.amount, other.amount),
            max(self.contributors, other.contributors),
        )


@dataclasses.dataclass(frozen=True)
class Rule(Member):
    """Says which cells of a table are sensitive, and their protection levels."""

    #: Whether two safe cells of different contributors are safe together (Cox 1981).
    subadditive: ClassVar[bool] = True

    @abc.abstractmethod
    def judge(self, table: Table) -> Verdict:
        """Return the verdict on every cell."""

    def inequalities(self) -> tuple[Inequality, ...]:
        """Return what makes a cell sensitive: all of these hold; none where no forms can say it."""
        return ()

    def level_bound(self) -> LevelBound:
        """Return the most that a level can be: of a form a T < b1 x1 + b2 x2 + …, (max b − a) T / a.

        >>> from discreet.audit.rules.p_percent import PPercent
        >>> PPercent(15).level_bound().share
        Fraction(3, 20)
        """
        found = LevelBound()
        for form in self.inequalities():
            if form.total > 0:
                most = max(map(abs, (*form.largest, form.requested)))
                found |= LevelBound(max(Fraction(most, form.total) - 1, Fraction(0)))
        return found

    def completed(self, table: Table) -> Table:
        """Return the table with the empty cells that the rule judges, where it judges such."""
        return table

    def judges_zeros(self, table: Table) -> bool:
        """Return whether zeros of such a table can be sensitive, also where it has none."""
        del table
        return False

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


def holds(rule: Rule, table: Table) -> Bools:
    """Return the cells of a table in which all inequalities of a rule hold."""
    forms = rule.inequalities()
    found = np.ones(len(table.value), dtype=np.bool_)
    for form in forms:
        terms = [np.full(len(found), float(form.constant))]
        if form.count:
            terms.append(form.count * rule.needs_count(table).astype(np.float64))
        if form.total:
            terms.append(form.total * magnitude(table))
        if form.largest:
            top = rule.needs_contributions(table, len(form.largest))
            terms += [one * top[:, place] for place, one in enumerate(form.largest)]
        if form.requested and table.requested is not None:
            terms.append(form.requested * np.abs(table.requested))
        # A hair of tolerance: 75 % of a sum of decimals is not to be decided by the last bit.
        hair = 1e-12 * np.sum(np.abs(terms), axis=0)
        found &= np.sum(terms, axis=0) < -hair
    return found


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
