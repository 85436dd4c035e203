"""The job `strengthen`: methods of growing strength until the risk is low enough."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, ClassVar

from discreet.data.job import Job
from discreet.microdata.masking import Masking
from discreet.progress import Progress, silent
from discreet.registry import parameter

if TYPE_CHECKING:
    from discreet.data.dataset import Dataset
    from discreet.microdata.release import MicrodataRelease

__all__ = ["Strengthen"]


@dataclasses.dataclass(frozen=True)
class Strengthen(Job):
    """Release the least lossy masking whose measured risk is below a limit.

    Examples
    --------
    >>> import pandas as pd
    >>> import discreet as dc
    >>> people = dc.read(pd.DataFrame({"age": range(40)}), roles={"age": "quasi"})
    >>> job = Strengthen((dc.Microaggregation("age", k=2),), 0.3, measure="re-identification")
    >>> job.run(people).methods[0].k
    4
    """

    name: ClassVar[str] = "strengthen"

    methods: tuple[Masking, ...] = parameter(help="alternatives, weakest parameters first")
    below: float = parameter(0.05, help="risk to be undercut", above=0, high=1)
    measure: str | None = parameter(
        None, help="risk measure; the share of people linked if left out"
    )
    format: str | None = parameter(
        None, help="format of the file", choices=("csv", "parquet", "arrow")
    )

    def check(self, dataset: Dataset) -> None:
        """Check every method against the columns."""
        for method in self.methods:
            method.require(dataset)

    def run(self, dataset: Dataset, *, progress: Progress = silent) -> MicrodataRelease:
        """Search, and return the release."""
        from discreet.microdata.assessment import RiskBelow
        from discreet.microdata.strengthening import strengthen

        until = RiskBelow(self.below, self.measure)
        release = strengthen(dataset, self.methods, until=until, progress=progress)
        return dataclasses.replace(release, format=self.format)
