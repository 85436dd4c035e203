"""Readers of the files of a release: every difference between two values in the bytes is kept.

A missing value is None and an empty text is "". Numbers that a careless count takes for one value
and a file keeps apart have a form of their own: what is no number, and minus zero.
"""

from __future__ import annotations

import functools
import io
import itertools
import json
import re
import unicodedata
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["File", "Form", "as_bytes_of", "canonical", "inside", "open_file", "some_columns"]

#: A value as the file has it. Any: texts, numbers, dates.
Form = Any
#: What is no number, and minus zero, in files that tell numbers from texts.
_NAN, _MINUS = ("no number",), ("minus zero",)

_FIELD = re.compile(r'"(?:[^"]|"")*"|[^,]*')
_MINUS_ZERO = re.compile(r"-0(\.0*)?")
#: Footers of Parquet files, and notes on columns, that only say which types the columns have.
_FOOTERS = {b"ARROW:schema", b"pandas"}
_NOTES = {b"PARQUET:field_id"}
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
            with self.path.open(encoding="utf-8", newline="\n") as file:
                yield from _csv(file)
        elif self.kind == "xlsx":
            yield from _workbook(self.path)
        else:
            yield from _arrow(self)

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

    def leftovers(self) -> list[str]:
        """Return what the file holds besides its rows, in words without values."""
        if self.kind == "parquet":
            found = [left for part in self.parts for left in _left_in(part)]
            return list(dict.fromkeys(found + _noted(self.schema)))
        if self.kind == "arrow":
            footers = set(self.schema.metadata or {}) - _FOOTERS
            told = [f"a footer named {key.decode()!r}" for key in sorted(footers)]
            buried = dict.fromkeys(left for batch in self.batches() for left in _buried(batch))
            return [*told, *_noted(self.schema), *buried, *_unused(self.batches())]
        return _hidden_parts(self.path) if self.kind == "xlsx" else []


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
    yield from _csv(io.TextIOWrapper(io.BytesIO(buffer.getvalue()), "utf-8", newline="\n"))


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


def _csv(lines: Iterator[str] | io.TextIOBase) -> Iterator[tuple[str | None, ...]]:
    """Give the fields of each line: None where nothing stands, "" where an empty text is quoted."""
    source = iter(lines)
    for line in source:
        while line.count('"') % 2:  # a quoted text goes on in the next line
            line += next(source)
        line = line.removesuffix("\n").removesuffix("\r")
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
        text = match.group()
        found.append(text[1:-1].replace('""', '"') if text[:1] == '"' else text or None)
        place = match.end() + 1
    return tuple(found)


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


# -- what a file holds besides its rows ----------------------------------------------------------
def _left_in(path: Path) -> list[str]:
    return [*_footers(path), *_unused(_encoded(path))]


def _footers(path: Path) -> list[str]:
    """Return footers of a Parquet file that say more than types, and ends that no row has."""
    import pyarrow.compute as pc
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        told = file.metadata.metadata or {}
        found = [
            f"a footer named {key.decode()!r}"
            for key, value in told.items()
            if key not in _FOOTERS and not _is_of_spark(key, value, file.schema_arrow.names)
        ]
        for group in range(file.num_row_groups):
            rows = file.read_row_group(group)
            for place in range(file.metadata.num_columns):
                part = file.metadata.row_group(group).column(place)
                ends = part.statistics
                if (
                    ends is None
                    or not ends.has_min_max
                    or part.path_in_schema not in rows.schema.names
                ):
                    continue
                column = rows.column(part.path_in_schema)
                if _is_text(column.type) and not all(
                    pc.any(pc.equal(column, end)).as_py() for end in (ends.min, ends.max)
                ):
                    found.append(f"ends of column {part.path_in_schema!r} that no row has")
    return found


def _noted(schema: pa.Schema) -> list[str]:
    """Return columns whose types carry notes, as a file of Arrow may."""
    return [
        f"notes on column {field.name!r}" for field in schema if set(field.metadata or {}) - _NOTES
    ]


def _buried(batch: pa.RecordBatch) -> list[str]:
    """Return columns of an Arrow file whose bytes hold values that no row has.

    Where a value is missing its place is still there, and so are texts to which no row points.
    """
    return [
        f"bytes of column {name!r} that no row has"
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
        if _has_more(column)
    ]


def _has_more(column: pa.Array) -> bool:
    import numpy as np
    import pyarrow as pa

    kind, parts, first, size = column.type, column.buffers(), column.offset, len(column)
    if pa.types.is_dictionary(kind) or pa.types.is_nested(kind) or len(parts) < 2 or not parts[1]:
        return False
    missing = column.is_null().to_numpy(zero_copy_only=False)
    if _is_text(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        wide = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
        ends = np.frombuffer(parts[1], np.int64 if wide else np.int32)[first : first + size + 1]
        content = np.frombuffer(parts[2] or b"", np.uint8)
        if not len(ends):
            return bool(content.any())
        outside = content[: ends[0]].any() or content[ends[-1] :].any()
        return bool(outside or np.diff(ends)[missing].any())
    if pa.types.is_boolean(kind):
        bits = np.unpackbits(np.frombuffer(parts[1], np.uint8), bitorder="little").astype(bool)
        return bool(bits[first : first + size][missing].any())
    width = kind.bit_width // 8
    raw = np.frombuffer(parts[1], np.uint8)
    own = raw[first * width : (first + size) * width].reshape(size, width)
    rest = raw[: first * width], raw[(first + size) * width :]
    return bool(own[missing].any() or any(byte.any() for byte in rest))


def _is_of_spark(key: bytes, value: bytes, names: Sequence[str]) -> bool:
    """Whether a footer is one that Spark writes, and says no more than names and types."""
    if key == b"org.apache.spark.version":
        return re.fullmatch(rb"[0-9A-Za-z.-]{1,40}", value) is not None
    if key != b"org.apache.spark.sql.parquet.row.metadata":
        return False
    try:
        told = json.loads(value)
        fields = told.pop("fields")
        plain = all(
            set(field) == {"name", "type", "nullable", "metadata"}
            and field["metadata"] == {}
            and re.fullmatch(r"[a-z_]+(\(\d+,\d+\))?", field["type"])
            and isinstance(field["nullable"], bool)
            for field in fields
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return False
    return bool(plain and told == {"type": "struct"} and [f["name"] for f in fields] == list(names))


def _encoded(path: Path) -> Iterator[pa.RecordBatch]:
    """Give the rows of a Parquet file with the lists of values that its pages hold."""
    from pyarrow import parquet

    texts = [field.name for field in parquet.read_schema(path) if _is_text(field.type)]
    with parquet.ParquetFile(path, read_dictionary=texts) as file:
        for group in range(file.num_row_groups):
            yield from file.read_row_group(group).to_batches()


def _unused(batches: Iterator[pa.RecordBatch]) -> list[str]:
    """Return columns whose lists of values hold some that no row has."""
    import pyarrow as pa

    listed: dict[str, set[Any]] = {}
    used: dict[str, set[Any]] = {}
    for batch in batches:
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if pa.types.is_dictionary(column.type):
                words = column.dictionary.to_pylist()
                listed.setdefault(name, set()).update(words)
                seen = column.indices.unique().to_pylist()
                used.setdefault(name, set()).update(words[i] for i in seen if i is not None)
    return [
        f"values of column {name!r} that no row has" for name in listed if listed[name] - used[name]
    ]


def _is_text(kind: pa.DataType) -> bool:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


# -- workbooks -----------------------------------------------------------------------------------
#: A workbook of a table unpacks to a few dozen times its size; one made to exhaust its reader, to more.
_UNPACKED = 200


def _parts(path: Path) -> dict[str, bytes]:
    """Return the parts of a workbook; one that unpacks to far more than it is holds no table."""
    with zipfile.ZipFile(path) as archive:
        if sum(part.file_size for part in archive.infolist()) > _UNPACKED * path.stat().st_size:
            raise ValueError("the workbook unpacks to more than a table does")
        return {name: archive.read(name) for name in archive.namelist()}


def _bytes_outside(path: Path) -> bool:
    """Whether a workbook has bytes before its first part, between parts, or after its end."""
    with zipfile.ZipFile(path) as archive:
        starts = sorted(part.header_offset for part in archive.infolist())
        # Without a comment the record at the end of an archive has 22 bytes.
        end = archive.start_dir + sum(_directory_size(part) for part in archive.infolist())
        packed = sum(part.compress_size for part in archive.infolist())
        # A header has 30 bytes, the name, and what writers add to it for alignment or large files.
        heads = archive.start_dir - packed - sum(30 + len(p.filename) for p in archive.infolist())
        return bool(
            starts[:1] != [0] or path.stat().st_size != end + 22 or heads > 64 * len(starts)
        )


def _directory_size(part: zipfile.ZipInfo) -> int:
    return 46 + len(part.filename.encode()) + len(part.extra) + len(part.comment)


def _xml(part: bytes) -> Any:
    from xml.etree import ElementTree

    if b"<!DOCTYPE" in part or b"<!ENTITY" in part:
        raise ValueError("a part of the workbook declares entities")
    return ElementTree.fromstring(part)  # noqa: S314 - declarations were refused


def _workbook(path: Path) -> Iterator[tuple[Form, ...]]:
    """Give the rows of the first sheet."""
    parts = _parts(path)
    shared = parts.get("xl/sharedStrings.xml")
    words = (
        []
        if shared is None
        else ["".join(t.text or "" for t in item.iter(f"{_SHEET}t")) for item in _xml(shared)]
    )
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
        yield tuple(cells.get(place) for place in range(width))


def _place(reference: str) -> int:
    """Return the column of a cell reference: 0 for A1, 27 for AB3."""
    place = 0
    for letter in reference:
        if not letter.isalpha():
            break
        place = place * 26 + ord(letter.upper()) - ord("A") + 1
    return place - 1


def _hidden_parts(path: Path) -> list[str]:
    """Return what a workbook holds besides the cells that people see."""
    parts = _parts(path)
    found = ["bytes outside its parts"] if _bytes_outside(path) else []
    if any(b"<!--" in part or b"<?" in part[5:] for part in parts.values()):
        found.append("comments in its parts")
    found += [
        f"a part {name!r}"
        for name in parts
        if re.search(r"comment|external|custom|embed|vml|query|connection", name, re.IGNORECASE)
    ]
    if re.search(rb'state="(very)?[hH]idden"', parts.get("xl/workbook.xml", b"")):
        found.append("a hidden sheet")
    if any(
        re.search(rb'hidden="(1|true)"', part) for name, part in parts.items() if "/sheet" in name
    ):
        found.append("hidden rows or columns")
    return found
