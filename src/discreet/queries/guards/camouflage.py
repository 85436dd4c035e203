"""Camouflage: intervals that are always right, however many questions are asked."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

from discreet.queries.guards._base import Guard, Keeper, Protected
from discreet.registry import parameter

__all__ = ["Camouflage"]


@dataclasses.dataclass(frozen=True)
class Camouflage(Guard):
    """Answer with intervals that hold the truth and never narrow a record below its bound.

    The confidential column is a hidden convex combination of a few vectors that nobody sees, each
    record's values among them spread by at least `bound` times its own value. An answer is the
    range of the statistic over the hull of the vectors (or a range around it), so every point of
    the hull stays possible whatever is asked, and no combination of answers can exclude one.

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

    bound: float = parameter(
        0.3, help="width of a record's interval, as a share of its value", above=0
    )
    per_record: str | None = parameter(
        None, help="column with the share that a respondent asked for, where larger"
    )
    vectors: int = parameter(3, help="number of hidden vectors", low=2, high=8)
    minimum: float | None = parameter(
        None,
        help="smallest width of any interval; a thirtieth of the mean value if left out",
        low=0,
    )

    def open(self, data: Protected, ledger: Any = None) -> Keeper:
        """Return the guard at work: hidden vectors beside the records, in the engine."""
        from discreet.queries.guards._hull import HullKeeper

        return HullKeeper(self, data, ledger)
