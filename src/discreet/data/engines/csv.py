"""CSV files into DuckDB, as `files.sniff` found them to be written, with mistakes told by line."""

from __future__ import annotations

import contextlib
import dataclasses
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import duckdb

from discreet.data.amounts import AMOUNT, PATTERN
from discreet.data.files import CsvFormat, sniff, write_utf8
from discreet.errors import InputError

__all__ = ["read_csv"]

_READ = (
    "SELECT {wanted} FROM read_csv($1, auto_detect = false, delim = $2, quote = $3, escape = $3, "
    "header = $4, nullstr = $5, decimal_separator = $6, columns = $7)"
)
_TYPES = {
    "integer": "BIGINT",
    "number": "DOUBLE",
    "text": "VARCHAR",
    "date": "DATE",
    "datetime": "TIMESTAMP",
    "boolean": "BOOLEAN",
}
_AS_IS = {"utf-8", "utf-8-sig", "latin-1"}


class Creates(Protocol):
    """DuckDB, as far as a file is read into it."""

    def create(self, statement: str, values: Sequence[Any]) -> str:
        """Keep the rows of a statement in a temporary table; return its name."""


def read_csv(
    engine: Creates, path: Path, options: Mapping[str, Any], *, texts: Sequence[str] = ()
) -> tuple[str, CsvFormat]:
    """Read a CSV file into a temporary table; return its name and how the file is written.

    The columns of the table are `c0`, `c1` …; `texts` names the columns to be read as text
    whatever they look like. The sample that the format was found from may not show everything:
    where the reader stumbles, the whole file is looked at once.
    """
    given = dict(options)
    found = given.pop("form", None)
    form = _as_texts(found or sniff(path, **given, texts=texts), texts)
    try:
        return _read(engine, path, form), form.without_empty()
    except (duckdb.ConversionException, duckdb.InvalidInputException):
        form = _as_texts(sniff(path, **given, texts=texts, thorough=True), texts)
    try:
        return _read(engine, path, form), form.without_empty()
    except (duckdb.ConversionException, duckdb.InvalidInputException) as error:
        found = re.search(r"CSV Error on Line: (\d+)", str(error))
        # The driver's text quotes the line, which may hold anything about anybody.
        raise InputError(
            "the line cannot be read with the others",
            code="bad-line",
            hint="check its quotes, delimiters and numbers",
            file=path,
            line=int(found.group(1)) if found else None,
        ) from None


def _as_texts(form: CsvFormat, texts: Sequence[str]) -> CsvFormat:
    types = (
        "text" if name in texts and kind != "empty" else kind
        for name, kind in zip(form.names, form.types, strict=True)
    )
    return dataclasses.replace(form, types=tuple(types))


def _read(engine: Creates, path: Path, form: CsvFormat) -> str:
    columns = {f"c{p}": _read_as(kind, form) for p, kind in enumerate(form.types)}
    wanted = ", ".join(
        _expression(f"c{place}", kind, form)
        for place, kind in enumerate(form.types)
        if kind != "empty"
    )
    with _readable(path, form) as (file, encoding):
        values = [
            str(file),
            form.delimiter,
            form.quote,
            form.header,
            list(form.na),
            form.decimal,
            columns,
        ]
        plain = _READ if encoding == "utf-8" else _READ[:-1] + ", encoding = 'latin-1')"
        return engine.create(plain.format(wanted=wanted), values)


def _read_as(kind: str, form: CsvFormat) -> str:
    """Return the type in which DuckDB's reader takes a column."""
    is_written = ":" in kind or kind in ("empty", AMOUNT) or (kind == "number" and form.thousands)
    return "VARCHAR" if is_written else _TYPES[kind]


def _expression(column: str, kind: str, form: CsvFormat) -> str:
    """Return a column as it was read, or made from the texts that people wrote."""
    name, _, pattern = kind.partition(":")
    if pattern:
        # The pattern is one of ours, never text of the file.
        return f"CAST(strptime({column}, '{pattern}') AS {_TYPES[name]}) AS {column}"
    if kind == AMOUNT or (kind == "number" and form.thousands):
        plain = column
        if kind == AMOUNT:  # what is no amount stays as it is, and cannot be cast
            number = f"trim(regexp_replace({column}, {_quoted(f'^{PATTERN}$')}, '\\1\\3'))"
            fits = f"regexp_full_match({column}, {_quoted(PATTERN)})"
            plain = f"CASE WHEN {fits} THEN {number} ELSE {column} END"
        if form.thousands:
            plain = f"replace({plain}, {_quoted(form.thousands)}, '')"
        if form.decimal != ".":
            plain = f"replace({plain}, {_quoted(form.decimal)}, '.')"
        return f"CAST({plain} AS DOUBLE) AS {column}"
    return column


def _quoted(mark: str) -> str:
    return "'" + mark.replace("'", "''") + "'"


@contextlib.contextmanager
def _readable(path: Path, form: CsvFormat) -> Iterator[tuple[Path, str]]:
    """Yield the file in an encoding that DuckDB reads by itself, copied if need be."""
    if form.encoding in _AS_IS and form.first == 1 and form.last is None:
        yield path, "latin-1" if form.encoding == "latin-1" else "utf-8"
        return
    with tempfile.TemporaryDirectory(prefix="discreet-") as folder:
        copy = Path(folder) / "utf8.csv"
        write_utf8(path, copy, form.encoding, first=form.first, last=form.last)
        yield copy, "utf-8"
