"""Files as people really have them: how a CSV file is written, found or given; and other formats.

A CSV file does not say how it is written. `sniff` finds encoding, delimiter, decimal mark, quoting,
header, missing-value tokens and types from a sample, so that a large file is never read in Python;
the engine then reads it by that `CsvFormat`. Where the engine stumbles later in the file,
`sniff(..., thorough=True)` walks through all of it once and says in which line, or finds the wider
types that the sample did not show.
"""

from __future__ import annotations

import dataclasses
import datetime
import io
import itertools
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.data import csv_text
from discreet.data.csv_edges import is_note, notes, titles
from discreet.data.csv_fields import (
    MISSING,
    UNSURE,
    decimal_mark,
    grouping,
    has_header,
    is_empty_column,
    require_names,
    type_of,
    wider,
)
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

# How dates end that have the year last, with or without a time.
_DAY_OR_MONTH = ("%Y", "%Y %H:%M", "%Y %H:%M:%S")
# Records that a walk through a whole file holds at a time.
_PIECE = 50_000

# Types by their Arrow names, looked up when pyarrow is loaded.
_ARROW = {
    "integer": lambda: _arrow().int64(),
    "number": lambda: _arrow().float64(),
    "date": lambda: _arrow().date32(),
    "datetime": lambda: _arrow().timestamp("us"),
    "boolean": lambda: _arrow().bool_(),
    "text": lambda: _arrow().string(),
}

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
    ".xlsx": "excel",
    ".xlsm": "excel",
    ".xlsb": "excel",
    ".xls": "excel",
    ".ods": "ods",
}
#: Suffixes of files that hold another one, compressed.
COMPRESSED = (".gz", ".bz2", ".xz", ".zip")
#: Formats by name that no suffix tells.
_NAMED = (*dict.fromkeys(FORMATS.values()), "fixed-width")


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
    #: Mark between thousands; empty where there is none.
    thousands: str = ""
    #: The lines on which the table begins and ends; None: with the file.
    first: int = 1
    last: int | None = None
    #: Columns of dates that may have the day or the month first; they are read as text.
    unsure: tuple[str, ...] = ()

    def without_empty(self) -> CsvFormat:
        """Return the format of the columns that have a name or values."""
        kept = [place for place, kind in enumerate(self.types) if kind != "empty"]
        names, types = (tuple(each[place] for place in kept) for each in (self.names, self.types))
        return dataclasses.replace(self, names=names, types=types)


def file_format(path: str | Path, given: str | None = None) -> str:
    """Return the format of a file, as given or by its suffix; a compressed one is what it holds.

    >>> file_format("people.csv.gz"), file_format("survey.xlsx"), file_format("survey.ods")
    ('csv', 'excel', 'ods')
    >>> file_format("people.parquet"), file_format("adult.data"), file_format("x", "csv")
    ('parquet', 'csv', 'csv')
    """
    if given is not None:
        if given not in _NAMED:
            raise InputError(
                f"there is no file format {given!r}",
                code="unknown-format",
                hint="choose one of " + ", ".join(_NAMED),
                file=path,
            )
        return given
    place = Path(path)
    if place.suffix.lower() in COMPRESSED:
        place = place.with_suffix("")
    suffix = place.suffix.lower()
    if suffix not in FORMATS:
        raise InputError(
            f"the suffix {suffix!r} names no file format",
            code="unknown-format",
            hint=_fitting(Path(path)),
            file=path,
        )
    return FORMATS[suffix]


def _fitting(file: Path) -> str:
    """Return what to write for a file whose suffix says nothing, from its first bytes."""
    try:
        with file.open("rb") as stream:
            head = stream.read(4096)
    except OSError:
        head = b""
    found = csv_text.magic(head)
    if found is not None and found[1] is None:
        return f"this is {found[0]}, which is no file of records; export a table from it as CSV"
    if found is not None and found[1] in COMPRESSED:
        return f"this is {found[0]}: end its name with {found[1]}, such as people.csv{found[1]}"
    if found is None and csv_text.is_binary(head):
        return "this is no text; save it as CSV, Parquet or an Excel workbook"
    return f"say format={(found[1] if found else 'csv')!r}"


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
    dates: str | None = None,
    thousands: str | None = None,
    skip: int | None = None,
    footer: int | None = None,
    texts: Sequence[str] = (),
    thorough: bool = False,
) -> CsvFormat:
    r"""Find how a CSV file is written; what is given is not guessed.

    Parameters
    ----------
    dates
        "day" or "month": which comes first in dates such as 01/02/2024.
    thousands
        The mark between thousands.
    skip, footer
        How many lines stand above the header, and below the last record.
    texts
        Columns to be read as text whatever they look like.
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
    _require_said(dates, skip, footer, file)
    parts, whole = csv_text.sample(file)
    csv_text.refuse_binary(parts[0], file)
    codec = csv_text.find_encoding(parts, encoding, file, whole=whole)
    if codec.startswith("utf-16") and not whole:
        # Chunks from the middle may start inside a character, so only the head is looked at.
        parts = parts[:1]
    chunks = [csv_text.decode(part, codec, file) for part in parts]
    if "\0" in chunks[0]:
        line = chunks[0].count("\n", 0, chunks[0].index("\0")) + 1
        raise csv_text.nul_byte(file, line)
    mark = '"' if quote is None else quote
    cut = _without_lines(chunks[0], skip or 0)
    split = delimiter if delimiter is not None else csv_text.find_delimiter(cut, mark)
    records = [
        (line + (skip or 0), fields)
        for line, fields in csv_text.records_of(cut, split, mark, file, complete=whole)
    ]
    last = _last_line(file, codec, footer) if footer else None
    records = [record for record in records if last is None or record[0] <= last]
    if not records:
        raise InputError("the file has only empty lines", code="empty-file", file=file)
    if skip is None:
        records = records[titles(records) :]
    if footer is None and whole and (below := notes(records, len(records[0][1]))):
        records = records[:-below]
        last = records[-1][0] + sum(field.count("\n") for field in records[-1][1])
    start = records[0][0] if skip is None else skip + 1
    head = len(records)
    for text in chunks[1:]:
        records += csv_text.chunk_records(text, split, mark, len(records[0][1]))
    said = CsvFormat(
        split, codec, decimal or "", mark, thousands=thousands or "", first=start, last=last
    )
    found = _judge(records, said, header, na, file, dates=dates, texts=texts, head=head)
    if thorough and not whole:
        return _walk(file, found, na, dates=dates, texts=texts, is_open=footer is None)
    return found


def _require_said(dates: str | None, skip: int | None, footer: int | None, file: Path) -> None:
    if dates not in (None, "day", "month"):
        raise InputError(
            f"{dates!r} is no order of dates",
            code="unknown-option",
            hint="write dates='day' or dates='month': which of them comes first",
            file=file,
        )
    for name, lines in (("skip", skip), ("footer", footer)):
        if lines is not None and lines < 0:
            raise InputError(
                f"{name} is a number of lines, found {lines}",
                code="unknown-option",
                hint=f"write {name}=0 or more",
                file=file,
            )


def _without_lines(text: str, lines: int) -> str:
    """Return a text without its first lines."""
    for _ in range(lines):
        _, _, text = text.partition("\n")
    return text


def _last_line(file: Path, encoding: str, footer: int) -> int:
    return sum(1 for _ in csv_text.lines_of(file, encoding)) - footer


def _walk(
    file: Path,
    form: CsvFormat,
    na: Sequence[str] | None,
    *,
    dates: str | None,
    texts: Sequence[str],
    is_open: bool,
) -> CsvFormat:
    """Go through a whole file, piece by piece, and return the format with types wide enough."""
    lines = itertools.islice(csv_text.lines_of(file, form.encoding), form.first - 1, form.last)
    skipped = form.first - 1
    records = csv_text.numbered(lines, form.delimiter, form.quote, file, complete=True)
    if form.header:
        next(records)
    types: list[str | None] = [None] * len(form.names)
    missing = set(form.na)
    above, last = form.first, form.last
    while piece := [(n + skipped, f) for n, f in itertools.islice(records, _PIECE)]:
        for place, (line, fields) in enumerate(piece):
            if len(fields) != len(form.names):
                rest = piece[place:] + [(n + skipped, f) for n, f in itertools.islice(records, 50)]
                is_below = all(is_note(one, len(form.names)) for _, one in rest)
                if not is_open or not is_below or next(records, None) is not None:
                    raise _ragged(file, line, len(fields), len(form.names), form.delimiter)
                last, piece = above, piece[:place]
                break
            above = line + sum(field.count("\n") for field in fields)
        for place, name in enumerate(form.names):
            values = dict.fromkeys(fields[place] for _, fields in piece)
            if na is None:
                missing |= values.keys() & MISSING
            known = [value for value in values if value not in missing]
            if known and name in texts:
                types[place] = "text"
            elif known:
                kind = type_of(
                    known,
                    form.decimal,
                    name,
                    place,
                    piece,
                    file,
                    thousands=form.thousands,
                    dates=dates,
                )
                types[place] = wider(types[place], kind)
    wide = tuple(
        kind or ("empty" if form.types[place] == "empty" else "text")
        for place, kind in enumerate(types)
    )
    tokens = form.na if na is not None else ("", *sorted(missing - {""}))
    return _settled(dataclasses.replace(form, types=wide, na=tokens, last=last))


def _judge(
    records: list[tuple[int, list[str]]],
    form: CsvFormat,
    header: bool | None,
    na: Sequence[str] | None,
    file: Path,
    *,
    dates: str | None,
    texts: Sequence[str],
    head: int,
) -> CsvFormat:
    width = len(records[0][1])
    for line, fields in records[:head]:
        if len(fields) != width:
            above = _above(records[:head])
            raise _ragged(file, line, len(fields), width, form.delimiter, above=above)
    columns = [dict.fromkeys(record[1][place] for record in records[1:]) for place in range(width)]
    first = records[0][1]
    if header is None:
        header = has_header(first, columns)
    names = tuple(first) if header else tuple(f"column_{i + 1}" for i in range(width))
    empty = {
        place
        for place, name in enumerate(names)
        if header and is_empty_column(name, list(columns[place]))
    }
    if header:
        require_names([n for i, n in enumerate(names) if i not in empty], file, records[0][0])
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
    grouped = grouping(kept, form.decimal) if not form.thousands else None
    thousands, decimal = grouped or (form.thousands, form.decimal)
    decimal = decimal or decimal_mark(kept, form.delimiter)
    form = dataclasses.replace(
        form, decimal=decimal, thousands=thousands, header=header, na=tuple(na), names=names
    )
    data = records[1:] if header else records

    def typed(place: int, order: str | None) -> str:
        if place in empty:
            return "empty"
        if names[place] in texts:
            return "text"
        return type_of(
            kept[place],
            decimal,
            names[place],
            place,
            data,
            file,
            thousands=thousands,
            dates=order,
        )

    types = [typed(place, dates) for place in range(width)]
    # Where one column shows which of day and month comes first, it does for all.
    orders = {kind.partition(":")[2][:2] for kind in types if kind.endswith(_DAY_OR_MONTH)}
    if UNSURE in types and len(orders) == 1:
        order = "day" if orders == {"%d"} else "month"
        types = [typed(i, order) if kind == UNSURE else kind for i, kind in enumerate(types)]
    return _settled(dataclasses.replace(form, types=tuple(types)))


def _settled(form: CsvFormat) -> CsvFormat:
    """Return the format with dates of unknown order as texts, and their names set apart."""
    pairs = zip(form.names, form.types, strict=True)
    unsure = tuple(name for name, kind in pairs if kind == UNSURE)
    types = tuple("text" if kind == UNSURE else kind for kind in form.types)
    return dataclasses.replace(form, types=types, unsure=unsure)


def _above(records: Sequence[tuple[int, list[str]]]) -> int:
    """Return how many lines stand above those that have as many fields as most do."""
    width = Counter(len(fields) for _, fields in records).most_common(1)[0][0]
    return next(line for line, fields in records if len(fields) == width) - 1


def _ragged(
    file: Path, line: int, found: int, expected: int, delimiter: str, *, above: int = 0
) -> InputError:
    title = f"; if the first lines are a title, say skip={above}" if above else ""
    return InputError(
        f"the line has {found} fields where the first has {expected}",
        code="ragged-row",
        hint="give every line as many fields as the header; quote text that holds the delimiter "
        f"{delimiter!r}{title}",
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
    if name == "number":
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
