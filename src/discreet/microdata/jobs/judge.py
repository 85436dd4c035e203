"""The job `judge`: what a synthetic file keeps, and what intruders gain from it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from discreet.data.job import ReportJob, Shown
from discreet.progress import Progress
from discreet.registry import parameter

if TYPE_CHECKING:
    from discreet.data.dataset import Dataset
    from discreet.microdata.judgement import Judgement
    from discreet.randomness import Randomness

__all__ = ["JudgeJob"]


@dataclasses.dataclass(frozen=True)
class JudgeJob(ReportJob):
    """Judge a synthetic file of any tool: what it keeps, and what attacks gain.

    Examples
    --------
    >>> JudgeJob("people.csv").original
    'people.csv'
    """

    name: ClassVar[str] = "judge"
    command: ClassVar[str] = "microdata judge"
    example: ClassVar[str] = (
        "discreet microdata judge synthetic.csv --original people.csv --holdout others.csv"
    )

    original: str = parameter(help="the file it was made from", option="--original", file="read")
    holdout: str | None = parameter(
        None,
        help="records like the original ones that it was not made from; without them no attack is "
        "tried",
        file="read",
    )

    def perform(self, data: Dataset, *, rng: Randomness | None, progress: Progress) -> Judgement:
        """Measure utility, and risk where there is a holdout."""
        from discreet.data.dataset import read
        from discreet.microdata.judgement import judge

        other = None if self.holdout is None else read(self.holdout)
        return judge(data, read(self.original), other, rng=rng, progress=progress)

    def verdict(self, result: Judgement) -> str:
        """Return the judgement in words."""
        return result.verdict

    def shown(self, result: Judgement) -> Iterator[Shown]:
        """Give the measures and the verdict."""
        yield None, result
        yield None, result.verdict
