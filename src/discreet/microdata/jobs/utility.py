"""The job `utility`: what a released file lost."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, ClassVar

from discreet.data.job import ReportJob
from discreet.progress import Progress
from discreet.registry import parameter

if TYPE_CHECKING:
    from discreet.data.dataset import Dataset
    from discreet.microdata.comparison import UtilityReport
    from discreet.randomness import Randomness

__all__ = ["UtilityJob"]


@dataclasses.dataclass(frozen=True)
class UtilityJob(ReportJob):
    """Measure what a released file lost against the original.

    Examples
    --------
    >>> UtilityJob("released.csv").released
    'released.csv'
    """

    name: ClassVar[str] = "utility"
    command: ClassVar[str] = "microdata utility"

    released: str = parameter(
        help="the released file, records in the same order", option="RELEASED", file="read"
    )

    def perform(
        self, data: Dataset, *, rng: Randomness | None, progress: Progress
    ) -> UtilityReport:
        """Measure every loss that applies."""
        from discreet.data.dataset import read
        from discreet.microdata.comparison import utility

        return utility(data, read(self.released), rng=rng, progress=progress)
