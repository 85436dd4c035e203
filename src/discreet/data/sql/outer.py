"""Statements that do more with answers than one question can: free SQL over released rows.

A statement is taken apart. Every SELECT that aggregates the protected relation becomes one or more
*questions*, which guards answer like any other; what is done with their answers (windows, shares,
sub-totals, joins of answers, UNION, DISTINCT, FILTER, ROLLUP) is an *outer* query over the released
rows. It sees nothing else, so it costs nothing and can tell nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from discreet.data.engines.sandbox import compute
from discreet.data.sql.allowed import require_allowed
from discreet.data.sql.intervals import sources_of, with_intervals
from discreet.data.sql.naming import written
from discreet.data.sql.query import Catalog, Query
from discreet.data.sql.scope import identifier_match
from discreet.data.sql.splitting import (
    NAME,
    Split,
    aggregates_of,
    distinctly,
    label_of,
    lists_values,
    parts_of,
)
from discreet.data.sql.typed import refuse
from discreet.errors import RefusedError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Statement", "composed", "taken_apart"]

#: Questions that one statement may ask.
MOST_QUESTIONS = 24


@dataclasses.dataclass(frozen=True, eq=False)
class Statement:
    """The questions of a statement, and what is done with their answers."""

    questions: tuple[Query, ...]
    #: Reads the answers as `released_0`, `released_1` …; None if the only answer is all.
    outer: exp.Query | None = None


#: Reads one SELECT over rows of the protected relation as a question.
Asked = Callable[[exp.Select], Query]


def taken_apart(tree: exp.Query, catalog: Catalog, asked: Asked) -> Statement:
    """Return the questions of a statement and the query over their answers."""
    parts = _Parts(catalog, asked)
    top = tree.copy()
    if isinstance(top, exp.Select) and parts.kind(top, {}) == "rows":
        return parts.of_rows(top)
    outer = _labelled(parts.replaced(top, {}))
    if not parts.questions:
        raise refuse("the statement has no FROM", "no-relation", f"add FROM {catalog.relation}")
    require_allowed(outer, frozenset(f"{NAME}{n}" for n in range(len(parts.questions))))
    return Statement(tuple(parts.questions), outer)


def composed(statement: Statement, tables: Sequence[pa.Table]) -> pa.Table:
    """Return what the outer query gives over the released rows."""
    assert statement.outer is not None
    named = {
        f"{NAME}{n}": _as_postgres(query, table)
        for n, (query, table) in enumerate(zip(statement.questions, tables, strict=True))
    }
    held = {name: set(table.column_names) for name, table in named.items()}
    return compute(_divided(with_intervals(statement.outer, held)), named)


def _as_postgres(query: Query, table: pa.Table) -> pa.Table:
    """Return an answer with the types that PostgreSQL computes with: sums are not integers."""
    import pyarrow as pa

    sums = {f"m{n}" for n, measure in enumerate(query.measures) if measure.function == "sum"}
    for output in query.outputs:
        if output.reference in sums and output.label in table.column_names:
            place = table.column_names.index(output.label)
            if pa.types.is_integer(table.schema.field(place).type):
                wide = table.column(place).cast(pa.decimal128(38, 0))
                table = table.set_column(place, output.label, wide)
    return table


def _divided(query: exp.Query) -> exp.Query:
    """Divide as PostgreSQL does: whole numbers give a whole number, and nothing by zero."""
    for node in reversed(list(query.find_all(exp.Div))):
        left, right = node.this.copy(), node.expression.copy()
        if isinstance(right.unnest(), exp.Literal) and not str(right.unnest().this).isdigit():
            continue
        whole = [
            exp.In(
                this=exp.Anonymous(this="typeof", expressions=[side.copy()]),
                expressions=[
                    exp.Literal.string(name) for name in ("BIGINT", "INTEGER", "SMALLINT")
                ],
            )
            for side in (left, right)
        ]
        by = exp.Nullif(this=right, expression=exp.Literal.number(0))
        quotient = exp.Div(this=exp.cast(exp.Paren(this=left), "double"), expression=by)
        node.replace(
            exp.Case(
                ifs=[
                    exp.If(
                        this=exp.And(this=whole[0], expression=whole[1]),
                        true=exp.Trunc(this=quotient.copy()),
                    )
                ],
                default=quotient,
            )
        )
    return query


# -- taking apart ----------------------------------------------------------------------------------
class _Parts:
    """Collects the questions of one statement."""

    def __init__(self, catalog: Catalog, asked: Asked) -> None:
        self._catalog, self._asked = catalog, asked
        self.questions: list[Query] = []

    def ask(self, select: exp.Select) -> int:
        """Add a question; the same one is asked once."""
        query = self._asked(select)
        labels = [output.label for output in query.outputs]
        for number, known in enumerate(self.questions):
            if known.question == query.question and labels == [o.label for o in known.outputs]:
                return number
        if len(self.questions) == MOST_QUESTIONS:
            raise refuse(
                f"the statement asks more than {MOST_QUESTIONS} questions",
                "too-complex",
                "use fewer groupings and filters at a time",
            )
        self.questions.append(query)
        return len(self.questions) - 1

    # -- what a query reads ----------------------------------------------------------------------
    def kind(self, query: exp.Expr, named: Mapping[str, str]) -> str:
        """Return "rows" for records of the relation, "released" for answers, "nothing" for neither."""
        if isinstance(query, exp.Subquery):
            return self.kind(query.this, named)
        if isinstance(query, exp.SetOperation):
            kinds = {self.kind(side, named) for side in (query.this, query.expression)}
            return "rows" if "rows" in kinds else "released"
        if not isinstance(query, exp.Select):
            return "released"
        named = {**named, **self._common(query, named)}
        sources = {self._source_kind(source, named) for source in sources_of(query)}
        if "rows" not in sources:
            return "released" if "released" in sources else "nothing"
        return "released" if _aggregates(query) else "rows"

    def _common(self, query: exp.Query, named: Mapping[str, str]) -> dict[str, str]:
        with_ = query.args.get("with_")
        found: dict[str, str] = {}
        for table in with_.expressions if with_ is not None else ():
            found[table.alias] = self.kind(table.this, {**named, **found})
        return found

    def _source_kind(self, source: exp.Expr, named: Mapping[str, str]) -> str:
        if isinstance(source, exp.Subquery):
            return self.kind(source.this, named)
        if isinstance(source, exp.Table) and source.name in named and not source.db:
            return named[source.name]
        if isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier):
            known = [self._catalog.relation, *self._catalog.lookups]
            if not source.db and identifier_match(known, source.this) is None:
                raise refuse(
                    f"there is no relation {source.name!r}",
                    "unknown-relation",
                    "ask about " + ", ".join(known),
                )
        return "rows"  # the relation, a lookup, or what the whitelist refuses

    def of_rows(self, select: exp.Select) -> Statement:
        """Refuse records; a statement that wants none of them gets its columns."""
        limit = select.args.get("limit")
        none = limit is not None and limit.expression is not None and limit.expression.name == "0"
        if not none or any(isinstance(item, exp.Star) for item in select.expressions):
            raise refuse(
                "the statement asks for no aggregate", "no-aggregate", "add COUNT(*), SUM or AVG"
            )
        names = [item.alias_or_name or "?column?" for item in select.expressions]
        empty = exp.select(*(exp.alias_(exp.null(), name, quoted=True) for name in names))
        return Statement((), empty.where(exp.false()).limit(0))

    # -- replacing -------------------------------------------------------------------------------
    def replaced(self, query: exp.Query, named: Mapping[str, str]) -> exp.Query:
        """Return a query over released rows in place of one over records."""
        if isinstance(query, exp.SetOperation):
            for side in ("this", "expression"):
                inner = query.args[side]
                wrapped = isinstance(inner, exp.Subquery)
                new = self.replaced(inner.this if wrapped else inner, named)
                query.set(side, exp.Subquery(this=new) if wrapped else new)
            return query
        if not isinstance(query, exp.Select):
            raise refuse(f"{written(query)} is not accepted", "not-a-select", "ask SELECT …")
        common = self._common(query, named)
        inside = {**named, **common}
        kinds = {self._source_kind(source, inside) for source in sources_of(query)}
        if "rows" in kinds:
            if "released" in kinds:
                raise refuse(
                    "records are joined with answers",
                    "unsupported-join",
                    "put the values into WHERE … IN (…), or join answers with answers",
                )
            if not _aggregates(query):
                raise refuse(
                    "records are used outside an aggregate",
                    "no-aggregate",
                    "aggregate them: COUNT(*), SUM or AVG",
                )
            return self._question(query)
        self._replace_common(query, named, common)
        for inner in _direct_queries(query):
            holder = inner.parent
            new = self.replaced(inner.copy(), inside)
            assert holder is not None
            inner.replace(new)
        return query

    def _replace_common(
        self, query: exp.Query, named: Mapping[str, str], common: Mapping[str, str]
    ) -> None:
        with_ = query.args.get("with_")
        if with_ is None:
            return
        kept = []
        seen = dict(named)
        for table in with_.expressions:
            if common[table.alias] == "rows":
                raise refuse(
                    f"{table.alias!r} holds records, and its reader does not aggregate it",
                    "unsupported-subquery",
                    "aggregate it where it is read, and join the answers",
                )
            table.set("this", self.replaced(table.this.copy(), seen))
            seen[table.alias] = "released"
            kept.append(table)

    # -- one SELECT over records -----------------------------------------------------------------
    def _question(self, select: exp.Select) -> exp.Query:
        """Return the query over the answers to one SELECT that aggregates records."""
        if lists_values(select, self._catalog):
            return Split(select, self._catalog, self.ask).outer(_too_much())
        try:
            number = self.ask(select)
        except RefusedError as error:
            if error.code not in _BEYOND:
                raise
            return Split(select, self._catalog, self.ask).outer(error)
        labels = [output.label for output in self.questions[number].outputs]
        columns = [exp.column(label, quoted=True) for label in labels]
        return exp.select(*columns).from_(exp.to_table(f"{NAME}{number}"))


#: Refusals of the plain form after which a SELECT is taken apart.
_BEYOND = {
    "unsupported-clause", "unsupported-expression", "unsupported-distinct", "no-aggregate",
    "not-grouped", "unsupported-aggregate", "misplaced-aggregate", "constant-aggregate", "type-mismatch",
}  # fmt: skip


def _too_much() -> RefusedError:
    return refuse(
        "SELECT with more than that is not accepted", "unsupported-clause", "leave it out"
    )


def _direct_queries(query: exp.Query) -> list[exp.Query]:
    """Return the queries inside a query, but not those inside them, nor its WITH."""
    found: list[exp.Query] = []
    left = [part for name, part in parts_of(query) if name != "with_"]
    while left:
        node = left.pop()
        if isinstance(node, exp.Query) and not isinstance(node, exp.Subquery):
            found.append(node)
        else:
            left.extend(node.iter_expressions())
    return found


def _aggregates(select: exp.Select) -> bool:
    """Whether a SELECT gives groups, not rows: it groups, counts, or wants each value once."""
    if select.args.get("group") is not None or select.args.get("distinct") is not None:
        return True
    shown = [*select.expressions, select.args.get("having"), select.args.get("order")]
    return any(part is not None and bool(aggregates_of(part)) for part in shown)


def _labelled(query: exp.Query) -> exp.Query:
    """Give the columns of the result the names that PostgreSQL would."""
    first = query
    while isinstance(first, exp.SetOperation | exp.Subquery):
        first = first.this
    if isinstance(first, exp.Select) and not any(
        i.find(exp.Star) and not i.find(exp.AggFunc) for i in first.expressions
    ):
        named = [
            item
            if isinstance(item, exp.Alias)
            else exp.alias_(item.copy(), label_of(item), quoted=True)
            for item in first.expressions
        ]
        first.set("expressions", distinctly(named))
    return query
