"""The job `describe`: what a file holds and how exposed its people are."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, ClassVar

from discreet.data.engines.driver import Fetched, Outflow
from discreet.data.job import ReportJob
from discreet.progress import Progress
from discreet.registry import parameter

if TYPE_CHECKING:
    from discreet.data.dataset import Dataset
    from discreet.data.describe import Description
    from discreet.randomness import Randomness

__all__ = ["DescribeJob"]


@dataclasses.dataclass(frozen=True)
class DescribeJob(ReportJob):
    """Print what each column is, a suggested role and why, and how many records are unique.

    Nothing is decided and nothing is written unless asked for.

    Examples
    --------
    >>> import pandas as pd
    >>> DescribeJob().run(pd.DataFrame({"age": [20, 30]})).rows()[1][0][0]
    'age'
    """

    name: ClassVar[str] = "describe"
    command: ClassVar[str] = "describe"
    example: ClassVar[str] = "discreet describe people.csv"

    approximate: bool = parameter(
        False, help="estimate how many values differ by sketches: quicker on many records"
    )

    def fetches(self, data: Dataset) -> Outflow:
        """Return the counts: a row for all columns, and at most one more for each."""
        width = 200 * len(data.columns)  # a dozen numbers for each column
        return Outflow((Fetched("aggregates", 1 + len(data.columns), width, at_most=True),))

    def perform(self, data: Dataset, *, rng: Randomness | None, progress: Progress) -> Description:
        """Look at every column."""
        from discreet.data.describe import describe

        return describe(data, approximate=self.approximate)
