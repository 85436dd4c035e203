"""What comes out of an engine: Arrow rows in simple types, and files that appear whole."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.data.atomic import atomic_file
from discreet.data.codes import code_text
from discreet.data.files import FORMATS, file_format
from discreet.errors import EngineError, InputError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["FORMATS", "code_text", "file_format", "loadable", "simple", "write_batches"]

WRITABLE = ("csv", "parquet", "arrow")


def simple(rows: pa.Table) -> pa.Table:
    """Return rows with wide and fixed-point numbers as 64-bit ones, the same on every engine.

    Sums of integers come as 128-bit numbers from one engine and as decimals of unknown scale from
    another; whole ones become 64-bit integers where they fit, the others doubles.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    for place, field in enumerate(rows.schema):
        column = rows.column(place)
        kind: Any = field.type
        if pa.types.is_decimal(kind):
            fits = kind.scale == 0
            if fits and len(column) - column.null_count:
                ends = pc.min_max(column).as_py()
                fits = ends["min"] >= -(2**63) and ends["max"] < 2**63
            kind = pa.int64() if fits else pa.float64()
        elif pa.types.is_integer(kind) and kind != pa.uint64():
            kind = pa.int64()
        elif pa.types.is_floating(kind):
            kind = pa.float64()
        elif pa.types.is_dictionary(kind) or pa.types.is_large_string(kind):
            kind = pa.string()
        if kind != field.type:
            rows = rows.set_column(place, field.name, column.cast(kind))
    # Some engines know that a count is never null; the others do not say.
    return rows.cast(pa.schema([pa.field(field.name, field.type) for field in rows.schema]))


def write_batches(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, path: Path, format: str | None
) -> None:
    """Write record batches to a file that appears when the last one is written."""
    import pyarrow as pa

    kind = file_format(path, format)
    if kind not in WRITABLE:
        raise InputError(
            f"discreet does not write {kind} files",
            code="unknown-format",
            hint="write csv, parquet or arrow",
            file=path,
        )
    try:
        with atomic_file(path) as temporary, _writer(temporary, schema, kind, path) as writer:
            for batch in batches:
                # Engines may call a text large or dictionary-encoded: the file keeps one schema.
                rows = pa.Table.from_batches([batch]).cast(schema)
                writer.write_table(_bare(rows) if kind == "arrow" else rows)
    except OSError as error:
        raise EngineError(
            f"the file cannot be written: {error.strerror or type(error).__name__}",
            code="cannot-write",
            hint="check that the folder is there and may be written, or write elsewhere",
            file=path,
        ) from None
    finally:
        if isinstance(batches, Generator):  # an engine that still gives rows takes no question
            batches.close()


def _bare(rows: pa.Table) -> pa.Table:
    """Return rows without bytes of their own below missing values: an Arrow file is memory as it is.

    Engines leave there whatever the memory of the process held before.
    """
    import numpy as np
    import pyarrow as pa

    return rows.take(pa.array(np.arange(rows.num_rows))).combine_chunks()


def _writer(path: Path, schema: pa.Schema, format: str, target: Path) -> Any:
    # Any: three writers of pyarrow that share write_table without sharing a class.
    import pyarrow as pa

    if format == "csv":
        from pyarrow import csv

        # Missing is an empty field, an empty text is "", a text with a delimiter is quoted.
        delimiter = "\t" if target.suffix.lower() == ".tsv" else ","
        options = csv.WriteOptions(delimiter=delimiter, quoting_style="needed")
        return csv.CSVWriter(str(path), schema, write_options=options)
    if format == "parquet":
        from pyarrow import parquet

        return parquet.ParquetWriter(str(path), schema, compression="zstd")
    return pa.ipc.new_file(str(path), schema)


def loadable(rows: pa.Table) -> pa.Table:
    """Return rows in the few types that every engine takes."""
    import pyarrow as pa

    for place, field in enumerate(rows.schema):
        kind = field.type
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        if (
            pa.types.is_large_string(kind)
            or pa.types.is_string_view(kind)
            or pa.types.is_null(kind)
        ):
            kind = pa.string()
        elif pa.types.is_unsigned_integer(kind):
            kind = pa.int64() if kind.bit_width >= 32 else pa.int32()
        elif kind == pa.float16():
            kind = pa.float32()
        elif kind == pa.date64():
            kind = pa.date32()
        elif pa.types.is_timestamp(kind) and kind.unit == "ns":
            kind = pa.timestamp("us", kind.tz)
        if kind != field.type:
            rows = rows.set_column(place, field.name, _cast(rows.column(place), kind, field.name))
    return rows


def _cast(column: pa.ChunkedArray, kind: pa.DataType, name: str) -> pa.ChunkedArray:
    import pyarrow as pa

    try:
        return column.cast(kind)
    except pa.ArrowInvalid:
        raise InputError(
            f"column {name!r} holds values that do not fit into {kind}",
            code="unsupported-type",
            hint="convert it to numbers, text or dates",
            column=name,
        ) from None
