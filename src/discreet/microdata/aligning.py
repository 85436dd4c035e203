"""Columns of a file in the types of another: a number written as text is still that number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.errors import InputError
from discreet.microdata.columns import is_date, is_number, word_for

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["aligned", "differ"]

#: Texts that look like numbers, and those that are written as a number is written here.
_NUMBER = r"^\s*[+-]?[0-9][0-9.]*\s*$"
_PLAIN = r"^-?(0|[1-9][0-9]*)(\.[0-9]*[1-9])?$"


def differ(one: pa.DataType, two: pa.DataType) -> bool:
    """Whether values of two Arrow types would not be found equal; all numbers compare as numbers."""
    if is_number(one) and is_number(two):
        return False
    return one != two and not (word_for(one) == word_for(two) == "text")


def aligned(rows: pa.Table, like: pa.Table, *, file: str) -> pa.Table:
    """Return a file with its columns in the types of another file that has them.

    >>> import pyarrow as pa
    >>> aligned(pa.table({"a": ["1.0", " 2", ""]}), pa.table({"a": [1, 2]}), file="copy")[
    ...     "a"
    ... ].to_pylist()
    [1.0, 2.0, None]
    >>> aligned(pa.table({"a": ["many"]}), pa.table({"a": [1]}), file="the copy")
    Traceback (most recent call last):
    discreet.errors.InputError: column 'a' of the copy holds text, which the types of the original ...
    """
    for place, name in enumerate(rows.column_names):
        if name in like.column_names and differ(rows.column(name).type, like.column(name).type):
            found = _converted(rows.column(name), like.column(name))
            if found is None:
                raise InputError(
                    f"column {name!r} of {file} holds {word_for(rows.column(name).type)}, which the "
                    f"types of the original ({word_for(like.column(name).type)}) do not take",
                    code="type-mismatch",
                    hint="write the values of both files alike, or read both from CSV",
                    column=name,
                )
            rows = rows.set_column(place, name, found)
    return rows


def _converted(column: pa.ChunkedArray, like: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return a column in the type of another; nothing where its values are no such values."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = like.type
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    try:
        if word_for(kind) == "text":
            return _as_text(column, like.cast(pa.string()))
        if word_for(column.type) == "text":
            trimmed = pc.utf8_trim_whitespace(column.cast(pa.string()))
            column = pc.if_else(pc.equal(trimmed, ""), None, trimmed)
        # Decimals of a whole-number column are kept: they are what the file holds.
        return column.cast(pa.float64() if is_number(kind) else kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def _as_text(column: pa.ChunkedArray, like: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return values as texts; nothing where the other file writes the same values otherwise (007)."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if is_date(column.type) or pa.types.is_boolean(column.type):
        found = column.cast(pa.string())
        return found if pc.any(pc.is_in(found, like.unique())).as_py() else None
    looks = pc.match_substring_regex(like, _NUMBER)
    plain = pc.match_substring_regex(like, _PLAIN)
    if pc.any(pc.and_not(looks, plain)).as_py():
        return None
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), None, column)
        if pc.all(pc.equal(column, pc.round(column))).as_py():
            column = column.cast(pa.int64())
    return column.cast(pa.string())
