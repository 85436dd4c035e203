"""Where records come from: files, frames, tables of a database; all become rows of an engine."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.data.canonical import canonical, canonical_rows
from discreet.data.engines.base import Engine, Relation, connect
from discreet.data.engines.spelling import require_distinct
from discreet.data.frames import Library
from discreet.errors import InputError
from discreet.registry import is_address

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["default_engine", "open_source", "source_format"]


@functools.cache
def default_engine() -> Engine:
    """Return the DuckDB inside the process that everything shares unless told otherwise."""
    return connect("duckdb://")


def source_format(source: Any, given: str | None) -> str | None:
    """Return the format of a file, as given or by its suffix; none where it is no file.

    Any: a path, an URL or a frame of any library.

    >>> source_format("people.parquet", None)
    'parquet'
    """
    from discreet.data.engines.results import file_format

    is_file = isinstance(source, Path) or (isinstance(source, str) and not is_address(source))
    return file_format(Path(source), given) if is_file else None


def open_source(
    source: Any,
    engine: Engine | str | None,
    format: str | None,
    options: Mapping[str, Any],
    texts: Sequence[str],
) -> tuple[Relation, str, str]:
    """Return rows, the library to give frames of, and a name for the relation.

    Any: a path, an URL or a frame of any library.
    """
    if isinstance(source, str) and is_address(source):
        rows, library, name = _open_table(source, engine, options)
        return canonical(rows), library, name
    if isinstance(source, str | Path):
        rows = _open_file(Path(source), _engine(engine), format, options, texts)
        return canonical(rows), "pandas", Path(source).stem
    if options or format is not None:
        unknown = next(iter(options), "format")
        raise InputError(
            f"{unknown!r} says how a file is written, and this is not a file",
            code="unknown-option",
            hint="leave it out",
        )
    if isinstance(source, Relation):
        return canonical(source), "pandas", "data"
    if type(source).__module__.startswith("pyspark."):
        return canonical(_open_spark(source)), "pandas", "data"
    frame, library = _open_frame(source)
    return _engine(engine).load(canonical_rows(frame)), library, "data"


def _engine(given: Engine | str | None) -> Engine:
    if given is None:
        return default_engine()
    return connect(given) if isinstance(given, str) else given


def _open_table(
    url: str, engine: Engine | str | None, options: Mapping[str, Any]
) -> tuple[Relation, str, str]:
    address, _, table = url.partition("#")
    if not table:
        raise InputError(
            "the URL names no table",
            code="no-table",
            hint="end it with #table or #schema.table",
        )
    where = connect(address, **options) if engine is None else _engine(engine)
    return where.table(table), "pandas", table.rpartition(".")[2]


def _open_file(
    path: Path,
    engine: Engine,
    format: str | None,
    options: Mapping[str, Any],
    texts: Sequence[str],
) -> Relation:
    from discreet.data.engines.results import file_format
    from discreet.data.files import read_arrow, require_file

    require_file(path)
    kind = file_format(path, format)
    if kind == "csv":
        known = {"delimiter", "encoding", "decimal", "quote", "header", "na"}
        _require_options(options, known)
        return engine.scan(path, format="csv", options={**options, "texts": tuple(texts)})
    _require_options(options, set())
    if kind in ("parquet", "arrow"):
        return engine.scan(path, format=kind)
    return engine.load(read_arrow(path))


def _require_options(options: Mapping[str, Any], known: set[str]) -> None:
    from discreet.errors import nearest

    for name in options:
        if name not in known:
            guess = nearest(name, known)
            raise InputError(
                f"there is no option {name!r} for this kind of file",
                code="unknown-option",
                hint=f"write {guess!r}" if guess else "choose one of " + ", ".join(sorted(known)),
            )


def _open_frame(source: Any) -> tuple[pa.Table, str]:
    # Any: a frame of any library that narwhals reads.
    import pyarrow as pa

    if isinstance(source, pa.Table | pa.RecordBatch | pa.RecordBatchReader):
        if isinstance(source, pa.RecordBatchReader):
            source = source.read_all()
        rows = pa.Table.from_batches([source]) if isinstance(source, pa.RecordBatch) else source
        require_distinct(rows.column_names)
        return _plain_texts(rows), Library.of("pyarrow", rows, rows)
    library = type(source).__module__.partition(".")[0]
    if library == "pandas":
        names = [str(column) for column in source.columns]
        require_distinct(names)
        if list(source.columns) != names:
            source = source.set_axis(names, axis=1)
        rows = _from_pandas(source)
        return rows, Library.of("pandas", source, rows)
    if library == "polars":
        frame = source.collect() if hasattr(source, "collect") else source
        rows = _plain_texts(_from_polars(frame))
        return rows, Library.of("polars", frame, rows)
    raise InputError(
        f"discreet cannot read a {type(source).__module__}.{type(source).__qualname__}",
        code="unknown-source",
        hint="give a path, a frame of pandas, polars or pyarrow, or a database's URL with #table",
    )


def _from_polars(frame: Any) -> pa.Table:
    # Any: polars is an extra.
    mixed = [
        name for name, kind in frame.schema.items() if kind == "Object" or str(kind) == "Object"
    ]
    if mixed:
        raise InputError(
            f"column {mixed[0]!r} mixes values of different types",
            code="mixed-types",
            hint="convert it to one type, such as text",
            column=mixed[0],
        )
    return frame.to_arrow()


def _from_pandas(frame: Any) -> pa.Table:
    # Any: pandas is imported by the caller, not here.
    import pyarrow as pa

    try:
        rows = pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        found = re.search(r"column (\S+) with type", str(error))
        raise InputError(
            "a column mixes values of different types",
            code="mixed-types",
            hint="convert it to one type, such as text",
            column=found.group(1) if found else None,
        ) from None
    return _plain_texts(rows.replace_schema_metadata(None))


def _plain_texts(rows: pa.Table) -> pa.Table:
    """Return rows whose texts are of one Arrow type: libraries use four."""
    import pyarrow as pa

    for place, field in enumerate(rows.schema):
        kind = field.type
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
            kind = pa.string()
        if pa.types.is_null(kind):
            kind = pa.string()
        if kind != field.type:
            column = rows.column(place).cast(kind)
            rows = rows.set_column(place, field.name, column)
    return rows


def _open_spark(frame: Any) -> Relation:
    # Any: pyspark is an extra.
    from discreet.data.engines.spark import Spark

    return Spark.of(frame)
