"""A table, or several linked ones, as a policy declares it."""

from __future__ import annotations

import dataclasses
from typing import ClassVar, Literal

from discreet.audit.rules import Rule
from discreet.data.dataset import Dataset
from discreet.data.job import Job
from discreet.data.release import Release
from discreet.errors import InputError
from discreet.progress import Progress, silent
from discreet.registry import parameter
from discreet.tables.methods import TableMethod
from discreet.tables.protection import protect
from discreet.tables.tabulation import require_columns, tabulate

__all__ = ["TableJob"]


@dataclasses.dataclass(frozen=True)
class TableJob(Job):
    """Tabulates records, protects the table by rules and a method, and releases it.

    Examples
    --------
    >>> from discreet.audit.rules.minimum_frequency import MinimumFrequency
    >>> TableJob(by=("sector", "region"), rules=(MinimumFrequency(3),)).by
    ('sector', 'region')
    """

    name: ClassVar[str] = "table"
    reference: ClassVar[str] = "Hundepool et al. (2012), Statistical Disclosure Control"

    by: tuple[str, ...] = parameter((), help="attributes that are crossed")
    tables: tuple[tuple[str, ...], ...] = parameter(
        (), help="attributes of several linked tables, in place of by"
    )
    measure: str | None = parameter(None, help="column that is added up; without one, counts")
    statistic: Literal["sum", "mean"] = parameter("sum", help="sum or mean of the measure")
    rules: tuple[Rule, ...] = parameter((), help="what is sensitive")
    method: TableMethod | None = parameter(None, help="how it is protected; suppression by default")
    unit: str | None = parameter(None, help="column that says whom a record belongs to")
    weight: str | None = parameter(None, help="column of sampling weights")
    request: str | None = parameter(None, help="column that is true for those who asked")
    missing: str | None = parameter(None, help="code that stands for missing values")

    def __post_init__(self) -> None:
        super().__post_init__()
        if bool(self.by) == bool(self.tables):
            raise InputError(
                "table: give either by (one table) or tables (several linked ones)",
                code="no-attributes",
                parameter="by",
            )
        if not self.rules and (self.method is None or self.method.needs_rules):
            raise InputError(
                "table: without a rule nothing is sensitive and nothing would be protected",
                code="no-rules",
                hint="name a rule, such as minimum-frequency: 3",
                parameter="rules",
            )

    def check(self, dataset: Dataset) -> None:
        """Raise an InputError if a column is missing or of the wrong kind."""
        for by in self.tables or (self.by,):
            columns = (self.unit, self.weight, self.request)
            require_columns(dataset, by, self.measure, self.statistic, columns)

    def run(self, dataset: Dataset, *, progress: Progress = silent) -> Release:
        """Tabulate, protect and audit."""
        tables = tabulate(
            dataset,
            self.tables or (self.by,),
            self.measure,
            self.statistic,
            unit=self.unit,
            weight=self.weight,
            request=self.request,
            missing=self.missing,
        )
        target = tables if self.tables else tables[0]
        return protect(target, self.rules, self.method, progress=progress)
