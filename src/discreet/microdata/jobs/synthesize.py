"""The job `synthesize`: records drawn from a model of the file."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from discreet.microdata.jobs._records import RecordsJob
from discreet.microdata.synthesizers import Synthesizer
from discreet.progress import Progress
from discreet.registry import parameter

if TYPE_CHECKING:
    from discreet.data.dataset import Dataset
    from discreet.microdata.synthetic_release import SyntheticRelease
    from discreet.randomness import Randomness

__all__ = ["Synthesize"]


@dataclasses.dataclass(frozen=True)
class Synthesize(RecordsJob):
    """Draw synthetic records from a model of the file and release them.

    Examples
    --------
    >>> import pandas as pd
    >>> import discreet as dc
    >>> people = dc.read(pd.DataFrame({"age": [20, 30] * 9}), roles={"age": "quasi"})
    >>> len(Synthesize(dc.CART(), records=5).run(people).frame)
    5
    """

    name: ClassVar[str] = "synthesize"
    command: ClassVar[str] = "microdata synthesize"
    output: ClassVar[str] = "out/synthetic"
    example: ClassVar[str] = (
        "discreet microdata synthesize people.csv --method 'cart min_leaf=50' --role name=identifier "
        "--rest quasi -o out"
    )

    method: Synthesizer = parameter(
        help="the synthesizer: 'NAME parameter=value …', such as 'cart min_leaf=50' or "
        "'aim epsilon=1 delta=1e-9'",
        option="--method/-m",
    )
    sets: int | None = parameter(None, help="how many files", low=1, high=1000)
    records: int | None = parameter(None, help="how many records each file has", low=1)
    report_budget: float | None = parameter(
        None, help="further epsilon that buys a private measure of the loss for the report", above=0
    )

    def check(self, data: Dataset) -> None:
        """Check the method against the columns."""
        from discreet.microdata.synthesis import require_synthesis

        require_synthesis(data, self.method)

    def charges(self, data: Dataset) -> Mapping[str, int]:
        """Return the events of the method, and of the report that is bought with it."""
        from discreet.microdata.bought import with_report

        spent = self.method.budget()
        if spent is not None and self.report_budget is not None:
            spent, _ = with_report(spent, self.report_budget)
        return {} if spent is None else spent.events

    def perform(
        self, data: Dataset, *, rng: Randomness | None, progress: Progress
    ) -> SyntheticRelease:
        """Draw the records."""
        from discreet.microdata.synthesis import synthesize

        release = synthesize(
            data,
            self.method,
            m=self.sets,
            n=self.records,
            report_budget=self.report_budget,
            rng=rng,
            progress=progress,
            **self.memory,
        )
        return dataclasses.replace(release, format=self.format)
