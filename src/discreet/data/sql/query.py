"""The typed question: relation, measures, predicate, keys, and what is done to the released rows."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from discreet.data.schema import Role
from discreet.data.sql.spelling import spelled
from discreet.data.sql.total import total, total_key

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.schema import Schema

__all__ = ["Catalog", "Field", "Join", "Key", "Measure", "Output", "Query", "Sort", "raw_query"]


@dataclasses.dataclass(frozen=True)
class Field:
    """One column as SQL sees it: its kind and its role in a disclosure."""

    name: str
    #: integer, number, text, date, timestamp or boolean.
    kind: str
    role: Role = Role.OTHER
    #: Of decimals: their digits, all and after the point.
    digits: tuple[int, int] | None = None

    @property
    def is_number(self) -> bool:
        """Whether sums and averages of it mean something."""
        return self.kind in ("integer", "number")


@dataclasses.dataclass(frozen=True)
class Join:
    """A declared key join: each row of the relation meets at most one row of the lookup.

    The rows a question is put to hold the columns of the lookup beside their own, under the name
    `lookup.column`, null where nothing was met.
    """

    lookup: str
    on: str
    key: str


@dataclasses.dataclass(frozen=True)
class Catalog:
    """What may be asked about: the protected relation, its lookups and the joins between them.

    Examples
    --------
    >>> catalog = Catalog("people", (Field("age", "integer"), Field("salary", "integer")))
    >>> catalog["age"].kind
    'integer'
    """

    relation: str
    fields: tuple[Field, ...]
    unit: str | None = None
    lookups: Mapping[str, tuple[Field, ...]] = dataclasses.field(default_factory=dict)
    joins: tuple[Join, ...] = ()

    @classmethod
    def of(
        cls,
        name: str,
        schema: Schema,
        types: pa.Schema,
        *,
        lookups: Mapping[str, tuple[Field, ...]] | None = None,
        joins: Sequence[Join] = (),
    ) -> Catalog:
        """Return the catalog of a dataset from its schema and its Arrow types."""
        return cls(name, fields_of(schema, types), schema.unit, dict(lookups or {}), tuple(joins))

    def __getitem__(self, name: str) -> Field:
        """Return one column, a lookup's as `lookup.column`."""
        lookup, dot, rest = name.partition(".")
        if dot and lookup in self.lookups:
            return next(f for f in self.lookups[lookup] if f.name == rest)
        return next(f for f in self.fields if f.name == name)

    def with_role(self, role: Role) -> frozenset[str]:
        """Return the names of all columns with a role, lookups' included."""
        own = {f.name for f in self.fields if f.role == role}
        return frozenset(own).union(
            *(
                {f"{name}.{f.name}" for f in fs if f.role == role}
                for name, fs in self.lookups.items()
            )
        )


def fields_of(schema: Schema, types: pa.Schema) -> tuple[Field, ...]:
    """Return the columns of a dataset as SQL sees them."""
    return tuple(
        Field(column.name, _kind(kind), column.role, _digits(kind))
        for column in schema.columns
        for kind in (types.field(column.name).type,)
    )


def _digits(arrow: pa.DataType) -> tuple[int, int] | None:
    import pyarrow as pa

    return (arrow.precision, arrow.scale) if pa.types.is_decimal(arrow) else None


def _kind(arrow: pa.DataType) -> str:
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(arrow):
        arrow = arrow.value_type
    if types.is_boolean(arrow):
        return "boolean"
    if types.is_integer(arrow):
        return "integer"
    if types.is_floating(arrow) or types.is_decimal(arrow):
        return "number"
    if types.is_date(arrow):
        return "date"
    return "timestamp" if types.is_timestamp(arrow) else "text"


@dataclasses.dataclass(frozen=True, eq=False)
class Key:
    """One expression of GROUP BY."""

    expression: exp.Expression
    kind: str
    #: Columns of the protected relation it reads.
    columns: frozenset[str]
    text: str

    def total(self) -> exp.Expression:
        """Return the expression as engines compute it, without failing on any value."""
        return total_key(self.expression, self.kind)


@dataclasses.dataclass(frozen=True, eq=False)
class Measure:
    """One aggregate.

    `function` is one of count, units (COUNT(DISTINCT unit)), sum, avg, var_samp, var_pop,
    stddev_samp, stddev_pop, min, max, median, quantile.
    """

    function: str
    #: What is aggregated; None for COUNT(*) and COUNT(DISTINCT unit).
    argument: exp.Expression | None
    #: The column, where the argument is nothing else.
    column: str | None
    #: integer or number, or the kind of the argument for min and max.
    kind: str
    columns: frozenset[str]
    text: str
    #: Between 0 and 1; for quantile and median.
    fraction: float | None = None

    def total(self) -> exp.Expression:
        """Return the argument as engines compute it, without failing on any value."""
        assert self.argument is not None
        return total(self.argument)


@dataclasses.dataclass(frozen=True, eq=False)
class Output:
    """One column of the result: a key, a measure, or arithmetic on measures.

    The expression names keys `k0`, `k1` … and measures `m0`, `m1` …
    """

    label: str
    expression: exp.Expression
    kind: str

    @property
    def reference(self) -> str | None:
        """The key or measure, where the output is nothing else."""
        return self.expression.name if isinstance(self.expression, exp.Column) else None


@dataclasses.dataclass(frozen=True, eq=False)
class Sort:
    """One expression of ORDER BY, over keys and measures."""

    expression: exp.Expression
    descending: bool
    nulls_first: bool


@dataclasses.dataclass(frozen=True, eq=False)
class Query:
    """A statistical question over one protected relation.

    `keys`, `measures` and `predicate` say what is asked of the data; `outputs`, `having`,
    `order`, `limit` and `offset` only rearrange what is released, and cost nothing.
    """

    relation: str
    keys: tuple[Key, ...]
    measures: tuple[Measure, ...]
    predicate: exp.Expression | None
    predicate_columns: frozenset[str]
    outputs: tuple[Output, ...]
    having: exp.Expression | None = None
    order: tuple[Sort, ...] = ()
    limit: int | None = None
    offset: int = 0

    @property
    def question(self) -> str:
        """The same text for the same question, whatever its spelling, labels and order."""
        return self._question

    @property
    def digest(self) -> str:
        """SHA-256 of the question."""
        return hashlib.sha256(self.question.encode()).hexdigest()

    def __post_init__(self) -> None:
        select = ", ".join([*(k.text for k in self.keys), *(m.text for m in self.measures)])
        text = f"SELECT {select} FROM {self.relation}"  # noqa: S608 - a name for the question, never run
        if self.predicate is not None:
            text += f" WHERE {spelled(self.predicate)}"
        if self.keys:
            text += " GROUP BY " + ", ".join(k.text for k in self.keys)
        object.__setattr__(self, "_question", text)

    #: Set once; a property would spell the trees again and again.
    _question: str = dataclasses.field(default="", init=False, repr=False)


def conjunction(left: exp.Expression | None, right: exp.Expression | None) -> exp.Expression | None:
    """Return both conditions, each in its own parentheses."""
    if left is None or right is None:
        return left if right is None else right
    return exp.And(this=_wrapped(left), expression=_wrapped(right))


def _wrapped(tree: exp.Expression) -> exp.Expression:
    return exp.Paren(this=tree) if isinstance(tree, exp.Or | exp.And) else tree


def raw_query(
    query: Query,
    source: exp.Query,
    columns: Mapping[str, exp.Expression],
    *,
    keys: bool = True,
    grouped: bool = True,
) -> exp.Select:
    """Return a tree that computes `columns` for each group of the question, or for each record.

    `source` gives the rows of the protected relation; the keys come out as `k0`, `k1` …
    """
    named: list[Any] = []
    if keys:
        named += [exp.alias_(key.total(), f"k{n}") for n, key in enumerate(query.keys)]
    named += [exp.alias_(tree.copy(), name) for name, tree in columns.items()]
    select = exp.select(*named).from_(from_clause(source, query.relation))
    if query.predicate is not None:
        select = select.where(total(query.predicate))
    if keys and query.keys and grouped:
        select = select.group_by(*(key.total() for key in query.keys))
    return select


def from_clause(source: exp.Query, alias: str) -> exp.Expression:
    """Return rows under a name, as a table where they are one."""
    return exp.Subquery(
        this=source.copy(), alias=exp.TableAlias(this=exp.to_identifier(alias, quoted=True))
    )
