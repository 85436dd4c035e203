"""What an asker gets: the released rows and what they are; or why not, and what instead."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from discreet.report import Report, Rows, plain

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Answer", "Explanation", "ResultColumn"]


@dataclasses.dataclass(frozen=True)
class ResultColumn:
    """One column of an answer."""

    name: str
    #: bigint, double, text, date, timestamp or boolean.
    type: str
    #: key, exact, lower, upper or noisy.
    part: str


@dataclasses.dataclass(frozen=True)
class Answer(Report):
    """An answer: exact, an interval, noisy, or refused with the reason."""

    #: exact, interval, noisy, refused or explanation.
    kind: str
    #: The rows, in the type of frame that the data came in; None if refused. Intervals stand as
    #: `<column>_lower` and `<column>_upper`. Any: three libraries, none of them needed.
    frame: Any
    columns: tuple[ResultColumn, ...] = ()
    #: Why it was refused, in a sentence that discloses nothing; and what to ask instead.
    reason: str = ""
    hint: str = ""
    #: Stable name of the reason.
    code: str = ""
    #: What this answer cost and what is left of the asker's and the dataset's budgets.
    spent: dict[str, float] = dataclasses.field(default_factory=dict)
    left: dict[str, float] = dataclasses.field(default_factory=dict)
    #: Per column, the half-width that holds the error in 95 of 100 answers.
    error_95: dict[str, float] = dataclasses.field(default_factory=dict)
    #: Groups that exist but are not shown.
    withheld: int = 0
    #: The canonical question, the guard, and the number of the ledger's entry.
    question: str = ""
    guard: str = ""
    number: int | None = None
    #: Whether this is the recorded answer to a question asked before.
    repeated: bool = False
    #: Whether it was computed from the answers to several questions, or to one inside it.
    composed: bool = False
    #: How many aggregates of groups were computed for it, in all of its questions.
    aggregates: int = 0
    #: The rows as an Arrow table.
    table: pa.Table | None = dataclasses.field(default=None, repr=False)

    @property
    def refused(self) -> bool:
        """Whether there is no answer."""
        return self.kind == "refused"

    def value(self) -> Any:
        """Return the only value of a one-row, one-column answer; a pair for an interval.

        Any: whatever the column holds.
        """
        if self.table is None or self.table.num_rows != 1:
            raise ValueError("the answer is not a single value")
        row = [column[0].as_py() for column in self.table.columns]
        return row[0] if len(row) == 1 else tuple(row)

    def rows(self) -> Rows:
        """Return the released rows, or the reason."""
        if self.table is None:
            return ("", ""), [("refused", self.reason), ("instead", self.hint or None)]
        names = self.table.column_names
        return names, [tuple(row.values()) for row in self.table.to_pylist()]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data; the rows as a list of records."""
        rows = None if self.table is None else plain(self.table)
        return {**super().to_dict(), "frame": rows}

    def __str__(self) -> str:
        if self.refused:
            return f"refused: {self.reason}" + (f"; {self.hint}" if self.hint else "")
        facts = [self.kind]
        facts += [f"{name} ± {value:,.4g} (95 %)" for name, value in self.error_95.items()]
        facts += [f"{self.withheld} groups withheld"] if self.withheld else []
        facts += [f"spent {name} {value:.4g}" for name, value in self.spent.items()]
        facts += [f"left {name} {value:.4g}" for name, value in self.left.items()]
        return f"{super().__str__()}\n({'; '.join(facts)})"


@dataclasses.dataclass(frozen=True)
class Explanation(Report):
    """What an answer would be and cost, without asking for it."""

    guard: str
    #: exact, interval, noisy or refused.
    kind: str
    reason: str = ""
    #: A question close by that would not be refused.
    instead: str = ""
    cost: dict[str, float] = dataclasses.field(default_factory=dict)
    left: dict[str, float] = dataclasses.field(default_factory=dict)
    #: How many questions of this kind the budgets still hold; None without budgets.
    more: int | None = None
    error_95: dict[str, float] = dataclasses.field(default_factory=dict)
    #: Whether the answer is recorded already and free.
    repeated: bool = False
    question: str = ""

    def rows(self) -> Rows:
        """One line per fact."""
        facts: list[tuple[str, Any]] = [("guard", self.guard), ("answer", self.kind)]
        if self.reason:
            facts.append(("reason", self.reason))
        if self.instead:
            facts.append(("instead", self.instead))
        facts += [(f"cost {name}", value) for name, value in self.cost.items()]
        facts += [(f"left {name}", value) for name, value in self.left.items()]
        if self.more is not None:
            facts.append(("questions like this one left", self.more))
        facts += [(f"error (95 %) of {name}", value) for name, value in self.error_95.items()]
        if self.repeated:
            facts.append(("repeated", "yes: the recorded answer, at no cost"))
        return ("fact", "value"), facts
