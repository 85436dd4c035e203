"""The job `explore`: methods and parameters as a map of risk against loss."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from discreet.data.job import ReportJob
from discreet.microdata.jobs._records import masking_methods
from discreet.microdata.masking import Masking
from discreet.microdata.synthesizers import Synthesizer
from discreet.progress import Progress
from discreet.registry import parameter

if TYPE_CHECKING:
    from discreet.data.dataset import Dataset
    from discreet.microdata.exploration import RiskUtilityMap
    from discreet.randomness import Randomness

__all__ = ["ExploreJob"]


@dataclasses.dataclass(frozen=True)
class ExploreJob(ReportJob):
    """Compare methods and parameters side by side as a map of risk against loss.

    On the command line a parameter may list values with |, as in 'microaggregation=age k=3|5|10'.

    Examples
    --------
    >>> import discreet as dc
    >>> len(ExploreJob(tuple(dc.Microaggregation("age", k=k) for k in (3, 5))).methods)
    2
    """

    name: ClassVar[str] = "explore"
    command: ClassVar[str] = "microdata explore"
    example: ClassVar[str] = (
        "discreet microdata explore people.csv -m 'microaggregation=age k=3|5|10'"
    )
    suffix: ClassVar[str] = ""
    note: ClassVar[str] = "wrote {output}/map.html"

    methods: tuple[Masking, ...] = masking_methods("candidates", spread=True, default=())
    synthesizers: tuple[Synthesizer, ...] = parameter(
        (),
        help="synthesizers beside them: 'cart min_leaf=5|50'; all candidates are then compared on "
        "half of the records, with the other half as people who are not in the file",
        option="--synthesizer/-s",
        spread=True,
    )

    def perform(
        self, data: Dataset, *, rng: Randomness | None, progress: Progress
    ) -> RiskUtilityMap:
        """Mask by each candidate and measure."""
        from discreet.microdata.exploration import frontier

        return frontier(data, [*self.methods, *self.synthesizers], rng=rng, progress=progress)

    def write(self, result: RiskUtilityMap, place: str | Path) -> None:
        """Write map and table into a folder."""
        result.write(place)
