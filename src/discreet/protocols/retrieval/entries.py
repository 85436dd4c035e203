"""Rows as bytes: an entry is a key and its value, as JSON that every engine's rows agree on.

Every value has one form, which the publisher writes and a user asks for: texts composed (NFC), negative
zero as zero, times of a zone in UTC. A key in another form would be proven absent though it is there.
"""

from __future__ import annotations

import datetime
import decimal
import json
import math
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.errors import InputError

__all__ = ["decode_value", "encode_entry", "key_of", "kind_of", "plain_rows"]

# Any, throughout: a cell of a table may be of any of these kinds.
Cell = Any
#: Digits that numbers may have.
_LONGEST = 100
_DIGITS = decimal.Context(prec=_LONGEST)


def kind_of(column: str, kind: pa.DataType) -> str:
    """Return how values of a column are written, whatever engine they come from."""
    tests: dict[str, Any] = {
        "integer": pa.types.is_integer,
        "number": pa.types.is_floating,
        "boolean": pa.types.is_boolean,
        "date": pa.types.is_date,
        "instant": lambda t: pa.types.is_timestamp(t) and t.tz is not None,
        "time": pa.types.is_timestamp,
        "decimal": pa.types.is_decimal,
        "text": lambda t: pa.types.is_string(t) or pa.types.is_large_string(t),
    }
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    for name, test in tests.items():
        if test(kind):
            return name
    raise InputError(
        f"column {column!r} holds {kind}, which is not published for retrieval",
        code="retrieval-type",
        column=column,
        hint="cast it to text, number, date or boolean, or leave it out of `columns`",
    )


def plain_rows(batch: pa.RecordBatch, kinds: Sequence[str]) -> Iterator[list[Cell]]:
    """Give the rows of a batch as values that JSON holds."""
    columns = [
        [_plain(value, kind) for value in column.to_pylist()]
        if kind not in ("integer", "boolean")
        else column.to_pylist()
        for column, kind in zip(batch.columns, kinds, strict=True)
    ]
    for row in zip(*columns, strict=True):
        yield list(row)


def _plain(value: Cell, kind: str) -> Cell:
    """Return the one form of a value."""
    if value is None:
        return None
    if kind == "text":
        return value if value.isascii() else unicodedata.normalize("NFC", value)
    if kind == "number":
        return float(value) + 0.0  # negative zero is zero
    if kind == "decimal":
        return format(_DIGITS.add(value, 0).normalize(_DIGITS), "f")
    if kind in ("time", "instant"):
        if getattr(value, "nanosecond", 0):
            raise InputError(
                "a time has nanoseconds, and microseconds are published",
                code="retrieval-type",
                hint="round the column to microseconds, or cast it to text",
            )
        if (value.tzinfo is not None) != (kind == "instant"):
            raise ValueError(kind)
        value = value.astimezone(datetime.UTC) if kind == "instant" else value
    return value.isoformat()


def decode_value(value: Cell, kind: str) -> Cell:
    """Return a value as Python has it.

    >>> decode_value("2024-02-29", "date"), decode_value(None, "text")
    (datetime.date(2024, 2, 29), None)
    """
    if value is None:
        return None
    readers: dict[str, Any] = {
        "date": datetime.date.fromisoformat,
        "time": datetime.datetime.fromisoformat,
        "instant": datetime.datetime.fromisoformat,
        "decimal": decimal.Decimal,
    }
    return readers[kind](value) if kind in readers else value


def key_of(value: Cell, kind: str, column: str) -> Cell:
    """Return a key as it is published, from what a caller or a command line gives.

    >>> key_of("17", "integer", "id"), key_of("17", "text", "code"), key_of("-0", "number", "x")
    (17, '17', 0.0)
    """
    try:
        if kind == "integer" and not isinstance(value, bool):
            return _whole(value)
        if kind == "number" and not isinstance(value, bool) and not math.isnan(float(value)):
            return _plain(value, kind)
        if kind == "boolean" and str(value).lower() in ("true", "false"):
            return str(value).lower() == "true"
        if kind == "text" and isinstance(value, str):
            return _plain(value, kind)
        if kind == "decimal" and abs((number := decimal.Decimal(str(value))).adjusted()) < _LONGEST:
            return _plain(number, kind)
        if kind in ("date", "time", "instant"):
            given = decode_value(value, kind) if isinstance(value, str) else value
            if kind == "date" and isinstance(given, datetime.datetime):
                raise ValueError(kind)
            return _plain(given, kind)
    except (ValueError, TypeError, ArithmeticError, AttributeError):
        pass
    raise InputError(
        f"{value!r} is not a key: column {column!r} holds {kind}",
        code="retrieval-key",
        column=column,
        hint="give a time with its zone, such as 2024-02-29T12:00+01:00"
        if kind == "instant"
        else f"give a value of type {kind}",
    )


def _whole(value: Cell) -> int:
    """Return a whole number, however long: floats hold those up to 2⁵³."""
    # A float is exactly what it is; its text is rounded to 17 digits.
    is_float = isinstance(value, float | np.floating)
    number = decimal.Decimal(float(value) if is_float else str(value))
    if number.adjusted() > _LONGEST or number != number.to_integral_value():
        raise ValueError(value)
    return int(number)


def encode_entry(key: Cell, value: Cell) -> bytes:
    """Return the bytes of an entry; the same key and value give the same bytes.

    >>> encode_entry(17, ["Ana", None])
    b'[17,["Ana",null]]'
    """
    return json.dumps([key, value], ensure_ascii=False, separators=(",", ":")).encode()
