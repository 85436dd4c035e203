"""The job `evaluate`: what guards cost and leave open, over the same questions."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, ClassVar

from discreet.data.job import ReportJob
from discreet.errors import InputError
from discreet.progress import Progress
from discreet.queries.guards import Guard
from discreet.registry import parameter

if TYPE_CHECKING:
    from discreet.data.dataset import Dataset
    from discreet.queries.evaluation import Comparison
    from discreet.randomness import Randomness

__all__ = ["EvaluateJob"]


@dataclasses.dataclass(frozen=True)
class EvaluateJob(ReportJob):
    """Compare guards over the same questions: refusals, widths, noise against theory, time, risk.

    Every guard starts from an empty ledger in memory; nothing is charged. For the curator.

    Examples
    --------
    >>> import discreet as dc
    >>> EvaluateJob((dc.Restriction(k=5),)).questions
    200
    """

    name: ClassVar[str] = "evaluate"
    command: ClassVar[str] = "evaluate"
    example: ClassVar[str] = "discreet evaluate people.csv --guard 'restriction k=5'"

    guards: tuple[Guard, ...] = parameter(help="guards to compare", option="--guard")
    recorded: str | None = parameter(
        None, help="an exported ledger whose questions are asked again", file="read"
    )
    questions: int = parameter(200, help="how many questions to generate without one", low=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.guards:
            raise InputError(
                "evaluate: no guard is given",
                code="missing-guard",
                hint="name one, such as restriction: {k: 5}",
                parameter="guards",
            )

    def perform(self, data: Dataset, *, rng: Randomness | None, progress: Progress) -> Comparison:
        """Put the questions to every guard."""
        from discreet.queries import evaluation
        from discreet.randomness import Randomness

        asked = (
            evaluation.generated(data, self.questions, rng=rng or Randomness.secure())
            if self.recorded is None
            else evaluation.recorded(self.recorded)
        )
        guards = {_named(guard, number): guard for number, guard in enumerate(self.guards, 1)}
        return evaluation.evaluate(data, guards, asked, progress=progress)


def _named(guard: Guard, number: int) -> str:
    return f"{number}: {guard.name}"
