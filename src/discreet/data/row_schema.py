"""What is known of the columns of rows before, or without, the curator's word."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from discreet.data.engines.base import ROW, Relation
from discreet.data.frames import ordered_categories
from discreet.data.schema import Column, Role, Schema, Type
from discreet.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.reading import Reading

__all__ = [
    "fitted_schema",
    "inferred_schema",
    "require_names",
    "undecided_schema",
    "with_categories",
]


def require_names(columns: Sequence[str]) -> None:
    """Refuse columns with the name that rows are numbered by."""
    if ROW in columns:
        raise InputError(
            f"the data has a column {ROW!r}, by which rows are numbered here",
            code="name-taken",
            hint="rename it",
            column=ROW,
        )


def inferred_schema(rows: Relation) -> Schema:
    """Return the columns with roles and types guessed from their names and first values."""
    from discreet.data.infer import infer_schema

    # A guessed unit or weight would change numbers silently; `describe` suggests them instead.
    return dataclasses.replace(infer_schema(rows), unit=None, weight=None)


def undecided_schema(rows: Relation) -> Schema:
    """Return the columns as they are where the curator named roles for some of them.

    Columns left out have none, for a guess must not add to what the curator said, and are not
    released; one whose name says that it identifies somebody is one of those that never leave.
    """
    from discreet.data.names import meaning

    columns = []
    for column in _schema_of_types(rows).columns:
        word = meaning(column.name, "identifier")
        if word is not None:
            reason = f"left out, and the name says {word!r}"
            column = dataclasses.replace(column, role=Role.IDENTIFIER, reason=reason)
        columns.append(column)
    return Schema(tuple(columns))


def _schema_of_types(rows: Relation) -> Schema:
    return Schema(
        tuple(
            Column(f.name, type=_type(f.type), decided=False) for f in rows.schema if f.name != ROW
        )
    )


def _type(kind: pa.DataType) -> Type:
    import pyarrow as pa

    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return Type.NUMERIC
    return Type.DATE if pa.types.is_temporal(kind) else Type.NOMINAL


def _retyped(column: Column, found: Type) -> Column:
    """Return a column whose numbers became names, as recodes make them, as what it now is."""
    if column.type is Type.NUMERIC and found is not Type.NUMERIC:
        return dataclasses.replace(column, type=found)
    return column


def with_categories(schema: Schema, reading: Reading | None, library: str) -> Schema:
    """Return a schema in which codes with labels are categories, and which has their orders."""
    if reading is None:
        orders = ordered_categories(library)
        types = dict.fromkeys(orders, Type.ORDINAL)
    else:
        orders = dict(reading.orders)
        types = {
            name: Type.ORDINAL if name in reading.ordinal else Type.NOMINAL
            for name in reading.labels
        }
    if not orders:
        return schema
    return schema.replace(
        types={name: kind for name, kind in types.items() if name in schema},
        orders={name: order for name, order in orders.items() if name in schema},
    )


def fitted_schema(schema: Schema, rows: Relation) -> Schema:
    """Return a schema for the columns that rows have: known ones kept, new ones by their type."""
    known = {column.name: column for column in schema.columns}
    columns = tuple(_retyped(known.get(c.name, c), c.type) for c in _schema_of_types(rows).columns)
    if len(columns) == len(known) and all(known.get(c.name) is c for c in columns):
        return schema
    names = {column.name for column in columns}
    return Schema(
        columns,
        schema.unit if schema.unit in names else None,
        schema.weight if schema.weight in names else None,
    )
