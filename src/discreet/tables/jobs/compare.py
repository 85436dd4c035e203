"""The job `compare`: risk and loss of table methods side by side."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from discreet.audit.rules import Rule
from discreet.data.job import ReportJob, Shown
from discreet.progress import Progress
from discreet.registry import parameter
from discreet.report import Report, Rows
from discreet.tables.comparison import Comparison, compare
from discreet.tables.jobs._tables import Tables, TablesJob
from discreet.tables.methods import TableMethod

if TYPE_CHECKING:
    from discreet.randomness import Randomness

__all__ = ["CompareJob", "Comparisons"]


@dataclasses.dataclass(frozen=True)
class Comparisons(Report):
    """Methods compared on each of several tables."""

    tables: dict[str, Comparison]

    def rows(self) -> Rows:
        """Return one line per table and method."""
        lines = {table: found.rows() for table, found in self.tables.items()}
        header = next(iter(lines.values()))[0]
        return ("table", *header), [
            (table, *line) for table, (_, body) in lines.items() for line in body
        ]


@dataclasses.dataclass(frozen=True)
class CompareJob(TablesJob, ReportJob):
    """Show risk and loss of every method for a table side by side; for the curator.

    Examples
    --------
    >>> CompareJob(by=("sector",)).methods
    ()
    """

    name: ClassVar[str] = "compare"
    command: ClassVar[str] = "table compare"

    rules: tuple[Rule, ...] = parameter(
        (), help="what is sensitive: p-percent=10, minimum-frequency=3, …", option="--rule"
    )
    methods: tuple[TableMethod, ...] = parameter(
        (), help="methods to compare; all of them by default", option="--method"
    )

    def perform(
        self, data: Tables, *, rng: Randomness | None, progress: Progress
    ) -> Comparison | Comparisons:
        """Protect each table by each method."""
        tables, _ = self.with_apriori(self.made(data))
        methods = list(self.methods) or None
        found = {
            " × ".join(table.by): compare(table, self.rules, methods, rng=rng, progress=progress)
            for table in tables
        }
        return next(iter(found.values())) if len(found) == 1 else Comparisons(found)

    def shown(self, result: Comparison | Comparisons) -> Iterator[Shown]:
        """Give one list per table."""
        if isinstance(result, Comparison):
            yield None, result
        else:
            yield from result.tables.items()
