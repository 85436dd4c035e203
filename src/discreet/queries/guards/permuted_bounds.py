"""Permuted bounds: answers from a permuted release, as bounds."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar

from sqlglot import exp

from discreet.data.sql.query import Measure, Query
from discreet.data.sql.total import total
from discreet.errors import InputError, RefusedError
from discreet.queries.guards._base import Guard, Keeper, Proposal, Protected, aggregate
from discreet.registry import parameter

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["PermutedBounds"]


@dataclasses.dataclass(frozen=True)
class PermutedBounds(Guard):
    """Answer with the bounds that a (k, e)-permuted release gives; the records are not touched.

    The release is an argument: anything with `ask(sql)` whose answer has the rows as an Arrow
    table, with `<name>_lower` and `<name>_upper`. Sums of expressions, such as weighted sums, are
    refused: the ends of two of them would tell an end of a single person's group.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.demo import salaries
    >>> release = dc.permute(salaries(), sensitive="salary", k=3, e=1_000)
    >>> with dc.Gateway(salaries(), guard=PermutedBounds(release)) as gate:
    ...     answer = gate.ask("SELECT SUM(salary) FROM people WHERE sector = 'HC'")
    >>> low, high = answer.value()
    >>> low <= 482_000 <= high
    True
    """

    name: ClassVar[str] = "permuted-bounds"
    reference: ClassVar[str] = (
        "Zhang, Koudas, Srivastava and Yu (2007), Aggregate query answering on anonymized tables"
    )
    answers: ClassVar[str] = "interval"

    #: Any: a release of another package, received as an argument.
    release: Any = parameter(help="a permuted release")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not callable(getattr(self.release, "ask", None)):
            raise InputError(
                "permuted-bounds: the release cannot be asked",
                code="parameter-type",
                parameter="release",
                hint="pass what permute(…) returns",
            )

    def settings(self) -> dict[str, Any]:
        """Return name and evidence: the release itself is data, not a setting."""
        evidence = getattr(self.release, "evidence", None)
        facts = evidence().settings if callable(evidence) else {}
        return {"name": self.name, "release": facts}

    def open(self, data: Protected, ledger: Any = None) -> Keeper:
        """Return the guard at work."""
        return _Keeper(self.release, data)


class _Keeper(Keeper):
    def __init__(self, release: Any, data: Protected) -> None:
        self._release, self._data = release, data

    def answer(self, query: Query, user: str, ready: Any = None) -> Proposal:
        from discreet.data.engines.meaning import meant

        # Conditions and keys as every other guard computes them, not as the release would.
        named = [exp.alias_(k.total(), f"k{n}") for n, k in enumerate(query.keys)]
        named += [exp.alias_(_asked(m), f"m{n}") for n, m in enumerate(query.measures)]
        select = exp.select(*named).from_(exp.to_identifier(query.relation, quoted=True))
        if query.predicate is not None:
            select = select.where(total(query.predicate))
        if query.keys:
            select = select.group_by(*(key.total() for key in query.keys))
        try:
            answer = self._release.ask(meant(select, "duckdb").sql(dialect="duckdb"))
        except InputError as error:  # such as a column that the release does not hold
            raise RefusedError(error.message, code=error.code, hint=error.hint) from None
        return Proposal("interval", _bounds(_arrow(answer)))


def _asked(measure: Measure) -> exp.Expression:
    """Return a measure in the form that releases read.

    Weighted sums are refused: the ends of two of them differ by an end of one person's group, which may be
    that person's value.
    """
    if measure.function == "quantile":
        fraction = exp.Literal.number(repr(measure.fraction))
        return exp.PercentileCont(this=measure.total(), expression=fraction)
    if measure.function == "sum" and measure.column is None and measure.argument is not None:
        raise RefusedError(
            "sums of expressions are not answered from a permuted release here",
            code="not-a-column",
            hint="ask for the sum of the column",
        )
    return aggregate(measure)


def _arrow(answer: Any) -> pa.Table:
    import pyarrow as pa

    header, body = answer.rows()
    return pa.table({name: [row[n] for row in body] for n, name in enumerate(header)})


def _bounds(rows: pa.Table) -> pa.Table:
    return rows.select([n for n in rows.column_names if not n.endswith("_estimate")])
