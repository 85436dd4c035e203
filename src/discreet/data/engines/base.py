"""What an engine offers: aggregates, frequency sets, ranks, results.

Everything is asked for as a sqlglot tree over a `Relation`; the engine renders the tree in its own
dialect, quotes every identifier and binds every value. The shared forms live here; an engine
says how it runs a tree and overrides a form where its own is faster. Forms that no engine overrides
are functions over relations: `cells_of` in `cells`, and `recode`, `attach` and `sample` in `changes`.
"""

from __future__ import annotations

import abc
import dataclasses
import importlib
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from sqlglot import exp

from discreet.data.engines import sql
from discreet.data.engines.driver import DRIVER_LIMIT, fetching, too_large, width
from discreet.errors import InputError, nearest

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ROW", "Engine", "Relation", "bounded", "connect", "fresh_name", "kind_of"]

#: The column that `number` adds and that masks are joined by.
ROW = "__row"
#: Rows whose texts are looked at to say how long those of all rows are.
_SAMPLE = 10_000


@dataclasses.dataclass(frozen=True, eq=False)
class Relation:
    """Rows in an engine: a query not yet run, and the columns it gives."""

    engine: Engine
    query: exp.Query
    schema: pa.Schema
    #: How many rows there are, where that is known without asking the engine.
    rows: int | None = None
    #: No more rows than this, where only that is known.
    most: int | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.schema.names)

    def require(self, *columns: str) -> None:
        """Say which of the columns the rows do not have, if any."""
        for name in columns:
            if name not in self.columns:
                guess = nearest(name, self.columns)
                raise InputError(
                    f"there is no column {name!r}",
                    code="unknown-column",
                    hint=f"write {guess!r}"
                    if guess
                    else "choose one of " + ", ".join(self.columns),
                    column=name,
                    available=list(self.columns),
                )


class Engine(abc.ABC):
    """Where the records live.

    Relations are lazy: they compose as SQL and run when an Arrow table is asked for. Values never
    become part of SQL text.
    """

    #: "duckdb", "postgres" or "spark"; also sqlglot's name of the dialect.
    name: str
    #: Whether distinct values of many columns are best counted in one query.
    counts_together: bool = True
    #: How often rows were asked for, counted when they have come.
    asked: int = 0
    #: Bytes that one question may bring into Python.
    driver_limit: int = DRIVER_LIMIT
    #: The format of released files where nobody names one; none: that of what was read.
    writes: str | None = None

    # -- bringing rows in ------------------------------------------------------------------------
    @abc.abstractmethod
    def table(self, name: str) -> Relation:
        """Return an existing table or view, by its (possibly schema-qualified) name."""

    def columns_of_table(self, name: str, columns: Sequence[str]) -> Relation:
        """Return some columns of an existing table; no right to the others is needed."""
        return self.project(self.table(name), columns)

    @abc.abstractmethod
    def load(self, rows: pa.Table, *, name: str | None = None) -> Relation:
        """Bring an Arrow table into the engine, as a view or temporary table."""

    @abc.abstractmethod
    def scan(
        self, path: str | Path, *, format: str, options: Mapping[str, Any] | None = None
    ) -> Relation:
        """Return a file (csv, parquet, arrow) as rows, read when needed and never wholly in Python."""

    # -- what each engine does its own way -------------------------------------------------------
    @abc.abstractmethod
    def fetch(self, query: exp.Query | Relation) -> pa.Table:
        """Run a tree and return its rows; literals in the tree are bound, not printed."""

    @abc.abstractmethod
    def batches(self, query: exp.Query | Relation) -> Iterator[pa.RecordBatch]:
        """Run a tree and yield its rows piece by piece, for results larger than memory."""

    @abc.abstractmethod
    def schema(self, query: exp.Query) -> pa.Schema:
        """Return the columns that a tree gives, without running it."""

    @abc.abstractmethod
    def materialize(self, relation: Relation, *, name: str | None = None) -> Relation:
        """Run the query once and keep the rows in the engine, until `close`."""

    @abc.abstractmethod
    def drop(self, relation: Relation) -> None:
        """Let go of what `materialize` or `load` kept."""

    @abc.abstractmethod
    def store(self, relation: Relation, name: str) -> None:
        """Write rows to a table of the engine that outlives the connection, all or nothing."""

    @abc.abstractmethod
    def largest(self, fields: Mapping[str, exp.Expr], order: exp.Expr, n: int) -> list[exp.Expr]:
        """Return the aggregates that list some fields of the n rows with the largest `order`.

        Ties go to the larger fields, in their order, so that every engine lists the same rows;
        rows whose `order` is null are left out or come last.
        """

    @abc.abstractmethod
    def element(self, name: str, place: int, fields: Sequence[str]) -> exp.Expr:
        """Return a field of one of the rows that `largest` listed, the first is 1; or null."""

    @abc.abstractmethod
    def digest(self, text: exp.Expr) -> exp.Expr:
        """Return the SHA-256 of a text in UTF-8, as 64 hexadecimal digits."""

    @abc.abstractmethod
    def from_hexadecimal(self, digits: exp.Expr) -> exp.Expr:
        """Return fifteen hexadecimal digits as a whole number of 64 bits."""

    @abc.abstractmethod
    def bits(self, value: exp.Expr) -> exp.Expr:
        """Return the 64 bits of a double as a whole number; all that is no number has the same."""

    @abc.abstractmethod
    def microseconds(self, value: exp.Expr) -> exp.Expr:
        """Return a timestamp with a time zone as microseconds since 1970."""

    def mark(self, table: str, owner: str) -> str | None:
        """Return who marked a table as theirs: `owner`, if nobody has; None if no mark can be kept."""
        return None

    def state(self, relation: Relation) -> str | None:
        """Return a text that stays the same while nobody writes to the tables of a relation.

        It may change although no row does. None where nobody else can write, or nothing cheap tells.
        """
        return None

    @abc.abstractmethod
    def close(self) -> None:
        """Let go of the connection and everything temporary."""

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    # -- asking ----------------------------------------------------------------------------------
    def relation(self, query: exp.Query) -> Relation:
        """Return a tree as rows not yet asked for."""
        return Relation(self, query, self.schema(query))

    def aggregate(self, query: exp.Query, relations: Mapping[str, Relation]) -> pa.Table:
        """Run a parsed query over named relations; nothing else in the engine can be reached."""
        from discreet.data.engines.results import simple

        query = sql.resolve(query, {name: r.columns for name, r in relations.items()})
        for table in list(query.find_all(exp.Table)):
            if table.name in relations:
                table.replace(sql.subquery(relations[table.name].query, table.alias_or_name))
        return simple(self.answer(query))

    def answer(self, query: exp.Query) -> pa.Table:
        """Run a tree and return its rows, sums of whole numbers as whole numbers."""
        return self.fetch(query)

    def bytewise(self, value: exp.Expr) -> exp.Expr:
        """Return a text that is compared byte by byte, whatever language the engine speaks."""
        return value

    def is_nan(self, value: exp.Expr) -> exp.Expr:
        """Return the condition that a number is none."""
        return sql.call("isnan", value)

    def composed(self, value: exp.Expr) -> exp.Expr | None:
        """Return a text in Unicode's composed form (NFC); None where the engine has no way to."""
        return None

    def estimated(self, value: exp.Expr) -> exp.Expr | None:
        """Return the number of different values by a sketch; None where the engine has none."""
        return None

    def piece(self, value: exp.Expr, pieces: int) -> exp.Expr | None:
        """Return a number from 0 to pieces − 1 that a value alone decides; None if not needed.

        Engines that put large intermediate results aside by themselves need no pieces.
        """
        return None

    def count(self, relation: Relation) -> int:
        """Return the number of rows."""
        query = sql.select(
            sql.subquery(relation.query, "t"), [sql.alias(sql.call("count", exp.Star()), "n")]
        )
        return int(self.fetch(query).column(0)[0].as_py())

    def frequencies(
        self, relation: Relation, columns: Sequence[str], *, weight: str | None = None
    ) -> pa.Table:
        """Return each combination of values once, with its `count` (and `weight`, if asked for)."""
        relation.require(*columns, *([] if weight is None else [weight]))
        keys = [sql.column(name) for name in columns]
        # The names of the results must not hide a column of the same name.
        values = [sql.alias(key, f"k{place}") for place, key in enumerate(keys)] + [
            sql.alias(sql.bigint(sql.call("count", exp.Star())), "count")
        ]
        if weight is not None:
            total = sql.call("sum", sql.double(sql.column(weight)))
            values.append(sql.alias(total, "weight"))
        query = sql.select(sql.subquery(relation.query, "t"), values)
        if keys:
            query = query.group_by(*(key.copy() for key in keys))
        self.require_combinations(relation, columns, "combinations of values")
        with fetching("frequency sets"):
            rows = self.fetch(query)
        return rows.rename_columns([*columns, *rows.column_names[len(columns) :]])

    def require_combinations(
        self, relation: Relation, columns: Sequence[str], kind: str, *, rows: int | None = None
    ) -> None:
        """Refuse combinations of values that are too many for Python; `rows` are known already.

        There are no more of them than rows; they are counted only where that would be too many.
        """
        if not columns:
            return
        known = relation.most if rows is None and relation.rows is None else rows
        most, size = self.room_needed(relation, columns, rows=known)
        if size + 8 * most > self.driver_limit:
            counted = self.combinations(relation, columns)
            found, size = self.room_needed(relation, columns, rows=counted)
            self.require_room(kind, found, size + 8 * found)

    def require_room(self, kind: str, rows: int, size: int) -> None:
        """Refuse to fetch more than the limit lets into Python."""
        if size > self.driver_limit:
            raise too_large(kind, rows, size, self.driver_limit)

    def room_needed(
        self, relation: Relation, columns: Sequence[str] | None = None, *, rows: int | None = None
    ) -> tuple[int, int]:
        """Return how many rows some columns of a relation have, and about how many bytes in Arrow."""
        import pyarrow as pa

        fields = [relation.schema.field(name) for name in columns or relation.columns]
        known = relation.rows if rows is None else rows
        count = self.count(relation) if known is None else known
        size = sum(width(field.type) for field in fields)
        texts = [f.name for f in fields if pa.types.is_string(f.type)]
        if texts and count > _SAMPLE:  # fewer rows fit, however long their texts are
            few = sql.subquery(relation.query.limit(_SAMPLE), "t")
            lengths = [
                sql.alias(sql.double(exp.Avg(this=sql.call("length", sql.column(name)))), f"c{n}")
                for n, name in enumerate(texts)
            ]
            found = self.fetch(sql.select(few, lengths)).to_pylist()[0]
            size += sum(float(length or 0) for length in found.values())
        return count, int(count * size)

    def combinations(self, relation: Relation, columns: Sequence[str]) -> int:
        """Return how many combinations of values some columns have."""
        found = exp.select(*map(sql.column, columns)).distinct()
        distinct = found.from_(sql.subquery(relation.query, "t"))
        return self.count(Relation(self, distinct, relation.schema))

    # -- changing --------------------------------------------------------------------------------
    def number(self, relation: Relation) -> Relation:
        """Return the rows held still, with a column `__row` 0 … n−1 that a mask can be joined to."""
        if ROW in relation.columns:
            return relation
        counted = exp.Sub(
            this=exp.Window(this=sql.call("row_number")), expression=exp.Literal.number(1)
        )
        query = sql.select(
            sql.subquery(relation.query, "t"),
            [*map(sql.column, relation.columns), sql.alias(sql.bigint(counted), ROW)],
        )
        return self.materialize(dataclasses.replace(self.relation(query), rows=relation.rows))

    def rank(self, relation: Relation, column: str, *, into: str = "__rank") -> Relation:
        """Add the rank of a column's values, 1 for the smallest, ties broken by `__row`.

        Missing values come last.
        """
        relation.require(column, ROW)
        order = exp.Order(
            expressions=[
                exp.Ordered(this=sql.column(column), desc=False, nulls_first=False),
                exp.Ordered(this=sql.column(ROW), desc=False, nulls_first=False),
            ]
        )
        ranked = exp.Window(this=sql.call("row_number"), order=order)
        kept = [sql.column(name) for name in relation.columns if name != into]
        return self.relation(
            sql.select(
                sql.subquery(relation.query, "t"),
                [*kept, sql.alias(sql.bigint(ranked), into)],
            )
        )

    def project(self, relation: Relation, columns: Sequence[str]) -> Relation:
        """Return some of the columns, in the given order."""
        import pyarrow as pa

        relation.require(*columns)
        query = sql.select(sql.subquery(relation.query, "t"), map(sql.column, columns))
        fields = [relation.schema.field(name) for name in columns]
        return Relation(self, query, pa.schema(fields), relation.rows, relation.most)

    def filter(self, relation: Relation, predicate: exp.Expr) -> Relation:
        """Return the rows for which a predicate, given as a tree, is true."""
        query = sql.select(
            sql.subquery(relation.query, "t"), map(sql.column, relation.columns)
        ).where(predicate.copy(), copy=False)
        return Relation(self, query, relation.schema, most=relation.rows or relation.most)

    def write(self, relation: Relation, target: str | Path, *, format: str | None = None) -> None:
        """Write rows to a file (csv, parquet, arrow), atomically, or to a table of the engine.

        `format="table"` takes the target as a table's name; otherwise the target is a path whose
        suffix says the format.
        """
        if format == "table":
            self.store(relation, str(target))
            return
        from discreet.data.engines.results import write_batches

        ordered = relation.query
        kept = relation
        if ROW in relation.columns:
            kept = self.project(relation, [c for c in relation.columns if c != ROW])
            ordered = kept.query.order_by(exp.Ordered(this=sql.column(ROW), nulls_first=False))
        write_batches(self.batches(ordered), kept.schema, Path(target), format)


def bounded(query: exp.Query | Relation) -> exp.Query:
    """Return the tree to be fetched; rows of a relation are counted first, and refused if too many."""
    if not isinstance(query, Relation):
        return query
    query.engine.require_room("records", *query.engine.room_needed(query))
    return query.query


def kind_of(query: exp.Query | Relation) -> str:
    """Return what a fetch brings where nobody says so: records of a relation, or aggregates."""
    return "records" if isinstance(query, Relation) else "aggregates"


def fresh_name(word: str = "rows") -> str:
    """Return a name that no table has."""
    return f"discreet_{word}_{uuid.uuid4().hex}"


_ENGINES = {
    "duckdb": ("discreet.data.engines.duckdb", "DuckDB"),
    "postgres": ("discreet.data.engines.postgres", "Postgres"),
    "postgresql": ("discreet.data.engines.postgres", "Postgres"),
    "spark": ("discreet.data.engines.spark", "Spark"),
    "sc": ("discreet.data.engines.spark", "Spark"),
}
_EXTRAS = {"psycopg": "postgres", "pyspark": "spark"}


def connect(url: str = "duckdb://", **options: Any) -> Engine:
    """Return the engine an URL names: `duckdb://`, `duckdb:///file.db`, `postgresql://…`, `spark://…`.

    Options go to the engine; DuckDB takes `memory_limit`, `temp_directory` and `threads`. Any:
    options are what the engine's own settings take.

    >>> engine = connect("duckdb://")
    >>> engine.name
    'duckdb'
    >>> engine.close()
    """
    scheme = urlsplit(url).scheme.lower()
    if scheme not in _ENGINES:
        guess = nearest(scheme, _ENGINES)
        raise InputError(
            f"there is no engine {scheme!r}" if scheme else "the engine's URL has no scheme",
            code="unknown-engine",
            hint=f"write {guess}://" if guess else "write duckdb://, postgresql:// or spark://",
        )
    module, kind = _ENGINES[scheme]
    try:
        engine: Engine = getattr(importlib.import_module(module), kind)(url, **options)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _EXTRAS:
            raise
        raise InputError(
            f"the engine {scheme} needs the package {package}",
            code="missing-extra",
            hint=f"run: pip install 'discreet[{_EXTRAS[package]}]'",
        ) from None
    return engine
