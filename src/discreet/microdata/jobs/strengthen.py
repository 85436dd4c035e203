"""The job `strengthen`: methods of growing strength until the risk is low enough."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, ClassVar

from discreet.microdata.jobs._records import RecordsJob, masking_methods, require_all
from discreet.microdata.masking import Masking
from discreet.progress import Progress
from discreet.registry import parameter

if TYPE_CHECKING:
    from discreet.data.dataset import Dataset
    from discreet.microdata.release import MicrodataRelease
    from discreet.randomness import Randomness

__all__ = ["Strengthen"]


@dataclasses.dataclass(frozen=True)
class Strengthen(RecordsJob):
    """Make methods stronger until the measured risk is low enough; release the least lossy.

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
    command: ClassVar[str] = "microdata strengthen"
    output: ClassVar[str] = "out/microdata"

    methods: tuple[Masking, ...] = masking_methods("alternatives, weakest parameters first")
    below: float = parameter(0.05, help="risk to be undercut", above=0, high=1)
    measure: str | None = parameter(
        None, help="risk measure; the share of people linked if left out"
    )

    def check(self, data: Dataset) -> None:
        """Check every method against the columns."""
        require_all(self.methods, data)

    def perform(
        self, data: Dataset, *, rng: Randomness | None, progress: Progress
    ) -> MicrodataRelease:
        """Search, and return the release."""
        from discreet.microdata.assessment import RiskBelow
        from discreet.microdata.strengthening import strengthen

        until = RiskBelow(self.below, self.measure)
        release = strengthen(data, self.methods, until=until, rng=rng, progress=progress)
        return dataclasses.replace(release, format=self.format)
