"""Where records come from: files, frames, tables of a database; all become rows of an engine."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.data.amounts import AMOUNT
from discreet.data.canonical import canonical, canonical_rows
from discreet.data.codes import code_text
from discreet.data.engines.base import Engine, Relation, connect
from discreet.data.engines.spelling import require_distinct
from discreet.data.frames import Library
from discreet.data.reading import Guess, Reading
from discreet.errors import InputError
from discreet.registry import is_address

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.files import CsvFormat

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
    from discreet.data.parts import is_several

    is_file = isinstance(source, Path) or (isinstance(source, str) and not is_address(source))
    if not is_file:
        return None
    path = Path(source)
    if given is None and (path.suffix.lower() == ".zip" or is_several(path)):
        return None
    return file_format(path, given)


def open_source(
    source: Any,
    engine: Engine | str | None,
    format: str | None,
    options: Mapping[str, Any],
    texts: Sequence[str],
    columns: Sequence[str] | None = None,
) -> tuple[Relation, str, str, Reading | None]:
    """Return rows, the library to give frames of, a name for the relation, and how it was read.

    Of a table no other columns than those named are looked at; None names all. Any: a path, an
    URL or a frame of any library.
    """
    if isinstance(source, str) and is_address(source):
        rows, library, name = _open_table(source, engine, options, columns)
        return canonical(rows), library, name, None
    if isinstance(source, str | Path):
        path = Path(source)
        rows, reading = _open_files(path, _engine(engine), format, options, texts)
        return canonical(rows), "pandas", _stem(path), reading
    if options or format is not None:
        unknown = next(iter(options), "format")
        raise InputError(
            f"{unknown!r} says how a file is written, and this is not a file",
            code="unknown-option",
            hint="leave it out",
        )
    if isinstance(source, Relation):
        return canonical(source), "pandas", "data", None
    if type(source).__module__.startswith("pyspark."):
        return canonical(_open_spark(source)), "pandas", "data", None
    frame, library = _open_frame(source)
    return _engine(engine).load(canonical_rows(frame)), library, "data", None


def _stem(path: Path) -> str:
    """Return a name for what a path stands for.

    >>> _stem(Path("people.csv.gz")), _stem(Path("parts/people-*.csv")), _stem(Path("people/"))
    ('people', 'people-', 'people')
    """
    from discreet.data.files import COMPRESSED

    if path.suffix.lower() in COMPRESSED:
        path = path.with_suffix("")
    return re.sub(r"[*?\[\]]", "", path.stem) or "data"


def _engine(given: Engine | str | None) -> Engine:
    if given is None:
        return default_engine()
    return connect(given) if isinstance(given, str) else given


def _open_table(
    url: str,
    engine: Engine | str | None,
    options: Mapping[str, Any],
    columns: Sequence[str] | None,
) -> tuple[Relation, str, str]:
    address, _, table = url.partition("#")
    if not table:
        raise InputError(
            "the URL names no table",
            code="no-table",
            hint="end it with #table or #schema.table",
        )
    where = connect(address, **options) if engine is None else _engine(engine)
    try:
        rows = where.table(table) if columns is None else where.columns_of_table(table, columns)
    except BaseException:
        if not isinstance(engine, Engine):  # nobody else has it
            where.close()
        raise
    return rows, "pandas", table.rpartition(".")[2]


def _open_files(
    path: Path,
    engine: Engine,
    format: str | None,
    options: Mapping[str, Any],
    texts: Sequence[str],
) -> tuple[Relation, Reading | None]:
    """Return the rows of a file, of what an archive holds, or of several files as one."""
    from discreet.data.files import COMPRESSED, file_format, require_file
    from discreet.data.parts import is_several, part_files, plain_files

    if not is_several(path):
        require_file(path)
        packed = path.suffix.lower() in COMPRESSED
        if not packed or (path.suffix.lower() != ".zip" and format != "parquet"):
            file_format(path, format)  # an unknown format is told before anything is unpacked
        if not packed:
            return _open_file(path, engine, format, options, texts)
        files = [path]
    else:
        files = part_files(path, format)
        if all(file_format(file, format) == "parquet" for file in files):
            _require_options(options, set())
            rows = engine.scan(path if path.is_dir() else files[0], format="parquet")
            if path.is_dir() or len(files) == 1:
                return rows, _several(Reading("parquet"), len(files))
    with plain_files(files) as plain:
        if len(plain) == 1:
            return _open_file(plain[0], engine, format, options, texts, is_kept=False)
        return _together(plain, engine, format, options, texts)


def _together(
    files: Sequence[Path],
    engine: Engine,
    format: str | None,
    options: Mapping[str, Any],
    texts: Sequence[str],
) -> tuple[Relation, Reading | None]:
    """Return files with the same columns, in any order, as one."""
    import pyarrow as pa

    opened = [_loaded(file, format, options, texts) for file in files]
    first, reading = opened[0]
    for file, (rows, _) in zip(files[1:], opened[1:], strict=True):
        if set(rows.column_names) != set(first.column_names):
            odd = sorted(set(rows.column_names) ^ set(first.column_names))
            raise InputError(
                f"the files have different columns: {', '.join(odd[:5])}",
                code="different-columns",
                hint="give every file the same columns, or read them one by one",
                file=file,
                column=odd[0],
            )
    tables = [rows.select(first.column_names) for rows, _ in opened]
    for name in first.column_names:
        kinds = {str(rows.schema.field(name).type) for rows in tables}
        if len(kinds) > 1 and not kinds <= {"int64", "double"}:
            tables = [
                rows.set_column(
                    rows.column_names.index(name),
                    name,
                    pa.array(
                        [None if v is None else code_text(v) for v in rows[name].to_pylist()],
                        pa.string(),
                    ),
                )
                for rows in tables
            ]
    rows = pa.concat_tables(tables, promote_options="permissive")
    if reading is None:
        return engine.load(rows), None
    asked = dict.fromkeys(each for _, one in opened if one for each in one.questions)
    reading = dataclasses.replace(reading, questions=tuple(asked))
    return engine.load(rows), _several(reading, len(files))


def _several(reading: Reading, count: int) -> Reading:
    found = Guess("files", f"{count} as one, by their names", "")
    return dataclasses.replace(reading, guesses=(found, *reading.guesses))


def _loaded(
    file: Path, format: str | None, options: Mapping[str, Any], texts: Sequence[str]
) -> tuple[pa.Table, Reading | None]:
    """Return the rows of one of several files."""
    with connect("duckdb://") as reader:
        rows, reading = _open_file(file, reader, format, options, texts, is_kept=False)
        return reader.fetch(rows), reading


def _open_file(
    path: Path,
    engine: Engine,
    format: str | None,
    options: Mapping[str, Any],
    texts: Sequence[str],
    *,
    is_kept: bool = True,
) -> tuple[Relation, Reading | None]:
    """Return the rows of one plain file; one that is not kept is read at once."""
    from discreet.data.files import file_format, read_arrow, require_file, sniff
    from discreet.data.fixed_width import has_metadata

    require_file(path)
    kind = file_format(path, format)
    given = {name: value for name, value in options.items() if value is not None}
    if kind == "csv" and ("metadata" in given or (format is None and has_metadata(path))):
        kind = "fixed-width"
    _require_options(given, _OPTIONS.get(kind, set()))
    if kind == "csv":
        form = sniff(path, **given, texts=texts)
        found = {**given, "form": form, "texts": tuple(texts)}
        rows = engine.scan(path, format="csv", options=found)
        if _shows_more(form, rows):
            form = sniff(path, **given, texts=texts, thorough=True)
        return rows, csv_reading(form)
    if kind in ("excel", "ods"):
        from discreet.data.workbook import read_workbook

        rows, reading = read_workbook(path, kind, texts=texts, **given)
        return engine.load(canonical_rows(rows)), reading
    if kind in ("spss", "stata", "sas"):
        from discreet.data.statistical import read_statistical

        rows, reading = read_statistical(path, kind, **given)
        return engine.load(canonical_rows(rows)), reading
    if kind == "fixed-width":
        from discreet.data.fixed_width import read_fixed_width

        rows, reading = read_fixed_width(path, **given)
        return engine.load(canonical_rows(rows)), reading
    if is_kept:
        return engine.scan(path, format=kind), None
    return engine.load(canonical_rows(read_arrow(path, kind))), None


def _shows_more(form: CsvFormat, rows: Relation) -> bool:
    """Whether the file holds texts that the sample did not show, or showed without their line."""
    from discreet.data.csv_fields import is_unplaced

    if any(is_unplaced(question) for question in form.questions):
        return True
    fields = [field for field in rows.schema if field.name in form.names]
    kinds = dict(zip(form.names, form.types, strict=True))
    return any(kinds[f.name] != "text" and str(f.type) == "string" for f in fields)


#: What may be said of each kind of file.
_OPTIONS: dict[str, set[str]] = {
    "csv": {
        *("delimiter", "encoding", "decimal", "quote", "header", "na"),
        *("dates", "thousands", "skip", "footer"),
    },
    "excel": {"sheet", "header", "skip", "footer", "dates", "decimal", "thousands", "na"},
    "ods": {"sheet", "header", "skip", "footer", "dates", "decimal", "thousands", "na"},
    "spss": {"labels"},
    "stata": {"labels"},
    "sas": {"labels", "metadata"},
    "fixed-width": {"metadata", "encoding"},
}


def csv_reading(form: CsvFormat) -> Reading:
    """Return what was found about a CSV file."""
    marks = {"\t": "tabs", ", ": "', '"}
    guesses = [
        Guess("fields end at", marks.get(form.delimiter, repr(form.delimiter)), "delimiter"),
        Guess("encoding", form.encoding, "encoding"),
        Guess("decimal mark", repr(form.decimal), "decimal"),
    ]
    if form.thousands:
        guesses.append(Guess("thousands mark", repr(form.thousands), "thousands"))
    named = f"in line {form.first}" if form.header else "none"
    guesses.append(Guess("names of columns", named, "skip" if form.header else "header"))
    if form.last is not None:
        guesses.append(Guess("last record", f"in line {form.last}", "footer"))
    written = {
        kind.partition(":")[2]: name
        for name, kind in zip(form.names, form.types, strict=True)
        if ":" in kind
    }
    guesses += [
        Guess("dates", f"{_shown(pattern)}, as in {name}", "dates")
        for pattern, name in written.items()
    ]
    without = [name for name, kind in zip(form.names, form.types, strict=True) if kind == AMOUNT]
    if without:
        told = f"read without their mark ($, €, %): {', '.join(without)}"
        guesses.append(Guess("amounts", told, "types"))
    return Reading("csv", tuple(guesses), form.questions)


def _shown(pattern: str) -> str:
    """Return a pattern of dates as people write it: dd/mm/yyyy."""
    words = (("%d", "dd"), ("%m", "mm"), ("%Y", "yyyy"), ("%H", "hh"), ("%M", "mm"), ("%S", "ss"))
    for mark, word in words:
        pattern = pattern.replace(mark, word)
    return pattern


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
    except OverflowError as error:
        raise InputError(
            "a column holds a whole number of more than 64 bits",
            code="number-too-large",
            hint="read it as text, or as numbers with a decimal point",
        ) from error
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        found = re.search(r"column (\S+) with type", str(error))
        raise InputError(
            "a column mixes values of different types",
            code="mixed-types",
            hint="convert it to one type, such as text",
            column=found.group(1) if found else None,
        ) from None
    for field in rows.schema:
        if isinstance(field.type, pa.BaseExtensionType) and "pandas" in field.type.extension_name:
            raise InputError(
                f"column {field.name!r} holds values of a type that pandas alone has "
                f"({field.type.extension_name.removeprefix('pandas.')})",
                code="unsupported-type",
                hint="convert it to text, or to numbers or dates",
                column=field.name,
            )
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
