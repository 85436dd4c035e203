"""What a guard is: settings that open a keeper, which holds the state and answers."""

from __future__ import annotations

import abc
import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from sqlglot import exp

from discreet.data.facts import Facts
from discreet.data.hierarchy import Hierarchy
from discreet.data.schema import Role
from discreet.data.sql.query import Catalog, Measure, Query, raw_query
from discreet.data.sql.total import whole
from discreet.errors import RefusedError
from discreet.ledger.entry import Charge, Entry
from discreet.registry import Member

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.engines.base import Engine, Relation

__all__ = [
    "Guard",
    "Keeper",
    "Proposal",
    "Protected",
    "Refusal",
    "addable",
    "aggregate",
    "whole_sum",
]


@dataclasses.dataclass(frozen=True)
class Protected:
    """The data a guard stands before: rows, what their columns are, and where they live."""

    name: str
    relation: Relation
    catalog: Catalog
    count: int
    #: Declared hierarchies of columns, for suggestions.
    hierarchies: Mapping[str, Sequence[Hierarchy]] = dataclasses.field(default_factory=dict)
    #: All guards that answer about these data; what one says, others' users may hear.
    guards: tuple[Guard, ...] = ()
    #: Columns that anybody may ask about, or was answered about; None means all.
    askable: frozenset[str] | None = None
    #: Which state of the data the ledger knows these records as; empty where it keeps none.
    snapshot: str = ""

    def is_askable(self, column: str) -> bool:
        """Whether somebody may name a column."""
        return self.askable is None or column in self.askable

    @property
    def engine(self) -> Engine:
        """Where the records live."""
        return self.relation.engine

    @property
    def confidential(self) -> frozenset[str]:
        """Columns whose values are protected."""
        return self.catalog.with_role(Role.CONFIDENTIAL)

    def fetch(self, query: Query, columns: Mapping[str, exp.Expression]) -> pa.Table:
        """Return aggregates per group of the question, computed where the data lives."""
        return self.engine.fetch(raw_query(query, self.relation.query, columns))


@dataclasses.dataclass(frozen=True)
class Refusal:
    """Why a question is not answered, and which one close by would be."""

    reason: str
    code: str
    hint: str = ""

    def error(self) -> RefusedError:
        """Return the refusal as an error to raise."""
        return RefusedError(self.reason, code=self.code, hint=self.hint or None)


@dataclasses.dataclass(frozen=True)
class Proposal:
    """An answer that has not left yet: the ledger must hold it first."""

    kind: str
    #: Columns `k0` … and `m0` … or `m0_lower`, `m0_upper` …
    rows: pa.Table
    #: The rows as the ledger keeps them, where that was done ahead.
    packed: bytes = b""
    charges: Sequence[Charge] = ()
    #: Recorded with the entry and shown with the answer.
    spent: Mapping[str, float] = dataclasses.field(default_factory=dict)
    #: Per measure `m0` …, the half-width of the 95 % error.
    error_95: Mapping[str, float] = dataclasses.field(default_factory=dict)
    withheld: int = 0


class Keeper(abc.ABC):
    """A guard at work on one dataset."""

    #: Whether answers depend on the history, so that they are decided one after another.
    serial: ClassVar[bool] = False
    #: What the curator should know of the data under this guard; for nobody else.
    notices: tuple[str, ...] = ()
    #: Columns that tell of each other, by the name that those which do go by.
    family: Mapping[str, str] = MappingProxyType({})

    def ready(self, query: Query) -> Any:
        """Do what does not depend on the history, before it is this question's turn.

        What it returns is given to `answer`. Any: whatever the keeper likes.
        """
        return None

    def charges(self, query: Query, user: str, ready: Any) -> tuple[Sequence[Charge], float]:
        """Return what must be charged before the engine is asked, and what that is in ε.

        Nothing, where the answer costs nothing or is computed without the engine: whether the
        engine fails on the data would otherwise be told free of charge. Any: as in `answer`.
        """
        return (), 0.0

    def attributes(self, query: Query) -> Sequence[str]:
        """Return what a decision depends on and changes: others may be decided meanwhile."""
        return ("",)

    @abc.abstractmethod
    def answer(self, query: Query, user: str, ready: Any = None) -> Proposal:
        """Return what would be answered; nothing leaves yet.

        Raises `RefusedError` only if it has taken nothing into the history. Any: what `ready` returned, for keepers that have something to get ready.
        """

    def prepare(self, query: Query) -> None:  # noqa: B027
        """Do ahead what the first of many questions like this one would wait for."""

    def replay(self, entry: Entry, query: Query, rows: pa.Table) -> None:  # noqa: B027
        """Take an answer given earlier, or by another process, into the history."""

    def remember(self, facts: Sequence[Facts]) -> None:  # noqa: B027
        """Take what a release told everybody into the history."""

    def forget(self) -> None:  # noqa: B027
        """Drop the state, because an answer it counts was not recorded; the ledger is replayed."""

    def expect(self, query: Query, user: str) -> dict[str, Any]:
        """Return what `answer` would cost and how exact it would be: fields of `Explanation`.

        Any: those fields differ in type.
        """
        return {}

    def left(self, user: str) -> dict[str, float]:
        """Return what is left of the budgets, if there are any."""
        return {}

    def budget(self, user: str) -> list[dict[str, Any]]:
        """Return each budget and how many counts it still holds; none without budgets.

        Any: names and numbers: scope, period, budget, spent, left, questions_left.
        """
        return []

    def close(self) -> None:  # noqa: B027
        """Let go of what was loaded."""


@dataclasses.dataclass(frozen=True)
class Guard(Member):
    """Settings of one way to answer."""

    #: What its answers are: exact, interval or noisy.
    answers: ClassVar[str] = "exact"
    #: Whether refusals depend on nothing but what is public and what was answered before.
    simulatable: ClassVar[bool] = True

    @property
    def digest(self) -> str:
        """SHA-256 of the settings: entries of the ledger carry it."""
        text = json.dumps(self.settings(), sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()

    @abc.abstractmethod
    def open(self, data: Protected, ledger: Any = None) -> Keeper:
        """Return the guard at work on a dataset.

        Any: the ledger, for guards that show balances.
        """


def aggregate(measure: Measure) -> exp.Expression:
    """Return the exact aggregate of a measure as a tree."""
    argument = None if measure.argument is None else measure.total()
    if measure.function == "count":
        return exp.Count(this=exp.Star() if argument is None else argument)
    if measure.function == "units":
        unit = exp.column(str(measure.column), quoted=True)
        return exp.Count(this=exp.Distinct(expressions=[unit]))
    simple: dict[str, type[exp.Expression]] = {
        "sum": exp.Sum,
        "avg": exp.Avg,
        "min": exp.Min,
        "max": exp.Max,
        "var_samp": exp.Variance,
        "var_pop": exp.VariancePop,
        "stddev_samp": exp.StddevSamp,
        "stddev_pop": exp.StddevPop,
    }
    if measure.function in simple:
        made = simple[measure.function](this=argument)
        # Expressions are computed as doubles; their sums are whole numbers again.
        is_made = measure.function == "sum" and measure.column is None
        return whole(made) if is_made and measure.kind == "integer" else made
    fraction = exp.Literal.number(repr(measure.fraction))
    ordered = exp.Order(expressions=[exp.Ordered(this=argument, nulls_first=False)])
    return exp.WithinGroup(this=exp.PercentileCont(this=fraction), expression=ordered)


#: The largest whole number of 64 bits.
_LAST = 2**63 - 1
#: Doubles up to this size can be added up over any number of rows.
_ADDED = "1e290"


def addable(argument: exp.Expression, engine: str) -> exp.Expression:
    """Return doubles whose sum cannot overflow, where the engine would fail on it.

    PostgreSQL reports an overflow; the others give infinity.
    """
    if engine != "postgres":
        return argument
    large = exp.cast(exp.Literal.number(_ADDED), "double")
    small = exp.Neg(this=large.copy())
    return exp.Case(
        ifs=[
            exp.If(this=exp.GT(this=argument.copy(), expression=large), true=large.copy()),
            exp.If(this=exp.LT(this=argument.copy(), expression=small), true=small.copy()),
        ],
        default=argument,
    )


def whole_sum(argument: exp.Expression, engine: str) -> exp.Expression:
    """Return a sum of whole numbers of 64 bits, cut to those bits instead of failing beyond them."""
    if engine == "spark":  # which adds up in the type of the column, and fails beyond it
        argument = exp.cast(argument, "decimal(38, 0)")
    added = exp.Sum(this=argument)
    last = exp.Literal.number(str(_LAST))
    cut = exp.Case(
        ifs=[
            exp.If(this=exp.GT(this=added.copy(), expression=last), true=last.copy()),
            exp.If(
                this=exp.LT(this=added.copy(), expression=exp.Neg(this=last.copy())),
                true=exp.Neg(this=last.copy()),
            ),
        ],
        default=added,
    )
    return exp.cast(cut, "bigint")
