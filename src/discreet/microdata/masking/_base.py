"""What every masking method is: columns in, masked columns out.

A method sees an Arrow table that holds only the columns it `reads`, with missing values as nulls,
and returns the columns it `changes`, row for row. It never sees the others, so it cannot change
them. A method that changes which rows there are (sampling) or that the engine can do by itself
(recoding) overrides `mask`, which goes from dataset to dataset.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from discreet.data.engines.base import ROW
from discreet.data.schema import Schema
from discreet.errors import InputError
from discreet.progress import Progress, silent
from discreet.randomness import Randomness
from discreet.registry import Member, parameter

if TYPE_CHECKING:
    import pyarrow as pa
    from sqlglot import exp

    from discreet.data.dataset import Dataset

__all__ = [
    "ColumnMasking",
    "Masking",
    "Numbers",
    "codes",
    "is_number",
    "like",
    "numbers",
    "require_numbers",
]

Numbers = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class Masking(Member):
    """Base of every masking method.

    A subclass says which columns it `changes` (and, beyond those, `reads`) and implements `apply`.
    Missing values stay missing and take no part, unless the method's docstring says otherwise.
    """

    #: Whether values become other values (noise, swapping) rather than coarser ones (recoding).
    perturbative: ClassVar[bool] = True
    #: Whether the result depends on `rng`.
    random: ClassVar[bool] = False
    #: Whether the columns it changes must hold numbers.
    numeric: ClassVar[bool] = False
    #: Whether the engine does it alone, so that files larger than memory need no row numbers.
    in_engine: ClassVar[bool] = False
    #: Whether records may go (sampling).
    drops_records: ClassVar[bool] = False

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

    def stronger(self) -> Masking | None:
        """Return the method one step stronger, or nothing where it cannot be."""
        return None

    @abc.abstractmethod
    def apply(
        self, rows: pa.Table, *, schema: Schema | None, rng: Randomness
    ) -> Mapping[str, pa.Array]:
        """Return the masked columns for rows that hold the columns it reads."""

    def mask(self, dataset: Dataset, *, rng: Randomness, progress: Progress = silent) -> Dataset:
        """Return the dataset with the masked columns in place of the original ones."""
        import pyarrow as pa

        self.require(dataset)
        progress(self.name, 0, 1)
        held = dataset.numbered()
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


def is_number(kind: pa.DataType) -> bool:
    """Whether a column of this Arrow type holds numbers."""
    import pyarrow as pa

    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def word_for(kind: pa.DataType) -> str:
    """Return an Arrow type as a person calls it."""
    import pyarrow as pa

    text = (
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind)
    )
    return "text" if text else str(kind)


def numbers(column: pa.ChunkedArray | pa.Array, *, name: str) -> Numbers:
    """Return a column as floating-point numbers, missing values as not-a-number.

    >>> import pyarrow as pa
    >>> numbers(pa.array([1, None, 3]), name="age").tolist()
    [1.0, nan, 3.0]
    >>> numbers(pa.array(["1", "many"]), name="age")
    Traceback (most recent call last):
    discreet.errors.InputError: column 'age' holds text where numbers are needed; ...
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if not is_number(column.type):
        raise InputError(
            f"column {name!r} holds {word_for(column.type)} where numbers are needed",
            code="not-numeric",
            hint="choose a numeric column or correct the file",
            column=name,
        )
    values = pc.cast(column, pa.float64(), safe=False)
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    return np.array(values.to_numpy(zero_copy_only=False), dtype=np.float64)


def like(column: pa.ChunkedArray | pa.Array, values: Numbers) -> pa.Array:
    """Return numbers as an Arrow array: integers where the column has them and all values are whole.

    >>> import pyarrow as pa
    >>> like(pa.array([1, 2]), np.array([4.0, np.nan])).to_pylist()
    [4, None]
    >>> like(pa.array([1, 2]), np.array([4.5, 1.0])).to_pylist()
    [4.5, 1.0]
    """
    import pyarrow as pa

    missing = np.isnan(values)
    if pa.types.is_integer(column.type):
        whole = np.where(missing, 0.0, values)
        if np.array_equal(whole, np.rint(whole)) and (np.abs(whole) < 2.0**53).all():
            return pa.array(whole.astype(np.int64), mask=missing)
    return pa.array(values, pa.float64(), mask=missing)


def codes(column: pa.ChunkedArray | pa.Array) -> tuple[npt.NDArray[np.int64], pa.Array]:
    """Return a column as places in its sorted values, −1 where missing, and these values.

    >>> import pyarrow as pa
    >>> places, values = codes(pa.array(["b", "a", None, "b"]))
    >>> places.tolist(), values.to_pylist()
    ([1, 0, -1, 1], ['a', 'b'])
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), None, column)
    encoded = column.dictionary_encode()
    places = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    # Sorted, so that the numbering is that of the values and not of the rows.
    order = pc.sort_indices(encoded.dictionary).to_numpy(zero_copy_only=False).astype(np.int64)
    rank = np.empty(order.size + 1, np.int64)
    rank[order] = np.arange(order.size)
    rank[-1] = -1
    return rank[places], encoded.dictionary.take(pa.array(order))
