"""Tables that can be protected: made from records, or given cell by cell."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, overload

from discreet.audit.rules import Rule
from discreet.data import table as cells
from discreet.data.dataset import Dataset
from discreet.errors import InputError
from discreet.progress import Progress, silent
from discreet.randomness import Randomness
from discreet.tables import tabulation
from discreet.tables.large import LargeRelease, LargeTabulation, large_by_size, tabulate_large
from discreet.tables.methods import TableMethod
from discreet.tables.methods.top_down import TopDown
from discreet.tables.protection import protect
from discreet.tables.release import TableRelease
from discreet.tables.tabulation import Statistic, number_alike, tabulated

if TYPE_CHECKING:
    from discreet.ledger.store import Ledger

__all__ = ["Table", "Tabulation", "tabulate"]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Table(cells.Table):
    """Cells of a statistical table and the equations between them.

    Examples
    --------
    >>> import discreet as dc
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"sector": ["Total", "IT", "Fin"], "value": [16, 7, 9]})
    >>> table = Table.from_cells(frame, ["sector"], "value", count="value", statistic="count")
    >>> table.protect(rules=[dc.MinimumFrequency(8)], method=dc.ControlledRounding(5)).cells.shape
    (3, 4)
    """

    @overload
    def protect(  # type: ignore[overload-overlap]  # one method may take the large way
        self,
        rules: Sequence[Rule] = ...,
        *,
        method: TopDown,
        rng: Randomness | None = ...,
        unsafe: bool = ...,
        ledger: str | Path | Ledger | None = ...,
        snapshot: str | None = ...,
        like: str | int | None = ...,
        patience: float = ...,
        progress: Progress = ...,
    ) -> TableRelease | LargeRelease: ...

    @overload
    def protect(
        self,
        rules: Sequence[Rule] = ...,
        method: TableMethod | None = ...,
        *,
        rng: Randomness | None = ...,
        unsafe: bool = ...,
        ledger: str | Path | Ledger | None = ...,
        snapshot: str | None = ...,
        like: str | int | None = ...,
        patience: float = ...,
        progress: Progress = ...,
    ) -> TableRelease: ...

    def protect(
        self,
        rules: Sequence[Rule] = (),
        method: TableMethod | None = None,
        *,
        rng: Randomness | None = None,
        unsafe: bool = False,
        ledger: str | Path | Ledger | None = None,
        snapshot: str | None = None,
        like: str | int | None = None,
        patience: float = 10.0,
        progress: Progress = silent,
    ) -> TableRelease | LargeRelease:
        """Mark the sensitive cells, protect them and return the release: see `discreet.protect`.

        A consistent table (top-down) with too many combinations of codes takes the large way.
        """
        if method is not None and (large := large_by_size(self, method)) is not None:
            return large.protect(
                method=method, rng=rng, ledger=ledger, snapshot=snapshot, progress=progress
            )
        return protect(
            self, rules, method, rng=rng, unsafe=unsafe, ledger=ledger, snapshot=snapshot, like=like,
            patience=patience, progress=progress,
        )  # fmt: skip


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Tabulation(Table, tabulation.Tabulation):
    """A table that can be protected and remembers the records it was made from."""


@overload
def tabulate(  # type: ignore[overload-overlap]  # a text is a sequence of texts, too
    data: Dataset,
    by: Sequence[str],
    measure: str | None = ...,
    statistic: Statistic = ...,
    *,
    unit: str | None = ...,
    weight: str | None = ...,
    largest: int = ...,
    request: str | None = ...,
    total: str = ...,
    missing: str | None = ...,
) -> Tabulation: ...


@overload
def tabulate(
    data: Dataset,
    by: Sequence[str],
    *,
    unit: str | None = ...,
    weight: str | None = ...,
    missing: str | None = ...,
    large: Literal[True],
) -> LargeTabulation: ...


@overload
def tabulate(
    data: Dataset,
    by: Sequence[Sequence[str]],
    measure: str | None = ...,
    statistic: Statistic = ...,
    *,
    unit: str | None = ...,
    weight: str | None = ...,
    largest: int = ...,
    request: str | None = ...,
    total: str = ...,
    missing: str | None = ...,
) -> tuple[Tabulation, ...]: ...


def tabulate(
    data: Dataset,
    by: Sequence[str] | Sequence[Sequence[str]],
    measure: str | None = None,
    statistic: Statistic = "sum",
    *,
    unit: str | None = None,
    weight: str | None = None,
    largest: int = 2,
    request: str | None = None,
    total: str = "Total",
    missing: str | None = None,
    large: bool = False,
) -> Tabulation | LargeTabulation | tuple[Tabulation, ...]:
    """Cross attributes of a dataset into a table of counts, sums or means.

    Parameters
    ----------
    data
        Records with a schema: hierarchies of attributes, the unit and the weight come from it.
    by
        The attributes; or several lists of them, for several tables at once.
    measure
        The column added up; without one records are counted.
    statistic
        "sum", or "mean", which is protected through its sum and its number of records.
    unit
        The column that says whom a record belongs to (a holding, a person with several records).
    weight
        The column of sampling weights: sums are weighted, contributors count as they are.
    largest
        How many of the largest contributions are kept for the rules.
    request
        A column that is true for those who asked for protection, for the request rule.
    total, missing
        The code of totals of attributes without a hierarchy, and the one for missing values.
    large
        Whether there are too many cells for one table in memory: records are then counted when
        the table is protected, by the method top-down alone, and cells are written in blocks.

    Examples
    --------
    >>> import pandas as pd
    >>> from discreet.data.dataset import read
    >>> people = read(pd.DataFrame({"sector": ["IT", "IT", "Fin"], "salary": [10.0, 20.0, 30.0]}))
    >>> table = tabulate(people, by=["sector"], measure="salary")
    >>> table.to_frame()[["sector", "value", "count", "max1"]].values.tolist()
    [['Total', 60.0, 3, 30.0], ['Fin', 30.0, 1, 30.0], ['IT', 30.0, 2, 20.0]]
    """
    if isinstance(by, str):
        by = [by]
    is_one = not by or isinstance(by[0], str)
    if large:
        if not is_one or measure is not None or request is not None:
            raise InputError(
                "a large table counts the records of one list of attributes",
                code="large-table",
                hint="leave out measure and request, and give one list by=[…]",
                parameter="large",
            )
        names = [str(name) for name in by]
        return tabulate_large(data, names, unit=unit, weight=weight, missing=missing)
    made = [
        tabulated(
            data,
            [str(name) for name in names],
            measure,
            statistic,
            unit=unit,
            weight=weight,
            largest=largest,
            request=request,
            total=total,
            missing=missing,
        )
        for names in ([by] if is_one else by)
    ]
    alike = number_alike(made) if len(made) > 1 else made
    tables = tuple(_protectable(table) for table in alike)
    return tables[0] if is_one else tables


def _protectable(table: tabulation.Tabulation) -> Tabulation:
    """Return the same table as one that can be protected."""
    fields = {field.name: getattr(table, field.name) for field in dataclasses.fields(table)}
    return Tabulation(**fields)
