"""How a CSV file is written, found from a sample.

A CSV file does not say how it is written. `sniff` finds encoding, delimiter, decimal mark, quoting,
header, missing-value tokens and types from a sample, so that a large file is never read in Python;
the engine then reads it by that `CsvFormat`. Where the engine fails later in the file,
`sniff(..., thorough=True)` reads all of it once and names the line of the mistake, or finds the
wider types that the sample did not show.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from discreet.data import csv_text
from discreet.data.amounts import plain_amounts
from discreet.data.csv_edges import is_note, notes, titles
from discreet.data.csv_fields import (
    MISSING,
    UNSURE,
    as_number,
    decimal_mark,
    grouping,
    has_header,
    is_empty_column,
    question_about,
    require_names,
    type_of,
    wider,
)
from discreet.data.file_formats import require_file
from discreet.data.reading import Question
from discreet.data.totals import asked_about_totals, find_totals
from discreet.errors import InputError

__all__ = ["CsvFormat", "sniff"]

# Ends of the patterns of dates with the year last, with or without a time.
_DAY_OR_MONTH = ("%Y", "%Y %H:%M", "%Y %H:%M:%S")
# A first line with which spreadsheet programs are told the delimiter.
_TOLD = re.compile(r"\ufeff?sep=(\W)\r?\n")
# Records held in memory at a time when a whole file is read.
_PIECE = 50_000


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
    #: Mark between thousands; empty where there is none.
    thousands: str = ""
    #: The lines on which the table begins and ends; None: with the file.
    first: int = 1
    last: int | None = None
    #: What is asked about columns that are read as text until it is said, and about totals.
    questions: tuple[Question, ...] = ()
    #: Whether the decimal mark and that of thousands were said, or are told by some column.
    is_sure: bool = False

    def without_empty(self) -> CsvFormat:
        """Return the format of the columns that have a name or values."""
        kept = [place for place, kind in enumerate(self.types) if kind != "empty"]
        names, types = (tuple(each[place] for place in kept) for each in (self.names, self.types))
        return dataclasses.replace(self, names=names, types=types)


def sniff(
    path: str | Path,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    quote: str | None = None,
    header: bool | None = None,
    na: Sequence[str] | None = None,
    dates: str | None = None,
    thousands: str | None = None,
    skip: int | None = None,
    footer: int | None = None,
    texts: Sequence[str] = (),
    thorough: bool = False,
) -> CsvFormat:
    r"""Find how a CSV file is written; what is given is not guessed.

    Parameters
    ----------
    na
        Texts that mean "no value", besides an empty field; nothing does if there are none.
    dates
        "day" or "month": which comes first in dates such as 01/02/2024.
    thousands
        The mark between thousands.
    skip, footer
        How many lines stand above the header, and below the last record.
    texts
        Columns to be read as text whatever they look like.
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
    _require_said(dates, skip, footer, file)
    if thousands and decimal is None and thousands in ".,":
        decimal = "," if thousands == "." else "."
    if thousands and thousands == decimal:
        raise InputError(
            f"{decimal!r} cannot stand before thousands and before decimals",
            code="unknown-option",
            hint="say one of decimal and thousands, or two different marks",
            file=file,
        )
    csv_text.require_marks(file, delimiter=delimiter, quote=quote, decimal=decimal)
    parts, whole = csv_text.sample(file)
    csv_text.refuse_binary(parts[0], file)
    codec = csv_text.find_encoding(parts, encoding, file, whole=whole)
    if codec.startswith("utf-16") and not whole:
        # Chunks from the middle may start inside a character, so only the head is looked at.
        parts = parts[:1]
    chunks = [csv_text.decode(part, codec, file) for part in parts]
    if "\0" in chunks[0]:
        line = chunks[0].count("\n", 0, chunks[0].index("\0")) + 1
        raise csv_text.nul_byte(file, line)
    mark = '"' if quote is None else quote
    if skip is None and (told := _TOLD.match(chunks[0])):
        skip, delimiter = 1, delimiter or told.group(1)
    cut = _without_lines(chunks[0], skip or 0)
    split = delimiter if delimiter is not None else csv_text.find_delimiter(cut, mark)
    records = [
        (line + (skip or 0), fields)
        for line, fields in csv_text.records_of(cut, split, mark, file, complete=whole)
    ]
    last = _last_line(file, codec, footer) if footer else None
    records = [record for record in records if last is None or record[0] <= last]
    if not records:
        raise InputError("the file has only empty lines", code="empty-file", file=file)
    if skip is None:
        records = records[titles(records) :]
    if footer is None and whole and (below := notes(records, len(records[0][1]))):
        records = records[:-below]
        last = records[-1][0] + sum(field.count("\n") for field in records[-1][1])
    start = records[0][0] if skip is None else skip + 1
    said = CsvFormat(
        split,
        codec,
        decimal or "",
        mark,
        thousands=thousands or "",
        first=start,
        last=last,
        is_sure=bool(decimal or thousands),
    )
    head = len(records)
    for text in chunks[1:]:
        records += csv_text.chunk_records(text, split, mark, len(records[0][1]))
    if na:
        na = tuple(dict.fromkeys(("", *na)))
    found = _judge(records, said, header, na, file, dates=dates, texts=texts, head=head)
    if thorough and not whole:
        found = _walk(file, found, na, dates=dates, texts=texts, is_open=footer is None)
    return _asked_about_totals(found, records, head, file, whole=whole, is_open=footer is None)


def _asked_about_totals(
    form: CsvFormat,
    records: list[tuple[int, list[str]]],
    head: int,
    file: Path,
    *,
    whole: bool,
    is_open: bool,
) -> CsvFormat:
    """Return the format with what is asked about lines that seem to be totals.

    Of a large file the head is looked at, and the last line.
    """
    missing = set(form.na) | {""}

    def cells(fields: Sequence[str]) -> list[float | str | None]:
        stripped = [field.strip() for field in fields]
        return [
            None if one in missing else _or_text(as_number(one, form.decimal, form.thousands), one)
            for one in stripped
        ]

    body = [(line, cells(fields)) for line, fields in records[form.header : head]]
    last, inside = find_totals(body, ends=whole, is_open=is_open)
    if not whole and is_open and len(records) > head:
        # Lines of later pieces are not numbered; whether the last one is a total shows beside them.
        tail = [(place, cells(fields)) for place, (_, fields) in enumerate(records[-500:])]
        if find_totals(tail)[0] is not None:
            last = _last_filled(file, form.encoding)
    below = _last_line(file, form.encoding, 0) - last + 1 if last else 0
    asked = asked_about_totals((last, inside), "line", below)
    return dataclasses.replace(form, questions=(*form.questions, *asked))


def _or_text(number: float | None, text: str) -> float | str:
    return text if number is None else number


def _last_filled(file: Path, encoding: str) -> int:
    lines = enumerate(csv_text.lines_of(file, encoding), start=1)
    return max((number for number, line in lines if line.strip()), default=1)


def _require_said(dates: str | None, skip: int | None, footer: int | None, file: Path) -> None:
    if dates not in (None, "day", "month"):
        raise InputError(
            f"{dates!r} is no order of dates",
            code="unknown-option",
            hint="write dates='day' or dates='month': which of them comes first",
            file=file,
        )
    for name, lines in (("skip", skip), ("footer", footer)):
        if lines is not None and lines < 0:
            raise InputError(
                f"{name} is a number of lines, found {lines}",
                code="unknown-option",
                hint=f"write {name}=0 or more",
                file=file,
            )


def _without_lines(text: str, lines: int) -> str:
    """Return a text without its first lines."""
    for _ in range(lines):
        _, _, text = text.partition("\n")
    return text


def _last_line(file: Path, encoding: str, footer: int) -> int:
    return sum(1 for _ in csv_text.lines_of(file, encoding)) - footer


def _walk(
    file: Path,
    form: CsvFormat,
    na: Sequence[str] | None,
    *,
    dates: str | None,
    texts: Sequence[str],
    is_open: bool,
) -> CsvFormat:
    """Go through a whole file, piece by piece, and return the format with types wide enough."""
    lines = itertools.islice(csv_text.lines_of(file, form.encoding), form.first - 1, form.last)
    skipped = form.first - 1
    records = csv_text.numbered(lines, form.delimiter, form.quote, file, complete=True)
    if form.header:
        next(records)
    types: list[str | None] = [None] * len(form.names)
    missing = set(form.na)
    above, last = form.first, form.last
    while piece := [(n + skipped, f) for n, f in itertools.islice(records, _PIECE)]:
        for place, (line, fields) in enumerate(piece):
            if len(fields) != len(form.names):
                rest = piece[place:] + [(n + skipped, f) for n, f in itertools.islice(records, 50)]
                is_below = all(is_note(one, len(form.names)) for _, one in rest)
                if not is_open or not is_below or next(records, None) is not None:
                    raise _ragged(file, line, len(fields), len(form.names), form.delimiter)
                last, piece = above, piece[:place]
                break
            above = line + sum(field.count("\n") for field in fields)
        for place, name in enumerate(form.names):
            values = dict.fromkeys(fields[place] for _, fields in piece)
            if na is None:
                missing |= values.keys() & MISSING
            known = [value for value in values if value not in missing]
            if known and name in texts:
                types[place] = "text"
            elif known:
                kind = type_of(
                    known,
                    form.decimal,
                    name,
                    place,
                    piece,
                    file,
                    thousands=form.thousands,
                    dates=dates,
                    is_sure=form.is_sure,
                )
                types[place] = wider(types[place], kind)
    wide = tuple(
        kind or ("empty" if form.types[place] == "empty" else "text")
        for place, kind in enumerate(types)
    )
    tokens = form.na if na is not None else ("", *sorted(missing - {""}))
    return _settled(dataclasses.replace(form, types=wide, na=tokens, last=last))


def _judge(
    records: list[tuple[int, list[str]]],
    form: CsvFormat,
    header: bool | None,
    na: Sequence[str] | None,
    file: Path,
    *,
    dates: str | None,
    texts: Sequence[str],
    head: int,
) -> CsvFormat:
    width = len(records[0][1])
    for line, fields in records[:head]:
        if len(fields) != width:
            above = _above(records[:head])
            raise _ragged(file, line, len(fields), width, form.delimiter, above=above)
    columns = [dict.fromkeys(record[1][place] for record in records[1:]) for place in range(width)]
    first = records[0][1]
    if header is None:
        header = has_header(first, columns)
    names = tuple(first) if header else tuple(f"column_{i + 1}" for i in range(width))
    empty = {
        place
        for place, name in enumerate(names)
        if header and is_empty_column(name, list(columns[place]))
    }
    if header:
        require_names([n for i, n in enumerate(names) if i not in empty], file, records[0][0])
        if len(records) == 1:
            raise InputError(
                "the file has a header and no records", code="no-rows", file=file, line=1
            )
    else:
        for values, value in zip(columns, first, strict=True):
            values.setdefault(value)
    if na is None:
        found = {value for values in columns for value in values if value in MISSING}
        na = ("", *sorted(found))
    missing = set(na)
    kept = [[value for value in values if value not in missing] for values in columns]
    numbers = [plain_amounts(values) or values for values in kept]
    grouped = grouping(numbers, form.decimal) if not form.thousands else None
    thousands, decimal = grouped or (form.thousands, form.decimal)
    is_sure = form.is_sure
    if not decimal:
        decimal, is_sure = decimal_mark(numbers, form.delimiter)
    form = dataclasses.replace(
        form,
        decimal=decimal,
        thousands=thousands,
        is_sure=is_sure,
        header=header,
        na=tuple(na),
        names=names,
    )
    data = records[1:] if header else records

    def typed(place: int, order: str | None) -> str:
        if place in empty:
            return "empty"
        if names[place] in texts:
            return "text"
        return type_of(
            kept[place],
            decimal,
            names[place],
            place,
            data,
            file,
            thousands=thousands,
            dates=order,
            is_sure=is_sure,
        )

    types = [typed(place, dates) for place in range(width)]
    # If one column shows whether day or month comes first, the same order is taken for all.
    orders = {kind.partition(":")[2][:2] for kind in types if kind.endswith(_DAY_OR_MONTH)}
    if UNSURE in types and len(orders) == 1:
        order = "day" if orders == {"%d"} else "month"
        types = [typed(i, order) if kind == UNSURE else kind for i, kind in enumerate(types)]
    return _settled(dataclasses.replace(form, types=tuple(types)))


def _settled(form: CsvFormat) -> CsvFormat:
    """Return the format with what is not sure as texts, and what is to be asked about it."""
    asked = [question_about(*pair) for pair in zip(form.names, form.types, strict=True)]
    types = tuple("text" if text else kind for text, kind in zip(asked, form.types, strict=True))
    return dataclasses.replace(form, types=types, questions=tuple(filter(None, asked)))


def _above(records: Sequence[tuple[int, list[str]]]) -> int:
    """Return how many lines stand above those that have as many fields as most do."""
    width = Counter(len(fields) for _, fields in records).most_common(1)[0][0]
    return next(line for line, fields in records if len(fields) == width) - 1


def _ragged(
    file: Path, line: int, found: int, expected: int, delimiter: str, *, above: int = 0
) -> InputError:
    title = f"; if the first lines are a title, say skip={above}" if above else ""
    return InputError(
        f"the line has {found} fields where the first has {expected}",
        code="ragged-row",
        hint="give every line as many fields as the header; quote text that holds the delimiter "
        f"{delimiter!r}{title}",
        file=file,
        line=line,
        expected=expected,
        found=found,
    )
