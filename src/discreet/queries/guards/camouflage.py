"""Camouflage: intervals that are always right, however many questions are asked."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

from discreet.queries.guards._base import Keeper, Protected
from discreet.queries.guards._interval_settings import IntervalSettings

__all__ = ["Camouflage"]


@dataclasses.dataclass(frozen=True)
class Camouflage(IntervalSettings):
    """Answer with intervals that hold the truth and never narrow a record below its bound.

    A record's value is told only as a cell of a fixed grid, at least `bound` times the value wide,
    and sums only as slots that leave every value of every cell possible. An answer is the range of
    the statistic over all data that agree with cells and slots, or a range around it. So all those
    data give the same answers, whatever is asked, however it is weighted and however often: what
    is known of a record from all answers together is its cell.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.demo import salaries
    >>> with dc.Gateway(salaries(), guard=Camouflage(bound=0.3)) as gate:
    ...     answer = gate.ask("SELECT AVG(salary) FROM people WHERE sector = 'HC'", user="ana")
    >>> answer.kind, list(answer.frame.columns)
    ('interval', ['avg_lower', 'avg_upper'])
    >>> low, high = answer.value()
    >>> low <= 482_000 / 6 <= high
    True
    """

    name: ClassVar[str] = "camouflage"
    reference: ClassVar[str] = (
        "Gopal, Garfinkel and Goes (2002), Confidentiality via camouflage: "
        "the CVC approach to disclosure limitation when answering queries to databases"
    )
    answers: ClassVar[str] = "interval"

    def open(self, data: Protected, ledger: Any = None) -> Keeper:
        """Return the guard at work: cells beside the records, in the engine."""
        from discreet.queries.guards._intervals import IntervalKeeper

        return IntervalKeeper(self, data, ledger)
