"""What jobs on tables read: records to be crossed, or ready-made cells."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from discreet.data.dataset import Dataset
from discreet.data.engines.driver import Fetched, Outflow
from discreet.data.job import Job
from discreet.data.source import Source
from discreet.data.table import Table
from discreet.errors import InputError
from discreet.registry import parameter
from discreet.tables.table import tabulate
from discreet.tables.tabulation import require_attributes, require_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Tables", "TablesJob"]

#: What is opened: records, or tables that were made elsewhere.
Tables = Dataset | tuple[Table, ...]
#: What columns of ready-made cells may be.
_CELL_COLUMNS = ("count", "primary", "status", "lower", "upper", "cost", "contributions")


@dataclasses.dataclass(frozen=True)
class TablesJob(Job):
    """A demand on one table or several linked ones, crossed from records or ready-made."""

    by: tuple[str, ...] | tuple[tuple[str, ...], ...] = parameter(
        (), help="attributes that are crossed, with commas; several lists are linked tables"
    )
    tables: tuple[tuple[str, ...], ...] = parameter(
        (), help="attributes of several linked tables, in place of by"
    )
    measure: str | None = parameter(None, help="column that is added up; without one, counts")
    statistic: Literal["sum", "mean"] = parameter("sum", help="sum or mean of the measure")
    unit: str | None = parameter(None, help="column that says whom a record belongs to")
    weight: str | None = parameter(None, help="column of sampling weights")
    request: str | None = parameter(
        None, help="column that is true for those who asked for protection"
    )
    missing: str | None = parameter(None, help="code that stands for missing values")
    value: str | None = parameter(None, help="ready-made cells: the column of values")
    columns: Mapping[str, str | tuple[str, ...]] = parameter(
        {},
        help="ready-made cells: ROLE=COLUMN for count, primary, status, lower, upper, cost, "
        "contributions (with commas)",
        option="--column",
    )
    argus: str | None = parameter(
        None, help="the file is a tau-Argus tabular file and this its .rda metadata", file="read"
    )
    apriori: str | None = parameter(
        None,
        help="a tau-Argus a-priori file (.hst): statuses, costs and protection levels of cells",
        file="read",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.argus is None:
            if self.by and self.tables:
                raise InputError(
                    f"{self.name}: by and tables say the same; give one of them",
                    code="by-and-tables",
                    hint="by: [sector, region], or several lists for linked tables",
                    parameter="tables",
                )
            require_attributes(self.crossed)
        unknown = [role for role in self.columns if role not in _CELL_COLUMNS]
        if unknown:
            raise InputError(
                f"{unknown[0]!r} does not say what a column is",
                code="malformed-column",
                hint="write role=column, where role is one of " + ", ".join(_CELL_COLUMNS),
                parameter="columns",
            )

    @property
    def crossed(self) -> tuple[tuple[str, ...], ...]:
        """The attributes of each table."""
        given = self.tables or self.by
        if given and isinstance(given[0], str):
            return (tuple(map(str, given)),)
        return tuple(tuple(names) for names in given)

    @property
    def is_ready_made(self) -> bool:
        """Whether cells are read, not records."""
        return self.value is not None or self.argus is not None

    @property
    def shares_records(self) -> bool:
        """Whether it reads records; ready-made cells are its own."""
        return not self.is_ready_made

    def open(self, data: Source | Any) -> Tables:
        """Return the records, or the ready-made tables of a file. Any: what `read` takes."""
        if not self.is_ready_made:
            opened: Dataset = super().open(data)
            return opened
        if isinstance(data, tuple):
            return data
        if isinstance(data, Source):
            if self.argus is not None:
                return (Table.from_argus(data.source, self.argus, value=self.value),)
            names = {name for by in self.crossed for name in by}
            data = data.open(types=dict.fromkeys(names, "nominal"))
        return tuple(self._ready_made(data, by) for by in self.crossed)

    def _ready_made(self, cells: Any, by: tuple[str, ...]) -> Table:
        # Any: a dataset or a frame of any library.
        assert self.value is not None
        is_dataset = isinstance(cells, Dataset)
        trees = {name: cells.schema.hierarchies(name) for name in by} if is_dataset else {}
        roles: dict[str, Any] = {
            role: list(_listed(column)) if role == "contributions" else column
            for role, column in self.columns.items()
        }
        return Table.from_cells(
            cells.arrow() if is_dataset else cells,
            list(by),
            self.value,
            hierarchies={name: several for name, several in trees.items() if several},
            **roles,
        )

    def check(self, data: Tables) -> None:
        """Raise an InputError if a column is missing or of the wrong kind."""
        if isinstance(data, Dataset):
            for by in self.crossed:
                columns = (self.unit, self.weight, self.request)
                require_columns(data, by, self.measure, self.statistic, columns)

    def fetches(self, data: Tables) -> Outflow:
        """Return the cells of single values of each table."""
        if not isinstance(data, Dataset):
            return Outflow()
        found = [data.engine.combinations(data.relation, names) for names in self.crossed]
        sizes = [
            data.engine.room_needed(data.relation, names, rows=rows)
            for names, rows in zip(self.crossed, found, strict=True)
        ]
        rows = sum(rows for rows, _ in sizes)
        # Besides the codes of a cell: counts, sums and the largest contributions.
        return Outflow((Fetched("cells", rows, sum(size for _, size in sizes) + 80 * rows),))

    def rehearse(self, data: Tables) -> None:
        """Make the tables, which shows every mistake in columns, hierarchies and weights."""
        super().rehearse(data)
        self.with_apriori(self.made(data))

    def made(self, data: Tables) -> tuple[Table, ...]:
        """Return the tables, crossing records where they are not ready-made."""
        if not isinstance(data, Dataset):
            return data
        return tabulate(
            data,
            self.crossed,
            self.measure,
            self.statistic,
            unit=self.unit,
            weight=self.weight,
            request=self.request,
            missing=self.missing,
        )

    def with_apriori(self, tables: Sequence[Table]) -> tuple[tuple[Table, ...], tuple[str, ...]]:
        """Return tables as an a-priori file changes them, and the cells that must stay published."""
        from discreet.data.apriori import read_apriori

        if self.apriori is None:
            return tuple(tables), ()
        if len(tables) > 1:
            raise InputError(
                "an a-priori file speaks of the cells of one table",
                code="apriori-tables",
                hint="cross one list of attributes",
                parameter="apriori",
            )
        given = read_apriori(Path(self.apriori), tables[0])
        return (given.table,), tuple("/".join(codes) for codes in given.never)


def _listed(given: str | tuple[str, ...]) -> tuple[str, ...]:
    return tuple(given.split(",")) if isinstance(given, str) else given
