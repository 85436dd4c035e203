"""Files as people really have them: how a CSV file is written, found or given; and other formats.

A CSV file does not say how it is written. `sniff` finds encoding, delimiter, decimal mark, quoting,
header, missing-value tokens and types from a sample, so that a large file is never read in Python;
the engine then reads it by that `CsvFormat`. Where the engine stumbles later in the file,
`sniff(..., thorough=True)` walks through all of it once and says in which line, or finds the wider
types that the sample did not show.
"""

from __future__ import annotations

import codecs
import csv
import dataclasses
import io
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

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

_HEAD = 1 << 20
_CHUNK = 1 << 17
_CHUNKS = 6
#: Tried in this order when several split every line evenly: a comma is the likeliest to be text.
_DELIMITERS = ("\t", "|", ";", ",")
_MISSING = frozenset({"NA", "N/A", "n/a", "<NA>", "NaN", "nan", "null", "NULL", "?", "."})
_INTEGER = re.compile(r"[+-]?(0|[1-9]\d{0,17})")
_POINT = re.compile(r"[+-]?(\d{1,30}(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?")
_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d{1,3})?")
_ZEROS = re.compile(r"[+-]?0\d+")
_INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
_DATE = re.compile(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])")
_TIME = re.compile(_DATE.pattern + r"[ T]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?")
_BOOLEAN = frozenset({"true", "false", "True", "False", "TRUE", "FALSE"})
_MAGIC = {
    b"PAR1": "a Parquet file",
    b"ARROW1": "an Arrow file",
    b"FEA1": "a Feather file",
    b"PK\x03\x04": "a ZIP archive or an Excel workbook",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
    b"\x1f\x8b": "a gzip archive",
    b"%PDF": "a PDF document",
    b"$FL2": "an SPSS file",
    b"<stata_dta>": "a Stata file",
    b"\x89PNG": "a picture",
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
    parts, whole = _sample(file, thorough=thorough)
    _refuse_binary(parts[0], file)
    codec = _encoding(parts, encoding, file, whole=whole)
    if codec.startswith("utf-16") and not whole:
        # Chunks from the middle may start inside a character, so only the head is looked at.
        parts = parts[:1]
    texts = [_decode(part, codec, file) for part in parts]
    if "\0" in texts[0]:
        line = texts[0].count("\n", 0, texts[0].index("\0")) + 1
        raise InputError(
            "the text holds a NUL character",
            code="nul-byte",
            hint="remove it; the file may be damaged or not be text",
            file=file,
            line=line,
        )
    mark = '"' if quote is None else quote
    split = delimiter if delimiter is not None else _delimiter(texts[0], mark)
    records = list(_records(texts[0], split, mark, file, complete=whole))
    if not records:
        raise InputError("the file has only empty lines", code="empty-file", file=file)
    for text in texts[1:]:
        records += _chunk_records(text, split, mark, len(records[0][1]))
    return _judge(records, CsvFormat(split, codec, decimal or "", mark), header, na, file)


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
            raise InputError(
                f"the line has {len(fields)} fields where the first has {width}",
                code="ragged-row",
                hint="give every line as many fields as the header; quote text that holds "
                f"the delimiter {form.delimiter!r}",
                file=file,
                line=line if line > 0 else None,
                expected=width,
                found=len(fields),
            )
    columns = [dict.fromkeys(record[1][place] for record in records[1:]) for place in range(width)]
    first = records[0][1]
    if header is None:
        header = _has_header(first, columns)
    names = tuple(first) if header else tuple(f"column_{i + 1}" for i in range(width))
    if header:
        _require_names(names, file, records[0][0])
        if len(records) == 1:
            raise InputError(
                "the file has a header and no records", code="no-rows", file=file, line=1
            )
    else:
        for values, value in zip(columns, first, strict=True):
            values.setdefault(value)
    if na is None:
        found = {value for values in columns for value in values if value in _MISSING}
        na = ("", *sorted(found))
    missing = set(na)
    kept = [[value for value in values if value not in missing] for values in columns]
    decimal = form.decimal or _decimal(kept, form.delimiter)
    form = dataclasses.replace(form, decimal=decimal, header=header, na=tuple(na), names=names)
    data = records[1:] if header else records
    types = tuple(
        _type(values, decimal, names[place], place, data, file) for place, values in enumerate(kept)
    )
    return dataclasses.replace(form, types=types)


# -- bytes and characters --------------------------------------------------------------------------


def _sample(file: Path, *, thorough: bool) -> tuple[list[bytes], bool]:
    size = file.stat().st_size
    with file.open("rb") as stream:
        if thorough or size <= _HEAD + _CHUNKS * _CHUNK:
            return [stream.read()], True
        parts = [stream.read(_HEAD)]
        for place in range(1, _CHUNKS + 1):
            stream.seek(_HEAD + (size - _HEAD - _CHUNK) * place // _CHUNKS)
            # Starts after the first line break, so that records are whole (unless quoted text
            # breaks lines, which `_chunk_records` notices).
            _, _, chunk = stream.read(_CHUNK).partition(b"\n")
            parts.append(chunk)
    return parts, False


def _refuse_binary(head: bytes, file: Path) -> None:
    kind = next((word for magic, word in _MAGIC.items() if head.startswith(magic)), None)
    if kind is None and not head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        controls = sum(head[:4096].count(byte) for byte in (*range(1, 9), *range(14, 27)))
        if controls > len(head[:4096]) // 50 + 1:
            kind = "binary data"
    if kind is not None:
        raise InputError(
            f"this is {kind}, not a CSV file",
            code="binary-file",
            hint="give text, or the file under the suffix of its own format",
            file=file,
        )


def _encoding(parts: Sequence[bytes], given: str | None, file: Path, *, whole: bool) -> str:
    if given is not None:
        try:
            codecs.lookup(given)
        except LookupError:
            raise InputError(
                f"there is no encoding {given!r}",
                code="unknown-encoding",
                hint="write utf-8, utf-16, latin-1 or cp1252",
                file=file,
            ) from None
        return given
    head = parts[0]
    if head.startswith(codecs.BOM_UTF8):
        return "utf-8-sig"
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    zeros = head[:4096].count(0)
    if zeros > len(head[:4096]) // 4:
        return "utf-16-le" if head[1:2] == b"\0" else "utf-16-be"
    bad, seen = None, False
    for part in parts:
        try:
            text = codecs.getincrementaldecoder("utf-8")().decode(part, final=whole)
            seen = seen or not text.isascii()
        except UnicodeDecodeError as error:
            bad = bad or (part, error.start)
            seen = seen or not part[: error.start].isascii()
    if bad is None:
        return "utf-8"
    if seen:  # real UTF-8 characters and then something else: no single encoding fits
        line = head.count(b"\n", 0, bad[1]) + 1 if bad[0] is head else None
        raise InputError(
            "the text is UTF-8 up to here, and then is not",
            code="wrong-encoding",
            hint="save the file in one encoding, or name it with encoding=…",
            file=file,
            line=line,
        )
    high = {byte for part in parts for byte in part if 0x80 <= byte <= 0x9F}
    return "cp1252" if high and not high & {0x81, 0x8D, 0x8F, 0x90, 0x9D} else "latin-1"


def _decode(part: bytes, codec: str, file: Path) -> str:
    try:
        return codecs.getincrementaldecoder(codec)().decode(part)
    except UnicodeDecodeError as error:
        raise InputError(
            f"the text is not {codec}",
            code="wrong-encoding",
            hint="leave encoding out to have it found, or name the right one",
            file=file,
            line=part.count(b"\n", 0, error.start) + 1,
        ) from None


# -- lines and fields ------------------------------------------------------------------------------


def _reader(lines: Iterable[str], delimiter: str, quote: str) -> Any:
    # Any: the csv module does not export the type of its readers.
    return csv.reader(
        lines,
        delimiter=delimiter[0],
        quotechar=quote or None,
        quoting=csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE,
        skipinitialspace=len(delimiter) > 1,
        strict=True,
    )


def _records(
    text: str, delimiter: str, quote: str, file: Path, *, complete: bool
) -> Iterator[tuple[int, list[str]]]:
    """Give each record with the line it starts in; an incomplete last one is left out."""
    reader = _reader(io.StringIO(text, newline=""), delimiter, quote)
    held: tuple[int, list[str]] | None = None
    start = 1
    while True:
        try:
            fields = next(reader)
        except StopIteration:
            break
        except csv.Error as error:
            if "unexpected end" in str(error):
                if complete or (len(text) > _HEAD // 2 and held is None):
                    raise _unclosed(file, start) from None
                # An incomplete sample ends inside quotes: ordinary, unless most of it was swallowed.
                if reader.line_num - start > 1000:
                    raise _unclosed(file, start) from None
                break
            raise InputError(
                "quotes are not closed or not doubled in the text",
                code="bad-quoting",
                hint=f"write a quote inside quoted text twice, or read with quote='' ({error})",
                file=file,
                line=start,
            ) from None
        if held is not None:
            yield held
        held = (start, fields) if fields else None
        start = reader.line_num + 1
    if held is not None and (complete or text.endswith("\n")):
        yield held


def _unclosed(file: Path, line: int) -> InputError:
    return InputError(
        "a quote opens here and never closes",
        code="unclosed-quote",
        hint="close it, or read with quote='' if quotes are ordinary text",
        file=file,
        line=line,
    )


def _chunk_records(
    text: str, delimiter: str, quote: str, width: int
) -> list[tuple[int, list[str]]]:
    # A chunk from the middle widens types only. If it begins inside quoted text its fields do not
    # fit; then it says nothing, and the engine meets the lines anyway.
    body = text.rpartition("\n")[0]
    try:
        found = [(0, fields) for fields in _reader(io.StringIO(body), delimiter, quote) if fields]
    except csv.Error:
        return []
    return found if all(len(fields) == width for _, fields in found) else []


def _delimiter(text: str, quote: str) -> str:
    best, score = ",", (0.0, 0)
    for candidate in _DELIMITERS:
        lines = itertools.islice(io.StringIO(text, newline=""), 500)
        widths: Counter[int] = Counter()
        try:
            for fields in _reader(lines, candidate, quote):
                if fields:
                    widths[len(fields)] += 1
        except csv.Error:
            pass  # what was read up to the bad line is evidence enough
        if not widths:
            continue
        width, often = widths.most_common(1)[0]
        share = often / widths.total()
        if width > 1 and share >= 0.5 and share > score[0] + 1e-9:
            best, score = candidate, (share, width)
    if score[0] and best in ",;" and _spaced(text, best):
        return best + " "
    return best


def _spaced(text: str, delimiter: str) -> bool:
    head = text[: 1 << 16].rpartition("\n")[0]
    return head.count(delimiter) == head.count(delimiter + " ") > 0


# -- what the fields mean --------------------------------------------------------------------------


def _is_number(value: str) -> bool:
    return bool(_POINT.fullmatch(value) or _COMMA.fullmatch(value) or _DATE.fullmatch(value))


def _has_header(first: Sequence[str], columns: Sequence[Iterable[str]]) -> bool:
    """Say whether a first line is a header: not if it holds numbers where the lines below do too."""
    for value, below in zip(first, columns, strict=True):
        known = [v for v in itertools.islice(below, 200) if v and v not in _MISSING]
        if known and _is_number(value) and all(_is_number(v) for v in known):
            return False
    return True


def _require_names(names: Sequence[str], file: Path, line: int) -> None:
    for place, name in enumerate(names):
        if not name.strip():
            raise InputError(
                f"column {place + 1} has no name",
                code="empty-column-name",
                hint="name it in the header, or read with header=False",
                file=file,
                line=line,
            )
    folded = Counter(name.casefold() for name in names)
    twice = [name for name in names if folded[name.casefold()] > 1]
    if twice:
        raise InputError(
            f"the header names {twice[0]!r} {folded[twice[0].casefold()]} times",
            code="duplicate-columns",
            hint="give every column its own name (engines do not tell capitals apart)",
            file=file,
            line=line,
            column=twice[0],
        )


def _decimal(columns: Sequence[Sequence[str]], delimiter: str) -> str:
    if delimiter[0] == "," and not any(_COMMA.fullmatch(v) for values in columns for v in values):
        return "."
    for values in columns:
        commas = sum(1 for value in values if _COMMA.fullmatch(value))
        if commas and all(_COMMA.fullmatch(v) or _POINT.fullmatch(v) for v in values):
            return ","
    return "."


def _type(
    values: Sequence[str],
    decimal: str,
    name: str,
    place: int,
    records: Sequence[tuple[int, list[str]]],
    file: Path,
) -> str:
    def line_of(wanted: str) -> int | None:
        found = next((line for line, fields in records if fields[place] == wanted), 0)
        return found or None

    if not values:
        return "text"
    if all(value in _BOOLEAN for value in values):
        return "boolean"
    if all(_DATE.fullmatch(value) for value in values):
        return "date"
    if all(_DATE.fullmatch(value) or _TIME.fullmatch(value) for value in values):
        return "datetime"
    if any(_ZEROS.fullmatch(value) for value in values):
        return "text"  # codes such as 01, 007: zeros in front would be lost
    if all(_INTEGER.fullmatch(value) for value in values):
        return "integer"
    finite = [value for value in values if not _INFINITE.fullmatch(value)]
    if not finite or not all(_POINT.fullmatch(v) or _COMMA.fullmatch(v) for v in finite):
        return "text"
    if len(finite) < len(values):
        bad = next(value for value in values if _INFINITE.fullmatch(value))
        raise InputError(
            f"column {name!r} holds an infinite number",
            code="not-finite",
            hint="leave the field empty where the number is not known",
            file=file,
            line=line_of(bad),
            column=name,
        )
    other = _COMMA if decimal == "." else re.compile(r"[+-]?\d*\.\d+([eE][+-]?\d{1,3})?")
    bad_mark = next((value for value in values if other.fullmatch(value)), None)
    if bad_mark is not None:
        raise InputError(
            f"column {name!r} mixes decimal commas and decimal points",
            code="mixed-decimals",
            hint="write all numbers with one decimal mark",
            file=file,
            line=line_of(bad_mark),
            column=name,
        )
    return "number"


# -- reading ---------------------------------------------------------------------------------------


def read_rows(
    path: str | Path,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    quote: str = '"',
) -> list[tuple[int, list[str]]]:
    """Return the records of a small text file (a code list, a hierarchy) with their lines."""
    file = require_file(path)
    data = file.read_bytes()
    _refuse_binary(data, file)
    text = _decode(data, _encoding([data], encoding, file, whole=True), file)
    text = text.removeprefix("\ufeff")
    split = delimiter or _delimiter(text, quote)
    return list(_records(text, split, quote, file, complete=True))


def read_lines(path: str | Path) -> list[tuple[int, str]]:
    """Return the lines of a small text file that are not empty, with their numbers."""
    # A separator that text does not have: one field per line.
    return [(line, fields[0]) for line, fields in read_rows(path, delimiter="\x1f", quote="")]


def write_utf8(source: str | Path, target: str | Path, encoding: str) -> None:
    """Copy a text file into UTF-8, block by block, for an engine that reads nothing else."""
    decoder = codecs.getincrementaldecoder(encoding)()
    with Path(source).open("rb") as read, Path(target).open("wb") as write:
        line = 1
        while block := read.read(1 << 20):
            try:
                text = decoder.decode(block)
            except UnicodeDecodeError as error:
                raise InputError(
                    f"the text is not {encoding}",
                    code="wrong-encoding",
                    file=source,
                    line=line + block.count(b"\n", 0, error.start),
                ) from None
            write.write(text.removeprefix("\ufeff").encode())
            line += text.count("\n")


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
    text = _decode(file.read_bytes(), form.encoding, file).removeprefix("\ufeff")
    rows = [fields for _, fields in _records(text, form.delimiter, form.quote, file, complete=True)]
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

        whole = pc.all(pc.equal(pc.floor(array), array)).as_py()
        if whole and len(array) > array.null_count:
            return array.cast(pa.int64())
    return array
