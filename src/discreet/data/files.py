"""Files as people really have them: how a CSV file is written, found or given; and other formats.

A CSV file does not say how it is written. `sniff` finds encoding, delimiter, decimal mark, quoting,
header, missing-value tokens and types from a sample, so that a large file is never read in Python;
the engine then reads it by that `CsvFormat`. Where the engine stumbles later in the file,
`sniff(..., thorough=True)` walks through all of it once and says in which line, or finds the wider
types that the sample did not show.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.data import csv_text
from discreet.data.csv_fields import (
    MISSING,
    decimal_mark,
    has_header,
    require_names,
    type_of,
    wider,
)
from discreet.errors import EngineError, InputError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "FORMATS",
    "CsvFormat",
    "file_format",
    "read_arrow",
    "read_lines",
    "read_rows",
    "sniff",
    "write_utf8",
]

# Records that a walk through a whole file holds at a time.
_PIECE = 50_000

#: Suffixes that name a format.
FORMATS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".data": "csv",
    ".asc": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".sav": "spss",
    ".zsav": "spss",
    ".dta": "stata",
    ".sas7bdat": "sas",
    ".xpt": "sas",
}


@dataclasses.dataclass(frozen=True)
class CsvFormat:
    """How a CSV file is written.

    `types` has one of integer, number, text, date, datetime, boolean per column; a delimiter of
    two characters (``", "``) means that blanks follow it; an empty `quote` means no quoting.
    """

    delimiter: str = ","
    encoding: str = "utf-8"
    decimal: str = "."
    quote: str = '"'
    header: bool = True
    na: tuple[str, ...] = ("",)
    names: tuple[str, ...] = ()
    types: tuple[str, ...] = ()


def file_format(path: str | Path, given: str | None = None) -> str:
    """Return csv, parquet, arrow, spss, stata or sas, as given or by the file's suffix.

    >>> file_format("people.parquet"), file_format("adult.data"), file_format("x", "csv")
    ('parquet', 'csv', 'csv')
    """
    if given is not None:
        if given not in FORMATS.values():
            raise InputError(
                f"there is no file format {given!r}",
                code="unknown-format",
                hint="choose one of " + ", ".join(dict.fromkeys(FORMATS.values())),
                file=path,
            )
        return given
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise InputError(
            f"the suffix {suffix!r} names no file format",
            code="unknown-format",
            hint="say format='csv', or use one of the suffixes " + ", ".join(FORMATS),
            file=path,
        )
    return FORMATS[suffix]


def require_file(path: str | Path) -> Path:
    """Return the path of an existing, non-empty file, or say what is wrong with it."""
    file = Path(path)
    if not file.exists():
        raise InputError("there is no such file", code="no-file", file=file)
    if file.is_dir():
        raise InputError("this is a folder, not a file", code="not-a-file", file=file)
    if file.stat().st_size == 0:
        raise InputError(
            "the file is empty", code="empty-file", hint="give a file with records", file=file
        )
    return file


def sniff(
    path: str | Path,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    quote: str | None = None,
    header: bool | None = None,
    na: Sequence[str] | None = None,
    thorough: bool = False,
) -> CsvFormat:
    r"""Find how a CSV file is written; what is given is not guessed.

    Parameters
    ----------
    thorough
        Read the whole file, not only a sample: slow on large files, but it finds the line of
        every mistake.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = file.write_text("name;wage\nÁgnes;1,5\nBo;NA\n", encoding="cp1252")
    >>> found = sniff(file)
    >>> found.delimiter, found.decimal, found.encoding, found.types, found.na
    (';', ',', 'latin-1', ('text', 'number'), ('', 'NA'))
    """
    file = require_file(path)
    csv_text.require_marks(file, delimiter=delimiter, quote=quote, decimal=decimal)
    parts, whole = csv_text.sample(file)
    csv_text.refuse_binary(parts[0], file)
    codec = csv_text.find_encoding(parts, encoding, file, whole=whole)
    if codec.startswith("utf-16") and not whole:
        # Chunks from the middle may start inside a character, so only the head is looked at.
        parts = parts[:1]
    texts = [csv_text.decode(part, codec, file) for part in parts]
    if "\0" in texts[0]:
        line = texts[0].count("\n", 0, texts[0].index("\0")) + 1
        raise csv_text.nul_byte(file, line)
    mark = '"' if quote is None else quote
    split = delimiter if delimiter is not None else csv_text.find_delimiter(texts[0], mark)
    records = list(csv_text.records_of(texts[0], split, mark, file, complete=whole))
    if not records:
        raise InputError("the file has only empty lines", code="empty-file", file=file)
    for text in texts[1:]:
        records += csv_text.chunk_records(text, split, mark, len(records[0][1]))
    found = _judge(records, CsvFormat(split, codec, decimal or "", mark), header, na, file)
    return _walk(file, found, na) if thorough and not whole else found


def _walk(file: Path, form: CsvFormat, na: Sequence[str] | None) -> CsvFormat:
    """Go through a whole file, piece by piece, and return the format with types wide enough."""
    lines = csv_text.lines_of(file, form.encoding)
    records = csv_text.numbered(lines, form.delimiter, form.quote, file, complete=True)
    if form.header:
        next(records)
    types: list[str | None] = [None] * len(form.names)
    missing = set(form.na)
    while piece := list(itertools.islice(records, _PIECE)):
        for line, fields in piece:
            if len(fields) != len(form.names):
                raise _ragged(file, line, len(fields), len(form.names), form.delimiter)
        for place, name in enumerate(form.names):
            values = dict.fromkeys(fields[place] for _, fields in piece)
            if na is None:
                missing |= values.keys() & MISSING
            known = [value for value in values if value not in missing]
            if known:
                kind = type_of(known, form.decimal, name, place, piece, file)
                types[place] = wider(types[place], kind)
    wide = tuple(kind or "text" for kind in types)
    tokens = form.na if na is not None else ("", *sorted(missing - {""}))
    return dataclasses.replace(form, types=wide, na=tokens)


def _judge(
    records: list[tuple[int, list[str]]],
    form: CsvFormat,
    header: bool | None,
    na: Sequence[str] | None,
    file: Path,
) -> CsvFormat:
    width = len(records[0][1])
    for line, fields in records:
        if len(fields) != width:
            raise _ragged(file, line, len(fields), width, form.delimiter)
    columns = [dict.fromkeys(record[1][place] for record in records[1:]) for place in range(width)]
    first = records[0][1]
    if header is None:
        header = has_header(first, columns)
    names = tuple(first) if header else tuple(f"column_{i + 1}" for i in range(width))
    if header:
        require_names(names, file, records[0][0])
        if len(records) == 1:
            raise InputError(
                "the file has a header and no records", code="no-rows", file=file, line=1
            )
    else:
        for values, value in zip(columns, first, strict=True):
            values.setdefault(value)
    if na is None:
        found = {value for values in columns for value in values if value in MISSING}
        na = ("", *sorted(found))
    missing = set(na)
    kept = [[value for value in values if value not in missing] for values in columns]
    decimal = form.decimal or decimal_mark(kept, form.delimiter)
    form = dataclasses.replace(form, decimal=decimal, header=header, na=tuple(na), names=names)
    data = records[1:] if header else records
    types = tuple(
        type_of(values, decimal, names[place], place, data, file)
        for place, values in enumerate(kept)
    )
    return dataclasses.replace(form, types=types)


def _ragged(file: Path, line: int, found: int, expected: int, delimiter: str) -> InputError:
    return InputError(
        f"the line has {found} fields where the first has {expected}",
        code="ragged-row",
        hint="give every line as many fields as the header; quote text that holds the delimiter "
        f"{delimiter!r}",
        file=file,
        line=line,
        expected=expected,
        found=found,
    )


def read_rows(
    path: str | Path,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    quote: str = '"',
) -> list[tuple[int, list[str]]]:
    """Return the records of a small text file (a code list, a hierarchy) with their lines."""
    file = require_file(path)
    csv_text.require_marks(file, delimiter=delimiter or None, quote=quote)
    data = file.read_bytes()
    csv_text.refuse_binary(data, file)
    text = csv_text.decode(data, csv_text.find_encoding([data], encoding, file, whole=True), file)
    text = text.removeprefix("\ufeff")
    split = delimiter or csv_text.find_delimiter(text, quote)
    return list(csv_text.records_of(text, split, quote, file, complete=True))


def read_lines(path: str | Path) -> list[tuple[int, str]]:
    """Return the lines of a small text file that are not empty, with their numbers."""
    # A separator that text does not have: one field per line.
    return [(line, fields[0]) for line, fields in read_rows(path, delimiter="\x1f", quote="")]


def write_utf8(source: str | Path, target: str | Path, encoding: str) -> None:
    """Copy a text file into UTF-8, block by block, for an engine that reads nothing else."""
    with Path(target).open("wb") as stream:
        stream.writelines(text.encode() for text in csv_text.blocks(source, encoding))


def read_arrow(path: str | Path) -> pa.Table:
    """Return an Arrow, Feather, Parquet, SPSS, Stata, SAS or small CSV file as an Arrow table.

    Large CSV and Parquet files are for the engine (`Engine.scan`), which does not load them.
    """
    file = require_file(path)
    kind = file_format(file)
    if kind == "csv":
        return _read_csv(file, sniff(file, thorough=True))
    if kind in ("arrow", "parquet"):
        return _read_columnar(file, kind)
    return _read_statistical(file, kind)


def _read_columnar(file: Path, kind: str) -> pa.Table:
    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.parquet

    try:
        if kind == "parquet":
            return pyarrow.parquet.read_table(file)
        with file.open("rb") as stream:
            head = stream.read(6)
        if head in (b"ARROW1", b"FEA1\0\0") or head.startswith(b"FEA1"):
            return pyarrow.feather.read_table(file)
        with pa.ipc.open_stream(file.read_bytes()) as reader:
            return reader.read_all()
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(
            f"the file is not {'Parquet' if kind == 'parquet' else 'Arrow'}, or is damaged",
            code="bad-file",
            hint=str(error).splitlines()[0][:200],
            file=file,
        ) from None


def _read_csv(file: Path, form: CsvFormat) -> pa.Table:
    import pyarrow as pa
    import pyarrow.csv

    kinds = {
        "integer": pa.int64(),
        "number": pa.float64(),
        "date": pa.date32(),
        "datetime": pa.timestamp("us"),
        "boolean": pa.bool_(),
        "text": pa.string(),
    }
    text = csv_text.decode(file.read_bytes(), form.encoding, file).removeprefix("\ufeff")
    rows = [
        fields
        for _, fields in csv_text.records_of(text, form.delimiter, form.quote, file, complete=True)
    ]
    missing = set(form.na)
    columns = []
    for place, kind in enumerate(form.types):
        values = [row[place] for row in rows[form.header :]]
        known = [None if value in missing else value for value in values]
        if kind == "number" and form.decimal == ",":
            known = [None if v is None else v.replace(",", ".") for v in known]
        if kind == "datetime":
            known = [None if v is None else v.replace("T", " ") for v in known]
        columns.append(pa.array(known, pa.string()).cast(kinds[kind]))
    return pa.table(columns, names=list(form.names))


def _read_statistical(file: Path, kind: str) -> pa.Table:
    try:
        import pyreadstat
    except ModuleNotFoundError:
        raise EngineError(
            f"reading {file.suffix} files needs the extra 'files'",
            code="missing-extra",
            hint="pip install 'discreet[files]'",
        ) from None
    import pyarrow as pa

    readers = {"spss": "read_sav", "stata": "read_dta", "sas": "read_sas7bdat"}
    reader = "read_xport" if file.suffix.lower() == ".xpt" else readers[kind]
    try:
        frame, _ = getattr(pyreadstat, reader)(str(file), output_format="dict")
    except Exception as error:  # pyreadstat has several error classes and raises others too
        raise InputError(
            f"the file cannot be read as {kind.upper()}",
            code="bad-file",
            hint=str(error).splitlines()[0][:200],
            file=file,
        ) from None
    return pa.table({name: _column(values) for name, values in frame.items()})


def _column(values: Any) -> Any:
    # Any: numpy arrays of whatever pyreadstat found; NaN and "" are its missing values.
    import pyarrow as pa

    array = pa.array(values, from_pandas=True)
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        import pyarrow.compute as pc

        return pc.if_else(pc.equal(array, ""), None, array)
    if pa.types.is_floating(array.type):
        import pyarrow.compute as pc

        whole = pc.all(pc.and_(pc.equal(pc.floor(array), array), pc.less(pc.abs(array), 2.0**53)))
        if whole.as_py() and len(array) > array.null_count:
            return array.cast(pa.int64())
    return array
