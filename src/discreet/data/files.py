"""Files as people really have them, read into rows, lines or Arrow tables."""

from __future__ import annotations

import datetime
import io
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.data import csv_text
from discreet.data.amounts import AMOUNT, plain_amount
from discreet.data.file_formats import COMPRESSED, FORMATS, file_format, require_file
from discreet.data.sniffing import CsvFormat, sniff
from discreet.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "COMPRESSED",
    "FORMATS",
    "CsvFormat",
    "file_format",
    "read_arrow",
    "read_lines",
    "read_rows",
    "require_file",
    "rows_as_arrow",
    "sniff",
    "typed_column",
    "write_utf8",
]

# Types by their Arrow names, looked up when pyarrow is loaded.
_ARROW = {
    "integer": lambda: _arrow().int64(),
    "number": lambda: _arrow().float64(),
    AMOUNT: lambda: _arrow().float64(),
    "date": lambda: _arrow().date32(),
    "datetime": lambda: _arrow().timestamp("us"),
    "boolean": lambda: _arrow().bool_(),
    "text": lambda: _arrow().string(),
}


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


def write_utf8(
    source: str | Path,
    target: str | Path,
    encoding: str,
    *,
    first: int = 1,
    last: int | None = None,
) -> None:
    """Copy a text file, or some of its lines, into UTF-8 for an engine that reads nothing else."""
    with Path(target).open("wb") as stream:
        if first == 1 and last is None:
            stream.writelines(text.encode() for text in csv_text.blocks(source, encoding))
            return
        lines = itertools.islice(csv_text.lines_of(Path(source), encoding), first - 1, last)
        stream.writelines(line.encode() for line in lines)


def read_arrow(path: str | Path, format: str | None = None) -> pa.Table:
    """Return an Arrow, Feather, Parquet, SPSS, Stata, SAS or small CSV file as an Arrow table.

    Large CSV and Parquet files are for the engine (`Engine.scan`), which does not load them.
    """
    file = require_file(path)
    kind = file_format(file, format)
    if kind == "csv":
        return rows_as_arrow(file, sniff(file, thorough=True))
    if kind in ("arrow", "parquet"):
        return _read_columnar(file, kind)
    from discreet.data.statistical import read_statistical

    return read_statistical(file, kind)[0]


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


def rows_as_arrow(file: Path, form: CsvFormat) -> pa.Table:
    """Return the records of a small CSV file."""
    import pyarrow as pa

    text = csv_text.decode(file.read_bytes(), form.encoding, file).removeprefix("\ufeff")
    lines = itertools.islice(io.StringIO(text, newline=""), form.first - 1, form.last)
    rows = [
        fields
        for _, fields in csv_text.numbered(lines, form.delimiter, form.quote, file, complete=True)
    ]
    missing = set(form.na)
    columns, names = [], []
    for place, kind in enumerate(form.types):
        if kind == "empty":
            continue
        values = [row[place] for row in rows[form.header :]]
        known = [None if value in missing else value for value in values]
        columns.append(typed_column(known, kind, form.decimal, form.thousands))
        names.append(form.names[place])
    return pa.table(columns, names=names)


def typed_column(
    values: Sequence[str | None], kind: str, decimal: str = ".", thousands: str = ""
) -> pa.Array:
    """Return texts as an Arrow array of the type that was found for them."""
    import pyarrow as pa

    known: list[Any] = list(values)
    name, _, pattern = kind.partition(":")
    if name == AMOUNT:
        known = [None if v is None else plain_amount(v) for v in known]
    if name in ("number", AMOUNT):
        known = [_plain_number(v, decimal, thousands) for v in known]
    elif pattern:
        known = [None if v is None else _timed(v, pattern) for v in known]
        if name == "date":
            known = [None if v is None else v.date() for v in known]
        return pa.array(known, _ARROW[name]())
    elif name == "datetime":
        known = [None if v is None else v.replace("T", " ") for v in known]
    return pa.array(known, pa.string()).cast(_ARROW[name]())


def _plain_number(value: str | None, decimal: str, thousands: str) -> str | None:
    if value is None:
        return None
    plain = value.replace(thousands, "") if thousands else value
    return plain.replace(",", ".") if decimal == "," else plain


def _arrow() -> Any:
    # Any: the module pyarrow, which only files that are loaded need.
    import pyarrow

    return pyarrow


def _timed(value: str, pattern: str) -> datetime.datetime:
    return datetime.datetime.strptime(value, pattern)  # noqa: DTZ007  # files name no time zone
