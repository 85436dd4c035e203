"""CSV fields: whether the first line is a header, which decimal mark is used, of what type a column is."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from discreet.errors import InputError

__all__ = ["MISSING", "decimal_mark", "has_header", "require_names", "type_of", "wider"]

#: Texts that mean "no value", where a file uses them.
MISSING = frozenset({"NA", "N/A", "n/a", "<NA>", "NaN", "nan", "null", "NULL", "?", "."})
_INTEGER = re.compile(r"[+-]?(0|[1-9]\d{0,17})")
_POINT = re.compile(r"[+-]?(\d{1,30}(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?")
_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d{1,3})?")
_ZEROS = re.compile(r"[+-]?0\d+")
_INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
_DATE = re.compile(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])")
_TIME = re.compile(_DATE.pattern + r"[ T]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?")
_BOOLEAN = frozenset({"true", "false", "True", "False", "TRUE", "FALSE"})


def _is_number(value: str) -> bool:
    return bool(_POINT.fullmatch(value) or _COMMA.fullmatch(value) or _DATE.fullmatch(value))


def has_header(first: Sequence[str], columns: Sequence[Iterable[str]]) -> bool:
    """Say whether a first line is a header: not if it holds numbers where the lines below do too."""
    for value, below in zip(first, columns, strict=True):
        known = [v for v in itertools.islice(below, 200) if v and v not in MISSING]
        if known and _is_number(value) and all(_is_number(v) for v in known):
            return False
    return True


def require_names(names: Sequence[str], file: Path, line: int) -> None:
    """Say which column has no name, or a name that another has."""
    for place, name in enumerate(names):
        if not name.strip():
            raise InputError(
                f"column {place + 1} has no name",
                code="empty-column-name",
                hint="name it in the header, or read with header=False",
                file=file,
                line=line,
            )
    times = Counter(names)
    twice = next((name for name in names if times[name] > 1), None)
    if twice is not None:
        raise InputError(
            f"the header names {twice!r} {times[twice]} times",
            code="duplicate-columns",
            hint="give every column its own name",
            file=file,
            line=line,
            column=twice,
        )


def decimal_mark(columns: Sequence[Sequence[str]], delimiter: str) -> str:
    """Return the decimal mark of the numbers: a comma if some column has them and no other text."""
    if delimiter[0] == "," and not any(_COMMA.fullmatch(v) for values in columns for v in values):
        return "."
    for values in columns:
        commas = sum(1 for value in values if _COMMA.fullmatch(value))
        if commas and all(_COMMA.fullmatch(v) or _POINT.fullmatch(v) for v in values):
            return ","
    return "."


def type_of(
    values: Sequence[str],
    decimal: str,
    name: str,
    place: int,
    records: Sequence[tuple[int, list[str]]],
    file: Path,
) -> str:
    """Return the type of a column from its distinct values, or say in which line it is broken."""

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


def wider(one: str | None, other: str) -> str:
    """Return the narrowest type that holds the values of both."""
    if one is None or one == other:
        return other
    pair = {one, other}
    if pair == {"integer", "number"}:
        return "number"
    return "datetime" if pair == {"date", "datetime"} else "text"
