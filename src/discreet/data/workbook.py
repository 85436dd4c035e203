"""Excel and OpenDocument workbooks: the sheet with records, its header, the cells as columns.

Rows above the header with one filled cell are titles; a header over two rows, where cells are merged
across columns, becomes one ("men" over "count" is "men count"). Cells merged down repeat their value.
Notes below the table, and columns without a name and a value, are left out. All of it is shown.
"""

from __future__ import annotations

import datetime
import re
import shlex
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.data.codes import code_text
from discreet.data.csv_edges import is_remark
from discreet.data.csv_fields import (
    MISSING,
    STRAY,
    as_number,
    has_header,
    is_empty_column,
    question_about,
    require_names,
    type_of,
)
from discreet.data.files import typed_column
from discreet.data.reading import Guess, Question, Reading, needs_extra
from discreet.data.totals import asked_about_totals, find_totals, is_total
from discreet.data.workbook_errors import refuse_errors
from discreet.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["read_workbook"]

#: Bytes that the parts of a workbook may have when unpacked.
_MOST = 1 << 32
#: Cells of the rectangle that a sheet fills; the reader holds every one of them, empty or not.
_AREA = 1 << 24
_PLACE = re.compile(rb"""\br=["']([A-Za-z]{1,3})([0-9]{1,7})["']""")
_ERRORS = frozenset({"#N/A", "#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!"})

# Any: a cell holds a text, a number, a truth, a date or a time.
Cells = list[list[Any]]


def read_workbook(
    file: Path,
    kind: str = "excel",
    *,
    sheet: str | None = None,
    header: bool | None = None,
    skip: int | None = None,
    footer: int | None = None,
    dates: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    na: Sequence[str] | None = None,
    texts: Sequence[str] = (),
) -> tuple[pa.Table, Reading]:
    """Return the records of a workbook and what was guessed.

    Parameters
    ----------
    sheet
        The name of the sheet; needed where several hold records.
    header, skip, footer
        Whether there is a row of names; how many rows stand above it and below the last record.
    dates
        "day" or "month": which comes first in dates that are written as texts.
    decimal, thousands
        The marks in numbers that are written as texts.
    na
        Texts that mean "no value", besides an empty cell.
    texts
        Columns to be read as texts whatever they look like.
    """
    import pyarrow as pa

    name, grid, merged, others = _sheet(file, kind, sheet)
    top = _titles(grid) if skip is None else skip
    if top >= len(grid):
        raise InputError(
            f"the sheet {name!r} has {len(grid)} rows", code="no-rows", hint="lower skip", file=file
        )
    asked = list(refuse_errors(file, name))
    names, body, is_named = _named(grid, top, merged, header, file)
    below = _notes(body) if footer is None else footer
    top_row = len(grid) - len(body) + 1
    ends = len(body)
    body = body[: len(body) - below] if below else body
    missing = MISSING if na is None else frozenset(na)
    numbered = [
        (top_row + place, [cell if _is_value(cell, missing) else None for cell in row])
        for place, row in enumerate(body)
        if any(map(_known, row))
    ]
    body = [row for _, row in numbered]
    if not body:
        raise InputError(
            f"the sheet {name!r} has a header and no records", code="no-rows", file=file
        )
    has_numbers = any(isinstance(cell, int | float) for row in body for cell in row)
    columns = {}
    for place, title in enumerate(names):
        cells = [row[place] for row in body]
        if is_empty_column(title, ["" if cell is None else "x" for cell in cells]):
            continue
        columns[title], question = _column(
            cells,
            title,
            file,
            dates,
            [line for line, _ in numbered],
            marks=(decimal, thousands),
            as_text=title in texts or (has_numbers and _are_codes([row[place] for row in body])),
        )
        if question is not None:
            asked.append(question)
    require_names(list(columns), file, top + 1)
    guesses = [Guess("sheet", repr(name) + (f" (of {others})" if others > 1 else ""), "sheet")]
    if is_named:
        guesses.append(Guess("names of columns", f"in row {top + 1}", "skip"))
    else:
        guesses.append(Guess("names of columns", "none", "header"))
    if below:
        guesses.append(Guess("rows left out below", str(below), "footer"))
    marked = (decimal or ("," if thousands == "." else "."), thousands or "")
    lines = [(line, [_cell(cell, *marked) for cell in row]) for line, row in numbered]
    totals = find_totals(lines, is_open=footer is None)
    asked += asked_about_totals(totals, "row", top_row + ends - (totals[0] or 0))
    return pa.table(columns), Reading(kind, tuple(guesses), tuple(asked))


#: Codes of a classification, such as 86.10, and numbers of equal length, such as 04711.
_CODE = re.compile(r"\d{2}\.\d{1,2}|\d{4,}")


def _are_codes(cells: Sequence[Any]) -> bool:
    """Whether cells are codes that somebody wrote as texts: as numbers, 86.10 would be 86.1.

    Asked where other cells of the sheet are numbers, so that whoever made it told the two apart.
    """
    known = [cell.strip() if isinstance(cell, str) else cell for cell in cells if cell is not None]
    if not known or not all(isinstance(cell, str) and _CODE.fullmatch(cell) for cell in known):
        return False
    lengths = {len(cell) for cell in known}
    return len(lengths) == 1 or all("." in cell for cell in known)


def _cell(cell: Any, decimal: str, thousands: str) -> float | str | None:
    """Return a cell as a number, a text or nothing; dates and truths are texts."""
    if cell is None or (isinstance(cell, int | float) and not isinstance(cell, bool)):
        return None if cell is None else float(cell)
    if not isinstance(cell, str):
        return "date"
    number = as_number(cell.strip(), decimal, thousands)
    return cell if number is None else number


def _words(row: Sequence[Any]) -> list[str]:
    """Return the cells that are texts; any other as an empty one."""
    return [cell if isinstance(cell, str) and _known(cell) else "" for cell in row]


def _sheet(
    file: Path, kind: str, wanted: str | None
) -> tuple[str, Cells, list[tuple[tuple[int, int], tuple[int, int]]], int]:
    """Return a sheet's name, cells and merged ranges, and how many sheets hold something."""
    try:
        import python_calamine as calamine
    except ModuleNotFoundError:
        raise needs_extra(file.suffix) from None
    _require_small(file)
    try:
        with calamine.CalamineWorkbook.from_path(str(file)) as book:
            if wanted is not None and wanted not in book.sheet_names:
                shown = ", ".join(map(repr, book.sheet_names))
                raise InputError(
                    f"the workbook has no sheet {wanted!r}",
                    code="unknown-sheet",
                    hint=f"choose one of {shown}",
                    file=file,
                )
            read = {
                name: _cells(book.get_sheet_by_name(name))
                for name in ([wanted] if wanted is not None else book.sheet_names)
            }
            found = {name: cells for name, cells in read.items() if _has_records(cells[0])}
            # Beside a table, one column of texts is a cover or notes.
            wide = {name: cells for name, cells in found.items() if len(cells[0][0]) > 1}
            found = wide or found
            if wanted is not None:
                found = read if read[wanted][0] else {}
            if not found:
                raise InputError(
                    "the workbook holds no table of records",
                    code="empty-file",
                    hint="give a sheet with a row of names and records below it",
                    file=file,
                )
            if len(found) > 1:
                shown = ", ".join(map(repr, found))
                raise InputError(
                    f"the workbook has {len(found)} sheets with records: {shown}",
                    code="several-sheets",
                    hint=f"say which, such as sheet={_largest(found)!r}, or on the command line "
                    f"--sheet {shlex.quote(_largest(found))}",
                    file=file,
                )
            ((name, (grid, merged)),) = found.items()
            return name, grid, merged, len(book.sheet_names)
    except calamine.PasswordError:
        raise InputError(
            "the workbook is locked with a password",
            code="bad-file",
            hint="save it without a password",
            file=file,
        ) from None
    except (calamine.CalamineError, OSError, ValueError) as error:
        raise InputError(
            f"the file is not a readable {'OpenDocument' if kind == 'ods' else 'Excel'} workbook",
            code="bad-file",
            hint="open it in a spreadsheet program and save it again, or as CSV",
            kind=type(error).__name__,
            file=file,
        ) from None


def _largest(sheets: Mapping[str, tuple[Cells, Any]]) -> str:
    """Return the sheet with the most rows. Any: merged ranges."""
    return max(sheets, key=lambda name: len(sheets[name][0]))


def _require_small(file: Path) -> None:
    """Refuse a workbook that would fill the memory when unpacked."""
    if not zipfile.is_zipfile(file):
        return
    with zipfile.ZipFile(file) as archive:
        size = sum(item.file_size for item in archive.infolist())
        sheets = [item for item in archive.infolist() if "worksheets/" in item.filename]
    if size > min(_MOST, max(1 << 28, file.stat().st_size * 200)):
        raise InputError(
            f"the workbook holds {size:,} bytes when unpacked",
            code="too-large",
            hint="save the table as CSV or Parquet",
            file=file,
        )
    for sheet in sheets:
        _require_dense(file, sheet)


def _require_dense(file: Path, sheet: zipfile.ZipInfo) -> None:
    """Refuse a sheet with a lone cell far away: what lies between would fill the memory."""
    rows = columns = filled = 0
    with zipfile.ZipFile(file) as archive, archive.open(sheet) as stream:
        rest = b""
        while block := stream.read(1 << 20):
            places = {match.groups() for match in _PLACE.finditer(rest + block)}
            rest = block[-32:]
            filled += len(places)
            rows = max([rows, *(int(row) for _, row in places)])
            columns = max([columns, *(_number(letters) for letters in {one for one, _ in places})])
    if rows * columns > max(_AREA, 4 * filled):
        raise InputError(
            f"a sheet of the workbook reaches to row {rows:,} and column {columns:,}, nearly all "
            "of it empty",
            code="too-large",
            hint="delete the lone cells outside the table, or save the table as CSV",
            file=file,
        )


def _number(letters: bytes) -> int:
    """Return the place of a column by its letters: A is 1, AA is 27."""
    place = 0
    for letter in letters.upper():
        place = place * 26 + letter - 64
    return place


def _cells(sheet: Any) -> tuple[Cells, list[tuple[tuple[int, int], tuple[int, int]]]]:
    """Return the rows of a sheet as they stand, cells merged downwards repeated.

    Any: a sheet of calamine.
    """
    grid: Cells = [list(row) for row in sheet.to_python(skip_empty_area=False)]
    ranges = list(sheet.merged_cell_ranges or ()) if grid else []
    for (top, left), (bottom, _) in ranges:
        if top < len(grid) and left < len(grid[top]):
            for row in range(top + 1, min(bottom + 1, len(grid))):
                grid[row][left] = grid[top][left]
    while grid and not any(_known(cell) for cell in grid[-1]):
        grid.pop()
    width = max((p + 1 for row in grid for p, cell in enumerate(row) if _known(cell)), default=0)
    left = min((p for row in grid for p, cell in enumerate(row) if _known(cell)), default=0)
    moved = [((t, a - left), (b, z - left)) for (t, a), (b, z) in ranges]
    return [row[left:width] for row in grid], moved


def _known(cell: Any) -> bool:
    if cell is None:
        return False
    return not isinstance(cell, str) or (
        cell.strip() != "" and cell not in _ERRORS and cell not in MISSING
    )


def _filled(row: Sequence[Any]) -> int:
    return sum(1 for cell in row if _known(cell))


def _has_records(grid: Cells) -> bool:
    """Whether a sheet looks like a table: two rows or more with two cells, or one column of them."""
    wide = sum(1 for row in grid if _filled(row) > 1)
    return wide > 1 or (bool(grid) and len(grid[0]) == 1 and len(grid) > 1)


def _titles(grid: Cells) -> int:
    """Return how many rows stand above the header: titles, and empty rows."""
    if not grid or len(grid[0]) < 2:
        return next((place for place, row in enumerate(grid) if _filled(row)), 0)
    return next((place for place, row in enumerate(grid[:50]) if _filled(row) > 1), 0)


def _named(
    grid: Cells,
    top: int,
    merged: Sequence[tuple[tuple[int, int], tuple[int, int]]],
    header: bool | None,
    file: Path,
) -> tuple[list[str], Cells, bool]:
    """Return the names of the columns, the rows below them, and whether there were names."""
    first = ["" if not _known(cell) else code_text(cell).strip() for cell in grid[top]]
    if header is None:
        is_text = all(isinstance(cell, str) for cell in grid[top] if _known(cell))
        below = [
            [code_text(row[place]) for row in grid[top + 1 :] if _known(row[place])]
            for place in range(len(first))
        ]
        header = is_text or has_header(first, below)
    if not header:
        return [f"column_{place + 1}" for place in range(len(first))], grid[top:], False
    across = [(a, z) for (t, a), (b, z) in merged if t == b == top and z > a]
    if not across:
        return first, grid[top + 1 :], True
    if len(grid) <= top + 2:
        raise InputError("the sheet has names and no records", code="no-rows", file=file)
    # A heading over several columns belongs to the name of each.
    for left, right in across:
        first[left : right + 1] = [first[left]] * (right + 1 - left)
    second = ["" if not _known(cell) else code_text(cell).strip() for cell in grid[top + 1]]
    names = [
        f"{one} {two}".strip() if one != two else one
        for one, two in zip(first, second, strict=True)
    ]
    return names, grid[top + 2 :], True


def _notes(body: Cells) -> int:
    """Return how many of the last rows are notes: one filled cell below an empty row, or a remark."""
    if not body or len(body[0]) < 3:
        return 0
    best = 0
    for found, place in enumerate(range(len(body) - 1, 0, -1), start=1):
        row = body[place]
        if _filled(row) > 1:
            break
        if _filled(row) and not _filled(body[place - 1]):
            best = found
    rest = len(body) - best
    while rest > 1 and _filled(body[rest - 1]) <= 1 and _is_remark(body[rest - 1]):
        rest -= 1
    # Where other records have one value only, the last ones may be records too.
    return best if any(_filled(row) == 1 for row in body[:rest]) else len(body) - rest


def _is_remark(row: Sequence[Any]) -> bool:
    words = _words(row)
    return is_remark(words) and not is_total(words)


def _column(
    cells: Sequence[Any],
    name: str,
    file: Path,
    dates: str | None,
    lines: Sequence[int],
    *,
    marks: tuple[str | None, str | None],
    as_text: bool,
) -> tuple[pa.Array, Question | None]:
    """Return a column in its narrowest type, and what is to be asked about it."""
    import pyarrow as pa

    known = [cell for cell in cells if cell is not None]
    if as_text or not known:
        return pa.array([None if c is None else code_text(c) for c in cells], pa.string()), None
    if all(isinstance(cell, bool) for cell in known):
        return pa.array(cells, pa.bool_()), None
    if all(isinstance(cell, int | float) and not isinstance(cell, bool) for cell in known):
        whole = all(cell == int(cell) and abs(cell) < 2**53 for cell in known)
        kind = pa.int64() if whole else pa.float64()
        return pa.array(
            [None if c is None else (int(c) if whole else c) for c in cells], kind
        ), None
    if all(isinstance(cell, datetime.date) for cell in known):
        return _dates(cells), None
    if all(isinstance(cell, str) for cell in known):
        texts = [None if cell is None else cell.strip() for cell in cells]
        unique = list(dict.fromkeys(text for text in texts if text is not None))
        decimal, thousands = marks[0], marks[1] or ""
        if decimal is None:
            decimal = "," if thousands == "." else "."
        found = type_of(
            unique,
            decimal,
            name,
            0,
            [(line, [text]) for line, text in zip(lines, texts, strict=True) if text is not None],
            file,
            dates=dates,
            thousands=thousands,
            is_sure=marks != (None, None),
        )
        if question := question_about(name, found, "row"):
            return pa.array(texts, pa.string()), question
        return typed_column(texts, found, decimal, thousands), None
    question = question_about(name, _strays(cells, lines), "row")
    texts = [None if cell is None else code_text(cell) for cell in cells]
    return pa.array(texts, pa.string()), question


def _strays(cells: Sequence[Any], lines: Sequence[int]) -> str:
    """Return the type of a column of mixed cells: which row holds a text among numbers or dates."""
    known = [(line, cell) for line, cell in zip(lines, cells, strict=True) if cell is not None]
    odd = [line for line, cell in known if isinstance(cell, str)]
    rest = len(known) - len(odd)
    return f"{STRAY}{odd[0]}" if odd and rest >= max(10, 10 * len(odd)) else "text"


def _is_value(cell: Any, missing: frozenset[str]) -> bool:
    """Whether a cell holds a value, where some texts mean that it does not."""
    if not isinstance(cell, str):
        return cell is not None
    text = cell.strip()
    return text != "" and cell not in _ERRORS and text not in missing


def _dates(cells: Sequence[Any]) -> pa.Array:
    import pyarrow as pa

    times = [cell for cell in cells if isinstance(cell, datetime.datetime)]
    if any(cell.time() != datetime.time() for cell in times):
        full = [
            cell
            if cell is None or isinstance(cell, datetime.datetime)
            else datetime.datetime.combine(cell, datetime.time())
            for cell in cells
        ]
        return pa.array(full, pa.timestamp("us"))
    days = [cell.date() if isinstance(cell, datetime.datetime) else cell for cell in cells]
    return pa.array(days, pa.date32())
