"""CSV fields: whether the first line is a header, which decimal mark is used, of what type a column is."""

from __future__ import annotations

import datetime
import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from discreet.data.amounts import AMOUNT, PATTERN, plain_amount, plain_amounts
from discreet.data.names import meaning
from discreet.data.reading import Question
from discreet.errors import InputError

__all__ = [
    "MISSING",
    "STRAY",
    "UNSURE",
    "as_number",
    "decimal_mark",
    "grouping",
    "has_header",
    "is_empty_column",
    "is_unplaced",
    "question_about",
    "require_names",
    "type_of",
    "wider",
]

#: The type of dates that may be read with the day or with the month first.
UNSURE = "date:?"
#: … of numbers whose mark may stand before thousands or before decimals,
_THOUSANDS = {".": "number:?.", ",": "number:?,"}
#: … and of those with the mark that is not the file's decimal mark: codes such as 10.11.
_OTHER = {".": "number:!.", ",": "number:!,"}
#: … and of texts that would be numbers or dates but for a few lines, the first of which follows it.
STRAY = "text:?"
#: Others that must differ before a text among them is asked about, and how many of it there may be.
_MANY, _FEW = 10, 3
_UNPLACED = "some line holds"

#: Texts that mean "no value", where a file uses them.
MISSING = frozenset({"NA", "N/A", "n/a", "<NA>", "NaN", "nan", "null", "NULL", "?", "."})
_INTEGER = re.compile(r"[+-]?(0|[1-9]\d{0,17})")
_POINT = re.compile(r"[+-]?(\d{1,30}(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?")
_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d{1,3})?")
_POINTED = re.compile(r"[+-]?\d*\.\d+([eE][+-]?\d{1,3})?")
#: Numbers that can be whole, with a mark before thousands.
_WHOLE = {m: re.compile(rf"[+-]?(0|[1-9]\d{{0,2}}({re.escape(m)}\d{{3}})?)") for m in ".,"}
#: Numbers with a decimal point that no code of a classification looks like.
_NO_CODE = re.compile(r"-\d*\.\d+|0?\.\d+|\d{4,}\.\d+|\d+\.\d{4,}")
#: Codes of NACE and its national forms, as far as they look like numbers.
_ACTIVITY = re.compile(r"\d{2}(\.\d{1,2})?")
_DIGITS = re.compile(r"\d{1,40}")
_ZEROS = re.compile(r"[+-]?0\d+")
_INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
_DATE = re.compile(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])")
_TIME = re.compile(_DATE.pattern + r"[ T]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?")
_WRITTEN = re.compile(r"(\d{1,4})([./-])(\d{1,2})\2(\d{1,4})( \d{1,2}:\d{2}(:\d{2})?)?")
#: Numbers with whatever marks.
_LIKE_NUMBER = re.compile(r"[+-]?(\d[\d.,'’ \u00a0\u202f]*|[.,]\d+)([eE][+-]?\d+)?")
_LIKE_AMOUNT = re.compile(PATTERN)
_LIKE_DATE = re.compile(
    rf"({_WRITTEN.pattern})|({_TIME.pattern})|({_DATE.pattern})".replace(r"\2", "[./-]")
)
#: Thousands and decimal marks that people write together.
_GROUPED = (
    (".", ","),
    (",", "."),
    ("'", "."),
    ("’", "."),
    (" ", ","),
    (" ", "."),
    ("\u00a0", ","),
    ("\u202f", ","),
)
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
                hint="name it in the header, or read with "
                f"skip={line}, header=False: the columns are then column_1, column_2, …",
                file=file,
                line=line,
            )
    times = Counter(names)
    twice = next((name for name in names if times[name] > 1), None)
    if twice is not None:
        raise InputError(
            f"the header names {twice!r} {times[twice]} times",
            code="duplicate-columns",
            hint="give every column its own name, or read with "
            f"skip={line}, header=False: the columns are then column_1, column_2, …",
            file=file,
            line=line,
            column=twice,
        )


def _may_be_thousands(values: Sequence[str], mark: str) -> bool:
    """Whether every mark of a column may stand before thousands, as in 1.234 beside 12.

    >>> _may_be_thousands(["1.234", "12"], "."), _may_be_thousands(["1.234", "0.125"], ".")
    (True, False)
    """
    return any(mark in v for v in values) and all(map(_WHOLE[mark].fullmatch, values))


def decimal_mark(columns: Sequence[Sequence[str]], delimiter: str) -> tuple[str, bool]:
    """Return the decimal mark of the numbers, and whether some column makes it sure.

    It is a comma if some column has them and no other text. Columns that may have thousands, and
    points that may be those of codes, make nothing sure.

    >>> decimal_mark([["1.234", "12"]], ";"), decimal_mark([["1,5"], ["1.234"]], ";")
    (('.', False), (',', True))
    """
    telling = [v for v in columns if not any(_may_be_thousands(v, mark) for mark in ".,")]
    if _decimal_mark(telling, delimiter) == ",":
        return ",", True
    if any(
        all(map(_POINT.fullmatch, values)) and any(map(_NO_CODE.fullmatch, values))
        for values in telling
    ):
        return ".", True
    has_points = any(
        all(map(_POINT.fullmatch, values)) and any("." in value for value in values)
        for values in telling
    )
    return "." if has_points else _decimal_mark(columns, delimiter), False


def _decimal_mark(columns: Sequence[Sequence[str]], delimiter: str) -> str:
    if delimiter[0] == "," and not any(_COMMA.fullmatch(v) for values in columns for v in values):
        return "."
    for values in columns:
        commas = sum(1 for value in values if _COMMA.fullmatch(value))
        if commas and all(_COMMA.fullmatch(v) or _POINT.fullmatch(v) for v in values):
            return ","
    return "."


def _is_too_large(value: str) -> bool:
    """Whether a number is beyond what 64 bits hold, and would be read as infinite."""
    return "e" in value.lower() and math.isinf(float(value.replace(",", ".")))


def _grouped(thousands: str, decimal: str) -> re.Pattern[str]:
    return re.compile(
        rf"[+-]?(\d+|\d{{1,3}}({re.escape(thousands)}\d{{3}})+)({re.escape(decimal)}\d+)?"
    )


def grouping(columns: Sequence[Sequence[str]], decimal: str | None) -> tuple[str, str] | None:
    """Return the thousands mark of the numbers, and the decimal mark that goes with it.

    1.234 may be either, so a column counts that holds 1.234,5 or 1.234.567, or whose mark can be no
    decimal mark.

    >>> grouping([["1.234,50", "12,00"]], None), grouping([["1.234"]], None)
    (('.', ','), None)
    """
    for values in columns:
        for thousands, mark in _GROUPED:
            if decimal not in (None, "", mark) or not values:
                continue
            pattern = _grouped(thousands, mark)
            if not all(pattern.fullmatch(value) for value in values):
                continue
            shown = [value for value in values if thousands in value]
            sure = thousands not in ".,"
            if not shown or not _are_amounts(values, thousands, mark):
                continue
            if sure or any(v.count(thousands) > 1 or mark in v for v in shown):
                return thousands, mark
    return None


def _are_amounts(values: Sequence[str], thousands: str, decimal: str) -> bool:
    """Whether grouped digits are amounts; numbers of persons and products are all equally long."""
    if any(decimal in value for value in values):
        return True
    shown = [value for value in values if thousands in value]
    return not shown or len({len(value) for value in values}) > 1


def is_empty_column(name: str, values: Sequence[str]) -> bool:
    """Whether a column has neither a name nor a value, as behind a delimiter that ends each line."""
    return not name.strip() and not any(value.strip() for value in values)


def _date_format(values: Sequence[str], order: str | None) -> str | None:
    """Return the type of dates as people write them: 31/12/1999, 31.12.1999 14:05, 1999/12/31.

    Which of day and month comes first is told by a value above 12, by a full stop between them, or
    by the caller (`order`: day or month); otherwise it is not sure.
    """
    first = _WRITTEN.fullmatch(values[0])
    if first is None:
        return None
    mark, time = first.group(2), first.group(5)
    year_first = len(first.group(1)) == 4
    clock = "" if time is None else " %H:%M:%S" if first.group(6) else " %H:%M"
    parts = []
    for value in values:
        found = _WRITTEN.fullmatch(value)
        if found is None or found.group(2) != mark or (found.group(5) is None) != (time is None):
            return None
        if bool(found.group(6)) != bool(first.group(6)):
            return None
        numbers = [found.group(1), found.group(3), found.group(4)]
        if len(numbers[0 if year_first else 2]) != 4 or len(numbers[2 if year_first else 0]) > 2:
            return None
        parts.append([int(number) for number in numbers])
    kind = "datetime:" if clock else "date:"
    if year_first:
        fits = all(_is_date(*part) for part in parts)
        return f"{kind}%Y{mark}%m{mark}%d{clock}" if fits else None
    day = all(_is_date(year, month, day) for day, month, year in parts)
    month = all(_is_date(year, month, day) for month, day, year in parts)
    if order is not None:
        day, month = day and order == "day", month and order == "month"
    elif day and month and mark == ".":
        month = False
    if day and month:
        return UNSURE
    if not day and not month:
        return None
    start = f"%d{mark}%m" if day else f"%m{mark}%d"
    return f"{kind}{start}{mark}%Y{clock}"


def _is_date(year: int, month: int, day: int) -> bool:
    try:
        datetime.date(year, month, day)
    except ValueError:
        return False
    return True


def type_of(
    values: Sequence[str],
    decimal: str,
    name: str,
    place: int,
    records: Sequence[tuple[int, list[str]]],
    file: Path,
    *,
    thousands: str = "",
    dates: str | None = None,
    is_sure: bool = False,
) -> str:
    """Return the type of a column from its distinct values, or say in which line it is broken.

    Dates that are not ISO are of the type ``date:%d/%m/%Y``, or `UNSURE`. Unless the marks
    are sure, numbers that may have thousands (1.234) get a type that `question_about` asks about.
    """

    def line_of(wanted: str) -> int | None:
        found = next((line for line, fields in records if fields[place] == wanted), 0)
        return found or None

    if not values:
        return "text"
    if amounts := plain_amounts(values):
        kind = type_of(
            amounts,
            decimal,
            name,
            place,
            records,
            file,
            thousands=thousands,
            dates=dates,
            is_sure=is_sure,
        )
        return {"integer": AMOUNT, "number": AMOUNT}.get(kind, kind if "?" in kind else "text")
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
    if all(_DIGITS.fullmatch(value) for value in values):
        return "text"  # numbers of cards and accounts: as a number the last digits would be lost
    written = _date_format(values, dates)
    if written is not None:
        return written
    if thousands and all(_grouped(thousands, decimal).fullmatch(value) for value in values):
        if _are_amounts(values, thousands, decimal) or (is_sure and _are_short(values, thousands)):
            return "number"
        is_open = thousands in _THOUSANDS and _are_short(values, thousands)
        return _THOUSANDS[thousands] if is_open else "text"
    finite = [value for value in values if not _INFINITE.fullmatch(value)]
    if not finite or not all(_POINT.fullmatch(v) or _COMMA.fullmatch(v) for v in finite):
        stray = _stray(values)
        return "text" if stray is None else f"{STRAY}{line_of(stray) or 0}"
    if len(finite) < len(values) or any(map(_is_too_large, finite)):
        bad = next(v for v in values if _INFINITE.fullmatch(v) or _is_too_large(v))
        raise InputError(
            f"column {name!r} holds an infinite number",
            code="not-finite",
            hint="leave the field empty where the number is not known",
            file=file,
            line=line_of(bad),
            column=name,
        )
    if meaning(name, "activity") and all(map(_ACTIVITY.fullmatch, values)):
        return "text"  # codes such as 86.10, the last digit of which would be lost
    other = _COMMA if decimal == "." else _POINTED
    bad_mark = next((value for value in values if other.fullmatch(value)), None)
    for mark in ".,":
        if _may_be_thousands(values, mark) and not (is_sure and mark == decimal):
            return _THOUSANDS[mark]
    if bad_mark is not None and not any(decimal in value for value in values):
        return _OTHER["," if decimal == "." else "."]
    if bad_mark is not None:
        raise InputError(
            f"column {name!r} mixes decimal commas and decimal points",
            code="mixed-decimals",
            hint="write all numbers with one decimal mark, or read them as text: "
            f"types={{{name!r}: 'nominal'}}",
            file=file,
            line=line_of(bad_mark),
            column=name,
        )
    return "number"


def _are_short(values: Sequence[str], thousands: str) -> bool:
    return all(value.count(thousands) <= 1 for value in values)


def _stray(values: Sequence[str]) -> str | None:
    """Return the first of a few texts among many different numbers or dates; None if there is none.

    Codes that begin with zeros, and texts that also stand among other texts, are not asked about.

    >>> _stray([*map(str, range(20)), "n.b."]), _stray(["1", "2A", "2B"])
    ('n.b.', None)
    """
    if any(_ZEROS.fullmatch(value) for value in values):
        return None
    for pattern in (_LIKE_NUMBER, _LIKE_DATE, _LIKE_AMOUNT):
        odd = [value for value in values[: 2 * _MANY] if not pattern.fullmatch(value)]
        if len(odd) > _FEW:
            continue
        odd = [value for value in values if not pattern.fullmatch(value)]
        if odd and len(odd) <= _FEW and len(values) - len(odd) >= max(_MANY, 10 * len(odd)):
            return odd[0]
    return None


def as_number(text: str, decimal: str, thousands: str = "") -> float | None:
    """Return a text as the number that it is in a file with these marks; None if it is none.

    >>> as_number("1.234,5", ",", "."), as_number("007", "."), as_number("x", ".")
    (1234.5, None, None)
    """
    text = plain_amount(text)
    if _ZEROS.fullmatch(text):
        return None
    if thousands and _grouped(thousands, decimal).fullmatch(text):
        text = text.replace(thousands, "")
    if decimal == ",":
        text = text.replace(",", ".") if _COMMA.fullmatch(text) else text
    return float(text) if _POINT.fullmatch(text) else None


def question_about(name: str, kind: str, word: str = "line") -> Question | None:
    """Return what to ask about a column that is read as text for now; None where all is sure.

    >>> question_about("pay", "number:?.")
    'pay: is 1.234 more than a thousand, or less than two? Read as text; write --thousands . or --decimal .'
    """
    if kind == UNSURE:
        return Question(
            name,
            "dates with the day or the month first? Read as text;",
            (("dates", "day"), ("dates", "month")),
        )
    mark = kind[-1:]
    if kind in _THOUSANDS.values():
        return Question(
            name,
            f"is 1{mark}234 more than a thousand, or less than two? Read as text;",
            (("thousands", mark), ("decimal", mark)),
        )
    if kind in _OTHER.values():
        return Question(
            name,
            f"codes, or numbers? They have {mark!r} where other columns have another decimal mark. "
            "Read as text; if they are codes,",
            (("types", name),),
        )
    if kind.startswith(STRAY):
        line = int(kind.removeprefix(STRAY))
        where = f"{word} {line:,} holds" if line else _UNPLACED
        return Question(
            name,
            f"{where} a text, where nearly all are numbers or dates. Read as text; mend it in the "
            "file, name it with `na` if it means that there is no value, or if all are codes",
            (("types", name),),
        )
    return None


def is_unplaced(question: str) -> bool:
    """Whether a question is about a text whose line is not known yet."""
    return _UNPLACED in question


def wider(one: str | None, other: str) -> str:
    """Return the narrowest type that holds the values of both."""
    if one is None or one == other:
        return other
    pair = {one, other}
    if one.startswith(STRAY) or other.startswith(STRAY):
        first = one if one.startswith(STRAY) else other
        return "text" if pair & {"text", "boolean"} else first
    if UNSURE in pair:
        (known,) = pair - {UNSURE}
        return known if known.startswith(("date:", "datetime:")) else "text"
    asked = pair & {*_THOUSANDS.values(), *_OTHER.values()}
    if asked and len(pair | {"integer", "number"}) == 3:
        # A decimal somewhere settles what thousands are; another mark is asked about anyhow.
        (kind,) = asked
        return "number" if "number" in pair and kind in _THOUSANDS.values() else kind
    if asked and pair - asked == {AMOUNT}:
        return asked.pop()
    if pair == {"integer", "number"}:
        return "number"
    if AMOUNT in pair and pair <= {AMOUNT, "integer", "number"}:
        return AMOUNT
    return "datetime" if pair == {"date", "datetime"} else "text"
