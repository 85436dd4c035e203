"""Readers of the files of a release: every difference between two values in the bytes is kept.

A missing value is None and an empty text is "". Numbers that a careless count takes for one value
and a file keeps apart have a form of their own: what is no number, and minus zero.
"""

from __future__ import annotations

import functools
import io
import itertools
import re
import unicodedata
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "File", "Form", "as_bytes_of", "canonical", "inside", "open_file", "some_columns", "unpacked",
    "unused_words",
]  # fmt: skip

#: A value as the file has it. Any: texts, numbers, dates.
Form = Any
#: What is no number, and minus zero, in files that tell numbers from texts.
_NAN, _MINUS = ("no number",), ("minus zero",)

_FIELD = re.compile(r'"(?:[^"]|"")*"|[^,]*')
_MINUS_ZERO = re.compile(r"-0(\.0*)?")
_BATCH = 1 << 16
_SHEET = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"


class File:
    """A file of rows: its columns, its rows, and what it holds besides.

    Parameters
    ----------
    path
        A CSV, Parquet or Arrow file, a folder of Parquet files as a cluster writes them, or a
        workbook.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.parts = _part_files(path)
        self.kind = path.suffix.lower().removeprefix(".")
        self._first = iter(self._all())
        self.columns: tuple[str, ...] = tuple(str(name) for name in next(self._first, ()))

    def rows(self) -> Iterator[tuple[Form, ...]]:
        """Give the rows, once."""
        return self._first

    def _all(self) -> Iterator[tuple[Form, ...]]:
        if self.kind == "csv":
            yield from _of_one_width(_csv(line for line, _ in self.lines()))
        elif self.kind == "xlsx":
            yield from _workbook(self.path)
        else:
            yield from _arrow(self)

    def lines(self) -> Iterator[tuple[str, str]]:
        """Give the lines of a CSV file, each with what it ends in; a quoted text may go on in more."""
        with self.path.open(encoding="utf-8", newline="\n") as file:
            yield from _lines(file)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Give the rows of a Parquet or Arrow file, block by block."""
        import pyarrow as pa
        from pyarrow import parquet

        if self.kind == "parquet":
            for part in self.parts:
                with parquet.ParquetFile(part) as file:
                    if file.schema_arrow.remove_metadata() != self.schema.remove_metadata():
                        raise ValueError("the parts have different columns")
                    yield from file.iter_batches(_BATCH)
        else:
            with pa.memory_map(str(self.path)) as source, pa.ipc.open_file(source) as reader:
                for place in range(reader.num_record_batches):
                    yield reader.get_batch(place)

    @property
    def schema(self) -> pa.Schema:
        """Columns and types of a Parquet or Arrow file."""
        import pyarrow as pa
        from pyarrow import parquet

        if self.kind == "parquet":
            return parquet.read_schema(self.parts[0])
        with pa.memory_map(str(self.path)) as source, pa.ipc.open_file(source) as reader:
            return reader.schema


def _part_files(path: Path) -> list[Path]:
    """Return the files that are read: those of a folder of parts in the order of their names."""
    if not path.is_dir():
        return [path]
    found = sorted(path.iterdir())
    if not found or any(
        part.is_symlink() or not part.is_file() or part.suffix != ".parquet" for part in found
    ):
        raise ValueError("a folder of parts holds Parquet files and nothing else")
    return found


def inside(folder: Path, name: object) -> Path:
    """Return a file of a folder; whoever wrote the evidence does not choose what else is read."""
    place = folder / str(name)
    if not place.resolve().is_relative_to(folder.resolve()):
        raise ValueError("outside the folder")
    if place.exists() and not (place.is_file() or place.is_dir()):
        raise ValueError("a pipe or device, which need not end")
    return place


def open_file(path: Path) -> File:
    """Return a file of rows, opened."""
    return File(path)


def as_bytes_of(kind: str, table: pa.Table) -> Iterator[tuple[Form, ...]]:
    """Give the rows of a table in memory as a file of some kind would have them."""
    if kind != "csv":
        for batch in table.to_batches(max_chunksize=_BATCH):
            yield from _tuples(batch)
        return
    from pyarrow import csv

    buffer = io.BytesIO()
    csv.write_csv(table, buffer, csv.WriteOptions(include_header=False, quoting_style="needed"))
    text = io.StringIO(buffer.getvalue().decode(), newline="\n")
    yield from _csv(line for line, _ in _lines(text))


@functools.lru_cache(maxsize=1 << 16)
def canonical(form: Form, *, number: bool = True) -> str | None:
    """Return the value that a form stands for: forms of one value must not count as diversity.

    A text file does not tell what is no number from the text "nan"; `number` says how to take it.

    >>> canonical("nan"), canonical("-0.0") == canonical(0.0), canonical("01") == canonical("1")
    (None, True, False)
    >>> canonical("nan", number=False)
    'nan'
    """
    if form is None or form == _NAN:
        return None
    text = form if isinstance(form, str) else "0.0" if form == _MINUS else repr(form)
    if number and text in ("nan", "NaN"):
        return None
    if number and _MINUS_ZERO.fullmatch(text):
        return text[1:]
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def _lines(file: io.TextIOBase) -> Iterator[tuple[str, str]]:
    for line in file:
        parts, open_ = [line], line.count('"') % 2
        while open_:
            more = next(file, None)
            if more is None:
                raise ValueError("a quoted text does not end")
            parts.append(more)
            open_ ^= more.count('"') % 2
        line = "".join(parts)
        own = line.removesuffix("\n").removesuffix("\r")
        yield own, line[len(own) :]


def _csv(lines: Iterable[str]) -> Iterator[tuple[str | None, ...]]:
    """Give the fields of each line: None where nothing stands, "" where an empty text is quoted."""
    for line in lines:
        if '"' in line:
            yield _quoted_fields(line)
        else:
            yield tuple(field or None for field in line.split(","))


def _quoted_fields(line: str) -> tuple[str | None, ...]:
    found: list[str | None] = []
    place = 0
    while place <= len(line):
        match = _FIELD.match(line, place)
        assert match is not None  # it also matches nothing
        text, place = match.group(), match.end() + 1
        if line[match.end() : place] not in ("", ","):
            raise ValueError("a quoted text goes on after its end")
        found.append(text[1:-1].replace('""', '"') if text[:1] == '"' else text or None)
    return tuple(found)


def _of_one_width(rows: Iterator[tuple[Form, ...]]) -> Iterator[tuple[Form, ...]]:
    """Give rows that have as many values as the first has names: no line ends in more."""
    first = next(rows, ())
    yield first
    for row in rows:
        if len(row) != len(first):
            raise ValueError("a line has other fields than the first")
        yield row


def _arrow(file: File) -> Iterator[tuple[Form, ...]]:
    yield tuple(file.schema.names)
    for batch in file.batches():
        yield from _tuples(batch)


def some_columns(path: Path, columns: Sequence[str]) -> Iterator[tuple[Form, ...]]:
    """Give some columns of the rows of a file."""
    file = File(path)
    if file.kind in ("parquet", "arrow"):
        for batch in file.batches():
            yield from rows_of(batch, columns)
        return
    places = [file.columns.index(column) for column in columns]
    for row in file.rows():
        yield tuple(row[place] for place in places)


def rows_of(batch: pa.RecordBatch, columns: Sequence[str]) -> Iterator[tuple[Form, ...]]:
    """Give some columns of the rows of a block; without any, as many empty rows."""
    if not columns:
        return itertools.repeat((), batch.num_rows)
    return _tuples(batch.select(list(columns)))


def _tuples(batch: pa.RecordBatch) -> Iterator[tuple[Form, ...]]:
    return zip(*(_forms(column) for column in batch.columns), strict=True)


def _forms(column: pa.Array) -> list[Form]:
    import pyarrow as pa

    kind = column.type
    if pa.types.is_floating(kind):
        return [_number(x) for x in column.to_pylist()]
    simple = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_integer(kind)
    found = column.to_pylist()
    if pa.types.is_decimal(kind):
        return [None if x is None else str(x) for x in found]
    return found if simple else [x if x is None or isinstance(x, str) else repr(x) for x in found]


def _number(value: float | None) -> Form:
    if value is None or (value == value and value):
        return value
    if value != value:
        return _NAN
    return _MINUS if str(value).startswith("-") else value


# -- workbooks -----------------------------------------------------------------------------------
#: A workbook of a table unpacks to a few dozen times its size; one made to exhaust its reader, to more.
_UNPACKED = 200


def unpacked(path: Path) -> dict[str, bytes]:
    """Return the parts of a workbook; one that unpacks to far more than it is holds no table."""
    with zipfile.ZipFile(path) as archive:
        if sum(part.file_size for part in archive.infolist()) > _UNPACKED * path.stat().st_size:
            raise ValueError("the workbook unpacks to more than a table does")
        return {name: archive.read(name) for name in archive.namelist()}


def _xml(part: bytes) -> Any:
    from xml.etree import ElementTree

    if b"<!DOCTYPE" in part or b"<!ENTITY" in part:
        raise ValueError("a part of the workbook declares entities")
    return ElementTree.fromstring(part)  # noqa: S314 - declarations were refused


def _workbook(path: Path) -> Iterator[tuple[Form, ...]]:
    """Give the rows of the first sheet."""
    parts = unpacked(path)
    words = _words(parts)
    width = 0
    for row in _xml(parts["xl/worksheets/sheet1.xml"]).iter(f"{_SHEET}row"):
        cells: dict[int, Form] = {}
        for cell in row.iter(f"{_SHEET}c"):
            place = _place(cell.get("r", ""))
            kind, value = cell.get("t"), cell.find(f"{_SHEET}v")
            inline = "".join(t.text or "" for t in cell.iter(f"{_SHEET}t"))
            if kind == "s" and value is not None:
                cells[place] = words[int(value.text)]
            elif kind == "inlineStr":
                cells[place] = inline
            elif value is not None and value.text is not None:
                cells[place] = value.text if kind in ("str", "b", "e") else float(value.text)
        width = width or len(cells)
        if max(cells, default=0) >= max(width, 1):
            raise ValueError("a cell beyond the columns")
        yield tuple(cells.get(place) for place in range(width))


def _words(parts: Mapping[str, bytes]) -> list[str]:
    """Return the texts that cells of a workbook point to."""
    shared = parts.get("xl/sharedStrings.xml")
    if shared is None:
        return []
    return ["".join(t.text or "" for t in item.iter(f"{_SHEET}t")) for item in _xml(shared)]


def unused_words(parts: Mapping[str, bytes]) -> bool:
    """Whether a workbook lists texts to which no cell of any sheet points."""
    used = {
        int(value.text or 0)
        for name, part in parts.items()
        if name.startswith("xl/worksheets/")
        for cell in _xml(part).iter(f"{_SHEET}c")
        if cell.get("t") == "s" and (value := cell.find(f"{_SHEET}v")) is not None
    }
    return len(used) < len(_words(parts))


def _place(reference: str) -> int:
    """Return the column of a cell reference: 0 for A1, 27 for AB3."""
    place = 0
    for letter in reference:
        if not letter.isalpha():
            break
        place = place * 26 + ord(letter.upper()) - ord("A") + 1
    return place - 1
