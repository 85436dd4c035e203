"""What every masking method is: columns in, masked columns out.

A method sees an Arrow table that holds only the columns it `reads`, with missing values as nulls,
and returns the columns it `changes`, row for row. It never sees the others, so it cannot change
them. A method that changes which rows there are (sampling) or that the engine can do by itself
(recoding) overrides `mask`, which goes from dataset to dataset.

Files with more than `IN_MEMORY` records stay in their engine where a method implements
`mask_in_engine`: summaries come out, SQL goes in, and Python's memory does not grow with the file.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from discreet.data.engines.base import ROW
from discreet.data.schema import Schema
from discreet.errors import InputError
from discreet.microdata.columns import is_number, word_for
from discreet.progress import Progress, silent
from discreet.randomness import Randomness
from discreet.registry import Member, parameter

if TYPE_CHECKING:
    import pyarrow as pa
    from sqlglot import exp

    from discreet.data.dataset import Dataset

__all__ = ["IN_MEMORY", "ColumnMasking", "Masking", "replaced", "require_numbers"]

#: Records up to which a method works on columns in memory, wherever the records are.
IN_MEMORY = 250_000


@dataclasses.dataclass(frozen=True)
class Masking(Member):
    """Base of every masking method.

    A subclass says which columns it `changes` (and, beyond those, `reads`) and implements `apply`.
    Missing values stay missing and take no part, unless the method's docstring says otherwise.
    """

    #: Whether values become other values (noise, swapping) rather than coarser ones (recoding).
    perturbative: ClassVar[bool] = True
    #: Whether the result depends on `rng`, whatever the parameters.
    random: ClassVar[bool] = False
    #: Whether the columns it changes must hold numbers.
    numeric: ClassVar[bool] = False
    #: Whether the engine does it alone, so that files larger than memory need no row numbers.
    in_engine: ClassVar[bool] = False
    #: Whether categories are drawn whatever the record's other values are, as a married child.
    draws_categories: ClassVar[bool] = False
    #: Whether no value of the columns it changes is left in any record (pseudonyms).
    replaces: ClassVar[bool] = False
    #: Whether records may go (sampling).
    drops_records: ClassVar[bool] = False
    #: Whether what was missing is missing afterwards, and nothing else is.
    keeps_missing: ClassVar[bool] = True
    #: Whether the same `rng` gives the same result; OpenDP draws from a source of its own.
    seedable: ClassVar[bool] = True
    #: Whether every record gets the same values in whatever order the records come.
    blind_to_order: ClassVar[bool] = False

    @property
    def is_random(self) -> bool:
        """Whether the result depends on `rng` with these parameters."""
        return self.random

    @property
    @abc.abstractmethod
    def changes(self) -> tuple[str, ...]:
        """Names of the columns that may come back different."""

    @property
    def reads(self) -> tuple[str, ...]:
        """Names of the columns the method needs to see; by default those it changes."""
        return self.changes

    def check(self, schema: Schema) -> None:
        """Raise an InputError if the method does not fit the columns; looks at no value."""
        for name in dict.fromkeys((*self.reads, *self.changes)):
            schema[name]

    def require(self, dataset: Dataset) -> None:
        """Raise an InputError if the method does not fit the data; looks at no value."""
        self.check(dataset.schema)
        if self.numeric:
            require_numbers(self, dataset.relation.schema)

    def rehearse(self, dataset: Dataset) -> None:
        """Raise the error that `mask` would end in, as far as counts of the records tell it."""
        self.require(dataset)

    def stronger(self) -> Masking | None:
        """Return the method one step stronger, or nothing where it cannot be."""
        return None

    @abc.abstractmethod
    def apply(
        self, rows: pa.Table, *, schema: Schema | None, rng: Randomness
    ) -> Mapping[str, pa.Array]:
        """Return the masked columns for rows that hold the columns it reads."""

    def mask_in_engine(self, held: Dataset, *, rng: Randomness) -> Dataset | None:
        """Return numbered records masked where they are, or nothing if it takes them in memory.

        What leaves has the distribution that `apply` gives, from other random numbers.
        """
        return None

    def mask(self, dataset: Dataset, *, rng: Randomness, progress: Progress = silent) -> Dataset:
        """Return the dataset with the masked columns in place of the original ones."""
        import pyarrow as pa

        self.require(dataset)
        progress(self.name, 0, 1)
        held = dataset.numbered()
        if len(dataset) > IN_MEMORY:
            made = self.mask_in_engine(held, rng=rng)
            if made is not None:
                progress(self.name, 1, 1)
                return made
        rows = held.engine.fetch(held.engine.project(held.relation, [*self.reads, ROW]))
        rows = rows.sort_by(ROW).combine_chunks()
        masked = self.apply(rows.drop_columns([ROW]), schema=dataset.schema, rng=rng)
        # By row number, not by place: after sampling the numbers have gaps.
        result = held.with_columns(pa.table({**masked, ROW: rows.column(ROW)}))
        progress(self.name, 1, 1)
        return result


@dataclasses.dataclass(frozen=True)
class ColumnMasking(Masking):
    """A masking method that is told which columns to change; one name may stand alone."""

    columns: tuple[str, ...] = parameter(help="columns to mask")

    def __post_init__(self) -> None:
        given = self.columns
        if isinstance(given, str):
            object.__setattr__(self, "columns", (given,))
        elif isinstance(given, list):
            object.__setattr__(self, "columns", tuple(given))
        super().__post_init__()
        if not self.columns:
            raise InputError(
                f"{self.name} needs at least one column",
                code="missing-parameter",
                hint="name the columns to mask",
                parameter="columns",
            )
        if len(set(self.columns)) < len(self.columns):
            raise InputError(
                f"{self.name} names a column twice",
                code="duplicate-column",
                hint="name each column once",
                parameter="columns",
            )

    @property
    def changes(self) -> tuple[str, ...]:
        """Names of the columns that may come back different."""
        return self.columns


def replaced(dataset: Dataset, values: Mapping[str, exp.Expr]) -> Dataset:
    """Return the dataset with columns computed by the engine from expressions."""
    from discreet.data.engines import sql

    relation = dataset.relation
    chosen = [
        sql.alias(values[name], name) if name in values else sql.column(name)
        for name in relation.columns
    ]
    query = sql.select(sql.subquery(relation.query, "t"), chosen)
    return dataset.replace(relation=dataset.engine.relation(query))


def require_covered(dataset: Dataset, name: str) -> None:
    """Raise an InputError if a column has values that are no leaves of its hierarchy of codes."""
    import pyarrow as pa

    trees = dataset.schema.hierarchies(name)
    if not trees or is_number(dataset.relation.schema.field(name).type):
        return
    found = dataset.frequencies([name]).column(0).drop_null().cast(pa.string()).to_pylist()
    trees[0].require_leaves(found, column=name)


def require_numbers(method: Masking, fields: pa.Schema) -> None:
    """Raise an InputError unless the columns that a method changes hold numbers."""
    for name in method.changes:
        if not is_number(fields.field(name).type):
            raise InputError(
                f"{method.name} works on numbers, and column {name!r} holds {word_for(fields.field(name).type)}",
                code="not-numeric",
                hint="choose a numeric column, or a method for categories such as pram",
                column=name,
            )
