"""The job `check`: whether a file keeps privacy models."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, ClassVar

from discreet.data.job import ReportJob
from discreet.microdata.jobs._models import privacy_models, require_models
from discreet.microdata.models import Model
from discreet.microdata.models._base import ModelCheck
from discreet.progress import Progress
from discreet.report import Report, Rows

if TYPE_CHECKING:
    from discreet.data.dataset import Dataset
    from discreet.randomness import Randomness

__all__ = ["CheckJob", "Checks"]


@dataclasses.dataclass(frozen=True)
class Checks(Report):
    """Each model and how far the file is from it."""

    checks: tuple[ModelCheck, ...]

    def rows(self) -> Rows:
        """Return one line per model."""
        return ("model", "promise", "holds", "reached", "records", "violating"), [
            (c.model, c.promise, c.holds, c.value, c.records, c.violating_records)
            for c in self.checks
        ]


@dataclasses.dataclass(frozen=True)
class CheckJob(ReportJob):
    """Check whether a file keeps privacy models, and how far it is from them.

    Examples
    --------
    >>> import pandas as pd
    >>> import discreet as dc
    >>> people = dc.read(pd.DataFrame({"age": [20, 20, 30]}), roles={"age": "quasi"})
    >>> CheckJob((dc.KAnonymity(2),)).run(people).checks[0].holds
    False
    """

    name: ClassVar[str] = "check"
    command: ClassVar[str] = "microdata check"

    models: tuple[Model, ...] = privacy_models()

    def __post_init__(self) -> None:
        super().__post_init__()
        require_models(self.models)

    def perform(self, data: Dataset, *, rng: Randomness | None, progress: Progress) -> Checks:
        """Check each model."""
        return Checks(tuple(model.check(data) for model in self.models))

    def data(self, result: Checks) -> Rows:
        """Return one record per model."""
        return result.rows()
