"""The job `risk`: what intruders could do with a file."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from discreet.data.job import ReportJob, Shown
from discreet.progress import Progress
from discreet.registry import parameter

if TYPE_CHECKING:
    from discreet.data.dataset import Dataset
    from discreet.microdata.assessment import RiskReport
    from discreet.randomness import Randomness

__all__ = ["RiskJob"]


@dataclasses.dataclass(frozen=True)
class RiskJob(ReportJob):
    """Measure what intruders could do with a file, each with its scenario.

    Examples
    --------
    >>> import pandas as pd
    >>> import discreet as dc
    >>> people = dc.read(pd.DataFrame({"age": [20, 20, 30]}), roles={"age": "quasi"})
    >>> RiskJob().run(people)["re-identification"].facts["sample uniques"]
    1
    """

    name: ClassVar[str] = "risk"
    command: ClassVar[str] = "microdata risk"

    released: str | None = parameter(
        None,
        help="the released file, records in the same order; the file itself if left out",
        option="RELEASED",
        file="read",
    )
    keys: tuple[str, ...] = parameter((), help="columns an intruder knows", option="--key")
    population: float | str | None = parameter(
        None,
        help="size of the population the file is a sample of, or a file of it",
        file="read",
    )

    def perform(self, data: Dataset, *, rng: Randomness | None, progress: Progress) -> RiskReport:
        """Measure every risk that applies."""
        from discreet.data.dataset import read
        from discreet.microdata.assessment import risk

        return risk(
            data,
            None if self.released is None else read(self.released),
            keys=self.keys or None,
            population=_population(self.population),
            rng=rng,
            progress=progress,
        )

    def shown(self, result: RiskReport) -> Iterator[Shown]:
        """Give the measures, and who the intruders are."""
        yield None, result
        yield "Intruders", result.scenarios()
        if result.skipped:
            yield "Not measured", result.not_measured()


def _population(given: float | str | None) -> float | str | None:
    """Return the size of a population, or the file that it is in."""
    try:
        return None if given is None else float(given)
    except ValueError:
        return given
