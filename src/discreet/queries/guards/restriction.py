"""Query restriction: exact answers, or a refusal that tells nothing."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

from discreet.queries.guards._base import Keeper, Protected
from discreet.queries.guards._exact_settings import ExactSettings

__all__ = ["Restriction"]


@dataclasses.dataclass(frozen=True)
class Restriction(ExactSettings):
    """Answer exactly, and refuse what would isolate fewer than k records with all earlier answers.

    The decision looks at query sets and at the history of everybody's answers, never at the value
    asked for, so a refusal tells nothing (Kenthapadi, Mishra and Nissim). With `mode="partition"`
    the records are put into cells of at least k by their public columns once, and exactly the
    unions of cells are answered.

    With `interval`, nobody who knows `bounds` can narrow a record's value below that width, from
    all answers together. Without bounds for a column everybody is taken to know that it is not
    negative, if it never is. As for withheld cells of a table, this needs values that are not at the
    ends of what everybody knows: each must lie at least `margin` (half the interval if left out)
    inside its bounds, which is checked once, when the gateway opens, and told to the curator only.
    A question is then refused if the query sets leave some record too little room to move, the
    others moving by no more than the margin. This also looks at query sets alone. Where values
    may lie at the ends, no rule that is blind to them can answer anything: the largest possible
    sum would give everybody's value away.

    Both count what linear combinations of answers tell. Who knows that amounts are multiples of a
    step may learn more where nearly as many sums were answered as there are records that public
    columns tell apart.

    A sum of zeros says that all of them are: counts, sums and means of a confidential column of
    texts or truths, and of numbers declared `categorical`, are refused, unless `tells="accepted"`.
    Numbers that are few, or that follow from public columns as a salary does from its grade, and are
    not declared keep the gateway from opening. Confidential columns that follow from each other
    (along a straight line or rising together, found when the gateway opens, or declared as
    `dependent`) are audited as one: a sum of any of them counts as a sum of all.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.demo import salaries
    >>> with dc.Gateway(salaries(), guard=Restriction(k=3)) as gate:
    ...     total = gate.ask("SELECT SUM(salary) FROM people", user="ana")
    ...     difference = gate.ask(
    ...         "SELECT SUM(salary) FROM people WHERE NOT (sector = 'Fin' AND region = 'TGN')",
    ...         user="bob",
    ...     )
    >>> total.kind, difference.kind
    ('exact', 'refused')
    """

    name: ClassVar[str] = "restriction"
    reference: ClassVar[str] = (
        "Kenthapadi, Mishra and Nissim (2005), Simulatable auditing; "
        "Chin and Ozsoyoglu (1982), Auditing and inference control in statistical databases"
    )
    answers: ClassVar[str] = "exact"

    def open(self, data: Protected, ledger: Any = None) -> Keeper:
        """Return the guard at work: an auditor per attribute, on profiles of the records."""
        from discreet.queries.guards._exact_answers import ExactAnswers

        return ExactAnswers(self, data, ledger)
