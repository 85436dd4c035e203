"""What the file of a release holds besides its rows: footers, notes, bytes that no reader shows."""

from __future__ import annotations

import base64
import json
import re
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.verification.reading import File, unpacked, unused_words

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["leftovers"]

#: The footer of Parquet files that says which types the columns have.
_TYPES = b"ARROW:schema"
#: Notes on columns that readers of Parquet add.
_NOTES = {b"PARQUET:field_id"}
#: Bytes by which other versions of a writer may say the same types and rows.
_SLACK = 64


def leftovers(file: File) -> list[str]:
    """Return what a file holds besides its rows, in words without values."""
    if file.kind == "parquet":
        found = [left for part in file.parts for left in _left_in(part)]
        return list(dict.fromkeys(found + _noted(file.schema)))
    if file.kind == "arrow":
        told = [f"a footer named {key.decode()!r}" for key in sorted(file.schema.metadata or {})]
        buried = dict.fromkeys(left for batch in file.batches() for left in _buried(batch))
        return [
            *told, *_noted(file.schema), *_noted_blocks(file.path), *buried, *_unused(file.batches()), *_too_long(file)
        ]  # fmt: skip
    return _hidden_parts(file.path) if file.kind == "xlsx" else _marks(file)


def _is_text(kind: pa.DataType) -> bool:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


# -- CSV -----------------------------------------------------------------------------------------
_QUOTED = re.compile(r'"[^",\r\n]+"')
_NEEDED = re.compile(r'"[^"]*"')
_BARE = re.compile("[^,\x01\x02]+")
_FIELD = re.compile(r'"(?:[^"]|"")*"|[^,]+')
_OURS = re.compile("[\x01-\x03]")
#: A field in quotes, one that needs them, and one without.
_IS_QUOTED, _IS_NEEDED, _IS_BARE = "\x01", "\x02", "\x03"


def _marks(file: File) -> list[str]:
    """Return columns whose values stand in quotes in some lines and not in others.

    Such a line is marked, though every reader takes its values for those of the others.
    """
    seen: set[str] = set()
    forms: list[set[str]] = [set() for _ in file.columns]
    ends: set[str] = set()
    for place, (line, end) in enumerate(file.lines()):
        ends.add(end)
        form = _form(line)
        if place and form not in seen:  # the first line has the names
            seen.add(form)
            for own, one in zip(forms, form.split(","), strict=True):
                own.add(one)
    found = [
        f"values of column {name!r} in quotes, and others without"
        for name, own in zip(file.columns, forms, strict=True)
        if {_IS_QUOTED, _IS_BARE} <= own or own - {"", _IS_QUOTED, _IS_NEEDED, _IS_BARE}
    ]
    return [*found, *(["lines that end in two ways"] if len(ends - {""}) > 1 else [])]


def _form(line: str) -> str:
    """Return a line with a mark in place of each value: what of it stands in quotes."""
    if _OURS.search(line):
        line = _OURS.sub("x", line)
    if '""' in line:  # quotes within quotes
        return _FIELD.sub(lambda found: _form_of(found.group()), line)
    return _BARE.sub(_IS_BARE, _NEEDED.sub(_IS_NEEDED, _QUOTED.sub(_IS_QUOTED, line)))


def _form_of(field: str) -> str:
    if not field.startswith('"'):
        return _IS_BARE
    return _IS_QUOTED if _QUOTED.fullmatch(field) else _IS_NEEDED


# -- Parquet -------------------------------------------------------------------------------------
def _left_in(path: Path) -> list[str]:
    return [*_footers(path), *_unused(_encoded(path)), *_gaps(path)]


def _footers(path: Path) -> list[str]:
    """Return footers of a Parquet file that say more than types, and ends that no row has."""
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        told = file.metadata.metadata or {}
        found = [
            f"a footer named {key.decode()!r}"
            for key, value in told.items()
            if not (_is_of_types(key, value) or _is_of_spark(key, value, file.schema_arrow.names))
        ]
        for group in range(file.num_row_groups):
            rows = file.read_row_group(group)
            for place in range(file.metadata.num_columns):
                part = file.metadata.row_group(group).column(place)
                if part.path_in_schema in rows.schema.names and part.statistics is not None:
                    column = rows.column(part.path_in_schema)
                    if not _are_ends(column, part.statistics):
                        found.append(f"ends of column {part.path_in_schema!r} that no row has")
    return found


def _are_ends(column: pa.ChunkedArray, ends: Any) -> bool:
    """Whether statistics say of a column what its rows say. Any: pyarrow has no type for them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if ends.has_null_count and ends.null_count != column.null_count:
        return False
    if not ends.has_min_max:
        return True
    if _is_text(column.type):
        return all(pc.any(pc.equal(column, end)).as_py() for end in (ends.min, ends.max))
    kind = column.type
    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_date32, pa.types.is_boolean)
    if not any(is_kind(kind) for is_kind in kinds):
        return True
    true = pc.min_max(column).as_py()
    return bool(true["min"] == ends.min and true["max"] == ends.max)


def _gaps(path: Path) -> list[str]:
    """Return whether a Parquet file has bytes that belong to no column and not to its end."""
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        told = file.metadata
        parts = [
            told.row_group(group).column(place)
            for group in range(told.num_row_groups)
            for place in range(told.num_columns)
        ]
    # A file begins with four bytes and ends with the footer, its length and four bytes.
    own = 4 + sum(part.total_compressed_size for part in parts) + told.serialized_size + 8
    indexed = any(part.has_offset_index or part.has_column_index for part in parts)
    more = path.stat().st_size - own
    return ["bytes that belong to no column"] if more and not indexed else []


def _is_of_types(key: bytes, value: bytes) -> bool:
    """Whether a footer says the types of the columns and nothing more."""
    import pyarrow as pa

    if key != _TYPES:
        return False
    try:
        content = base64.b64decode(value, validate=True)
        schema = pa.ipc.read_schema(pa.py_buffer(content))
    except (ValueError, OSError):
        return False
    plain = pa.schema([field.remove_metadata() for field in schema])
    return bool(
        schema.equals(plain, check_metadata=True)
        and len(content) <= plain.serialize().size + _SLACK
    )


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
    named = {"type": "struct", "fields": fields}
    once = json.dumps(named, separators=(",", ":"), ensure_ascii=False).encode() == value
    return bool(
        plain and once and told == {"type": "struct"} and [f["name"] for f in fields] == list(names)
    )


def _encoded(path: Path) -> Iterator[pa.RecordBatch]:
    """Give the rows of a Parquet file with the lists of values that its pages hold."""
    from pyarrow import parquet

    texts = [field.name for field in parquet.read_schema(path) if _is_text(field.type)]
    with parquet.ParquetFile(path, read_dictionary=texts) as file:
        for group in range(file.num_row_groups):
            yield from file.read_row_group(group).to_batches()


# -- Arrow ---------------------------------------------------------------------------------------
def _noted(schema: pa.Schema) -> list[str]:
    """Return columns whose types carry notes, as a file of Arrow may."""
    return [
        f"notes on column {field.name!r}" for field in schema if set(field.metadata or {}) - _NOTES
    ]


def _noted_blocks(path: Path) -> list[str]:
    """Return whether blocks of an Arrow file carry notes that no reader of rows shows."""
    import pyarrow as pa

    with pa.memory_map(str(path)) as source, pa.ipc.open_file(source) as reader:
        places = range(reader.num_record_batches)
        noted = any(reader.get_batch_with_custom_metadata(place)[1] for place in places)
    return ["notes on its blocks"] if noted else []


def _too_long(file: File) -> list[str]:
    """Return whether an Arrow file has more bytes than its rows take when written again."""
    import pyarrow as pa

    again = pa.MockOutputStream()  # counts bytes and keeps none
    batches = 0
    with pa.ipc.new_file(again, file.schema) as writer:
        for batch in file.batches():
            writer.write_batch(batch)
            batches += 1
    more = file.path.stat().st_size - again.size()
    return ["bytes that belong to no column"] if more > _SLACK * (1 + batches) else []


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


# -- workbooks -----------------------------------------------------------------------------------
#: The parts of a workbook with a table and a legend.
_PARTS = re.compile(
    r"\[Content_Types\]\.xml|_rels/\.rels|docProps/(app|core)\.xml"
    r"|xl/(workbook|styles|sharedStrings|theme/theme1|worksheets/sheet[12])\.xml"
    r"|xl/_rels/workbook\.xml\.rels"
)
#: What its properties say: that a program made it, and when.
_NOTED = re.compile(rb"<\?xml[^>]*\?>|</?(cp|dc|dcterms):\w+[^>]*>|openpyxl|[\d:TZ-]{20}")


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


def _hidden_parts(path: Path) -> list[str]:
    """Return what a workbook holds besides the cells that people see."""
    parts = unpacked(path)
    found = ["bytes outside its parts"] if _bytes_outside(path) else []
    if any(b"<!--" in part or b"<?" in part[5:] for part in parts.values()):
        found.append("comments in its parts")
    found += [f"a part {name!r}" for name in parts if not _PARTS.fullmatch(name)]
    if unused_words(parts):
        found.append("texts that no cell has")
    if _NOTED.sub(b"", parts.get("docProps/core.xml", b"")).strip():
        found.append("notes on who made it")
    if re.search(rb'state="(very)?[hH]idden"', parts.get("xl/workbook.xml", b"")):
        found.append("a hidden sheet")
    if any(
        re.search(rb'hidden="(1|true)"', part) for name, part in parts.items() if "/sheet" in name
    ):
        found.append("hidden rows or columns")
    if any(b"<f>" in part or b"<f " in part for name, part in parts.items() if "/sheet" in name):
        found.append("formulas")
    return found
