"""What an engine offers: aggregates, frequency sets, recodes, masks, ranks, samples, results.

Everything is asked for as a sqlglot tree over a `Relation`; the engine renders the tree in its own
dialect, quotes every identifier and binds every value. The shared forms live here; an engine
overrides one where its own form is faster.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from discreet.data.hierarchy import Hierarchy
from discreet.randomness import Randomness

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Engine", "Relation", "connect"]


@dataclasses.dataclass(frozen=True, eq=False)
class Relation:
    """Rows in an engine: a query not yet run, and the columns it gives."""

    engine: Engine
    query: exp.Query
    schema: pa.Schema

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.schema.names)


class Engine(abc.ABC):
    """Where the records live.

    Relations are lazy: they compose as SQL and run when an Arrow table is asked for. Values never
    become part of SQL text.
    """

    #: "duckdb", "postgres" or "spark"; also sqlglot's name of the dialect.
    name: str

    # -- bringing rows in ------------------------------------------------------------------------
    @abc.abstractmethod
    def table(self, name: str) -> Relation:
        """Return an existing table or view, by its (possibly schema-qualified) name."""

    @abc.abstractmethod
    def load(self, rows: pa.Table, *, name: str | None = None) -> Relation:
        """Bring an Arrow table into the engine, as a view or temporary table."""

    @abc.abstractmethod
    def scan(
        self, path: str | Path, *, format: str, options: Mapping[str, Any] | None = None
    ) -> Relation:
        """Return a file (csv, parquet, arrow) as rows, read when needed and never wholly in Python."""

    # -- asking ----------------------------------------------------------------------------------
    @abc.abstractmethod
    def fetch(self, query: exp.Query | Relation) -> pa.Table:
        """Run a tree and return its rows; literals in the tree are bound, not printed."""

    @abc.abstractmethod
    def count(self, relation: Relation) -> int:
        """Return the number of rows."""

    @abc.abstractmethod
    def frequencies(
        self, relation: Relation, columns: Sequence[str], *, weight: str | None = None
    ) -> pa.Table:
        """Return each combination of values once, with its `count` (and `weight`, if asked for)."""

    @abc.abstractmethod
    def cells(
        self,
        relation: Relation,
        by: Mapping[str, Sequence[Hierarchy]],
        *,
        measure: str | None = None,
        unit: str | None = None,
        weight: str | None = None,
        largest: int = 2,
        identify: bool = False,
        margins: bool = True,
    ) -> pa.Table:
        """Return the non-empty cells of the cross of the attributes, totals at every level included.

        Columns: the attributes (as text codes), `count` (rows), `units` (distinct contributors, if
        `unit`), `sum`, `sum_squares`, `top_1` … `top_n` (the largest contributions, summed per unit
        when a unit is given), and with `identify` `unit_1` … `unit_n`. With a weight: also
        `weight` (its sum) and weighted sums.
        """

    # -- changing --------------------------------------------------------------------------------
    @abc.abstractmethod
    def recode(self, relation: Relation, maps: Mapping[str, pa.Table]) -> Relation:
        """Replace values by join: each map has the columns `from` and `to`."""

    @abc.abstractmethod
    def number(self, relation: Relation) -> Relation:
        """Return the rows held still, with a column `__row` 0 … n−1 that a mask can be joined to."""

    @abc.abstractmethod
    def attach(self, relation: Relation, rows: pa.Table) -> Relation:
        """Replace or add columns by join on `__row`."""

    @abc.abstractmethod
    def rank(self, relation: Relation, column: str, *, into: str = "__rank") -> Relation:
        """Add the rank of a column's values, 1 for the smallest, ties broken by `__row`."""

    @abc.abstractmethod
    def sample(
        self, relation: Relation, *, size: int, rng: Randomness, strata: Sequence[str] = ()
    ) -> Relation:
        """Return a simple or (proportionally) stratified random sample without replacement."""

    @abc.abstractmethod
    def materialize(self, relation: Relation, *, name: str | None = None) -> Relation:
        """Run the query once and keep the rows in the engine."""

    @abc.abstractmethod
    def write(self, relation: Relation, target: str | Path, *, format: str | None = None) -> None:
        """Write rows to a file (csv, parquet, arrow), atomically, or to a table of the engine."""

    @abc.abstractmethod
    def close(self) -> None:
        """Let go of the connection and everything temporary."""


def connect(url: str = "duckdb://", **options: Any) -> Engine:
    """Return the engine an URL names: `duckdb://`, `duckdb:///file.db`, `postgresql://…`, `spark://…`."""
    raise NotImplementedError
