"""CSV text: bytes into characters, characters into lines, lines into records that know their line.

Encoding and delimiter are found here; what the fields mean is `csv_fields`' business.
"""

from __future__ import annotations

import codecs
import csv
import io
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from discreet.errors import InputError

__all__ = [
    "blocks",
    "chunk_records",
    "decode",
    "find_delimiter",
    "find_encoding",
    "is_binary",
    "lines_of",
    "magic",
    "nul_byte",
    "numbered",
    "records_of",
    "refuse_binary",
    "sample",
]

_HEAD = 1 << 19
_CHUNK = 1 << 16
_CHUNKS = 6
#: Tried in this order when several split every line evenly: a comma is the likeliest to be text.
_DELIMITERS = ("\t", "|", ";", ",")
#: Codecs of texts that no file is written in.
_ESCAPES = {"idna", "punycode", "raw-unicode-escape", "unicode-escape", "undefined", "utf-7"}
#: First bytes, what they are, and the format or suffix that reads them.
_MAGIC: tuple[tuple[bytes, str, str | None], ...] = (
    (b"PAR1", "a Parquet file", "parquet"),
    (b"ARROW1", "an Arrow file", "arrow"),
    (b"FEA1", "a Feather file", "arrow"),
    (b"\xd0\xcf\x11\xe0", "an Excel workbook", "excel"),
    (b"\x1f\x8b", "a gzip archive", ".gz"),
    (b"BZh", "a bzip2 archive", ".bz2"),
    (b"\xfd7zXZ", "an xz archive", ".xz"),
    (b"SQLite format 3", "an SQLite database", None),
    (b"%PDF", "a PDF document", None),
    (b"$FL2", "an SPSS file", "spss"),
    (b"$FL3", "an SPSS file", "spss"),
    (b"<stata_dta>", "a Stata file", "stata"),
    (b"HEADER RECORD*******LIB", "a SAS transport file", "sas"),
    (b"\x89PNG", "a picture", None),
    (b"\xff\xd8\xff", "a picture", None),
)
#: Names inside a ZIP archive that tell what it is.
_PACKED = (
    (b"mimetypeapplication/vnd.oasis.opendocument.spreadsheet", "an OpenDocument sheet", "ods"),
    (b"xl/", "an Excel workbook", "excel"),
    (b"[Content_Types].xml", "an Excel workbook", "excel"),
    (b"word/", "a text document", None),
)


def magic(head: bytes) -> tuple[str, str | None] | None:
    """Return what a file's first bytes say it is, and the format or suffix that reads it.

    >>> magic(b"PAR1...."), magic(b"a,b")
    (('a Parquet file', 'parquet'), None)
    """
    if head.startswith(b"PK\x03\x04"):
        found = [(word, kind) for mark, word, kind in _PACKED if mark in head]
        return found[0] if found else ("a ZIP archive", ".zip")
    return next(((word, kind) for mark, word, kind in _MAGIC if head.startswith(mark)), None)


def is_binary(head: bytes) -> bool:
    """Whether bytes are no text of any encoding."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return False
    controls = sum(head[:4096].count(byte) for byte in (*range(1, 9), *range(14, 27)))
    return controls > len(head[:4096]) // 50 + 1


def sample(file: Path) -> tuple[list[bytes], bool]:
    """Return a small file whole, or the head of a large one and pieces of its rest."""
    size = file.stat().st_size
    with file.open("rb") as stream:
        if size <= _HEAD + _CHUNKS * _CHUNK:
            return [stream.read()], True
        parts = [stream.read(_HEAD)]
        for place in range(1, _CHUNKS + 1):
            stream.seek(_HEAD + (size - _HEAD - _CHUNK) * place // _CHUNKS)
            # Starts after the first line break, so that records are whole (unless quoted text
            # breaks lines, which `_chunk_records` notices).
            _, _, chunk = stream.read(_CHUNK).partition(b"\n")
            parts.append(chunk)
    return parts, False


def refuse_binary(head: bytes, file: Path) -> None:
    """Say what a file is that is not text."""
    found = magic(head[:4096])
    if found is None and not is_binary(head):
        return
    kind, reader = found or ("binary data", None)
    if reader is None:
        hint = "export the table in it as CSV, Parquet or an Excel workbook"
    elif reader.startswith("."):
        hint = f"end the file's name with {reader}, such as people.csv{reader}"
    else:
        hint = f"say format={reader!r}"
    raise InputError(f"this is {kind}, not a CSV file", code="binary-file", hint=hint, file=file)


def _is_text(encoding: str) -> bool:
    """Whether an encoding is one of texts: Python also has codecs that compress or escape."""
    try:
        # As files are opened: this refuses zip, hex, rot13 … and names that cannot be looked up.
        io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        return codecs.lookup(encoding).name not in _ESCAPES
    except (LookupError, ValueError):
        return False


def find_encoding(parts: Sequence[bytes], given: str | None, file: Path, *, whole: bool) -> str:
    """Return the encoding of a file, as given or found from its bytes."""
    if given is not None:
        if not _is_text(given):
            raise InputError(
                f"there is no encoding {given!r}",
                code="unknown-encoding",
                hint="write utf-8, utf-16, latin-1 or cp1252",
                file=file,
            )
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


def require_marks(
    file: Path,
    *,
    delimiter: str | None = None,
    quote: str | None = None,
    decimal: str | None = None,
) -> None:
    """Refuse marks that no CSV file can be written with."""
    mark = '"' if quote is None else quote
    wrong = None
    if delimiter is not None and (
        not delimiter or delimiter[0] in f"{mark}\r\n\0" or delimiter[1:].strip(" ") != ""
    ):
        wrong = ("delimiter", delimiter, "write one character, such as ; or \\t, or leave it out")
    elif quote is not None and (len(quote) > 1 or quote in ("\r", "\n", "\0", " ")):
        wrong = ("quote", quote, "write one character, or nothing where texts are not quoted")
    elif decimal is not None and decimal not in (".", ","):
        wrong = ("decimal", decimal, "write . or , or leave it out")
    if wrong is not None:
        raise InputError(
            f"{wrong[1]!r} cannot be the {wrong[0]} of a CSV file",
            code="csv-mark",
            hint=wrong[2],
            file=file,
            parameter=wrong[0],
        )


def decode(part: bytes, codec: str, file: Path) -> str:
    """Return bytes as text; a wrong byte is told by its line."""
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


def records_of(
    text: str, delimiter: str, quote: str, file: Path, *, complete: bool
) -> Iterator[tuple[int, list[str]]]:
    """Give each record with the line it starts in; an incomplete last one is left out."""
    lines = io.StringIO(text, newline="")
    held: tuple[int, list[str]] | None = None
    for record in numbered(lines, delimiter, quote, file, complete=complete):
        if held is not None:
            yield held
        held = record
    if held is not None and (complete or text.endswith("\n")):
        yield held


def numbered(
    lines: Iterable[str], delimiter: str, quote: str, file: Path, *, complete: bool
) -> Iterator[tuple[int, list[str]]]:
    """Give each record that is not empty, with the line it starts in."""
    reader = _reader(lines, delimiter, quote)
    start = 1
    while True:
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if "field larger" in str(error):
                if reader.line_num > start:  # a quote swallowed a good part of the file
                    raise _unclosed(file, start) from None
                raise InputError(
                    f"a value is longer than {csv.field_size_limit():,} characters",
                    code="value-too-long",
                    hint="leave the column out, or give the file as Parquet",
                    file=file,
                    line=start,
                ) from None
            if "unexpected end" in str(error):
                # A sample may well end inside quotes, but not after a thousand lines of them.
                if complete or reader.line_num - start > 1000:
                    raise _unclosed(file, start) from None
                return
            raise InputError(
                "quotes are not closed or not doubled in the text",
                code="bad-quoting",
                hint="write a quote inside quoted text twice, or read with quote=''",
                file=file,
                line=start,
            ) from None
        if fields:
            yield start, fields
        start = reader.line_num + 1


def lines_of(file: Path, encoding: str) -> Iterator[str]:
    """Give the lines of a file with their line breaks, block by block."""
    rest, number = "", 0
    for text in blocks(file, encoding):
        *whole, rest = io.StringIO(rest + text, newline="") if rest + text else ("",)
        for line in whole:
            number += 1
            if "\0" in line:
                raise nul_byte(file, number)
            yield line
    if rest:
        yield rest


def nul_byte(file: Path, line: int) -> InputError:
    """Return the error for a character that no text has."""
    return InputError(
        "the text holds a NUL character",
        code="nul-byte",
        hint="remove it; the file may be damaged or not be text",
        file=file,
        line=line,
    )


def blocks(file: str | Path, encoding: str) -> Iterator[str]:
    """Give a text file block by block; a wrong byte is told by its line."""
    decoder = codecs.getincrementaldecoder(encoding)()
    line, first = 1, True
    with Path(file).open("rb") as stream:
        while block := stream.read(1 << 20):
            try:
                text = decoder.decode(block)
            except UnicodeDecodeError as error:
                raise InputError(
                    f"the text is not {encoding}",
                    code="wrong-encoding",
                    hint="leave encoding out to have it found, or name the right one",
                    file=file,
                    line=line + block.count(b"\n", 0, error.start),
                ) from None
            yield text.removeprefix("\ufeff") if first else text
            first = False
            line += text.count("\n")


def _unclosed(file: Path, line: int) -> InputError:
    return InputError(
        "a quote opens here and never closes",
        code="unclosed-quote",
        hint="close it, or read with quote='' if quotes are ordinary text",
        file=file,
        line=line,
    )


def chunk_records(text: str, delimiter: str, quote: str, width: int) -> list[tuple[int, list[str]]]:
    """Return the records of a piece from the middle of a file, if it can be read by itself."""
    # A chunk from the middle widens types only. If it begins inside quoted text its fields do not
    # fit; then it says nothing, and the engine meets the lines anyway.
    body = text.rpartition("\n")[0]
    try:
        found = [(0, fields) for fields in _reader(io.StringIO(body), delimiter, quote) if fields]
    except csv.Error:
        return []
    return found if all(len(fields) == width for _, fields in found) else []


def find_delimiter(text: str, quote: str) -> str:
    """Return the delimiter that splits the lines most evenly; a comma if none does."""
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
        total = widths.total()
        widths.pop(1, None)  # lines that it does not split: titles, notes, or all
        if not widths:
            continue
        width, often = widths.most_common(1)[0]
        share = often / total
        if share >= 0.5 and share > score[0] + 1e-9:
            best, score = candidate, (share, width)
    if score[0] and best in ",;" and _spaced(text, best):
        return best + " "
    return best


def _spaced(text: str, delimiter: str) -> bool:
    head = text[: 1 << 16].rpartition("\n")[0]
    return head.count(delimiter) == head.count(delimiter + " ") > 0
