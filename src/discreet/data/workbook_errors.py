"""Cells of a workbook whose formula failed (#REF!, #DIV/0!): the reader gives them as empty ones.

A sum without such a cell is another sum, so they are looked for in the sheet itself.
"""

from __future__ import annotations

import html
import re
import zipfile
from pathlib import Path

from discreet.data.reading import Question
from discreet.errors import InputError

__all__ = ["refuse_errors"]

_SHEET = re.compile(r"<(?:\w+:)?sheet\s[^<>]*>")
_LINK = re.compile(r"<(?:\w+:)?Relationship\s[^<>]*>")
_FAILED = re.compile(
    rb"""<(?:\w+:)?c\s(?=[^<>]*\bt=["']e["'])[^<>]*?\br=["']([A-Z]{1,3}[0-9]{1,7})["'][^<>]*>"""
)
_TOLD = re.compile(rb"\s*(?:<(?:\w+:)?f\b[^<]*(?:</(?:\w+:)?f>)?)?\s*<(?:\w+:)?v>([^<]{0,20})")
#: What formulas give on purpose where there is no value.
_NOT_AVAILABLE = b"#N/A"
_ODS_SHEET = re.compile(rb"<table:table\s[^<>]*?\btable:name=[\"']([^\"'<>]*)[\"'][^<>]*>")
_ODS_FAILED = re.compile(rb"<table:table-cell\s[^<>]*?\bcalcext:value-type=[\"']error[\"']")


def refuse_errors(file: Path, sheet: str) -> tuple[Question, ...]:
    """Refuse a sheet with failed formulas; return what to ask about those that say "no value".

    Old binary workbooks (.xls, .xlsb) are not looked into.
    """
    if not zipfile.is_zipfile(file):
        return ()
    with zipfile.ZipFile(file) as archive:
        parts = set(archive.namelist())
        if "content.xml" in parts:
            _refuse_ods(archive.read("content.xml"), sheet, file)
            return ()
        part = _part(archive, sheet) if "xl/workbook.xml" in parts else None
        content = archive.read(part) if part is not None and part in parts else b""
    cells = {}
    for failed in _FAILED.finditer(content):
        told = _TOLD.match(content, failed.end())
        cells[failed.group(1).decode()] = told.group(1) if told else b""
    missing = [place for place, error in cells.items() if error == _NOT_AVAILABLE]
    wrong = [place for place in cells if place not in missing]
    if wrong:
        raise _failed(sheet, len(wrong), f": {_named(wrong)}", file)
    if not missing:
        return ()
    count = "1 cell" if len(missing) == 1 else f"{len(missing):,} cells"
    said = (
        f"{count} with #N/A ({_named(missing)}). Read as missing; where there is a value, mend it in "
        "the workbook"
    )
    return (Question(f"sheet {sheet!r}", said),)


def _named(places: list[str]) -> str:
    return ", ".join(places[:5]) + (", …" if len(places) > 5 else "")


def _failed(sheet: str, count: int, places: str, file: Path) -> InputError:
    return InputError(
        f"sheet {sheet!r} has {count:,} cell{'s' if count > 1 else ''} whose formula failed (#REF!, #DIV/0!, …){places}",
        code="error-cells",
        hint="mend the formulas in the workbook, or empty the cells if they have no value",
        file=file,
    )


def _part(archive: zipfile.ZipFile, sheet: str) -> str | None:
    """Return the part of an Excel workbook that holds a sheet."""
    book = archive.read("xl/workbook.xml").decode("utf-8", "replace")
    link = next(
        (
            _attribute(tag, r"\w+:id")
            for tag in _SHEET.findall(book)
            if html.unescape(_attribute(tag, "name")) == sheet
        ),
        None,
    )
    links = archive.read("xl/_rels/workbook.xml.rels").decode("utf-8", "replace")
    for tag in _LINK.findall(links):
        if _attribute(tag, "Id") == link:
            target = _attribute(tag, "Target")
            return target[1:] if target.startswith("/") else f"xl/{target}"
    return None


def _attribute(tag: str, name: str) -> str:
    found = re.search(rf"""\s{name}=(?:"([^"]*)"|'([^']*)')""", tag)
    return (found.group(1) or found.group(2) or "") if found else ""


def _refuse_ods(content: bytes, sheet: str, file: Path) -> None:
    starts = [*_ODS_SHEET.finditer(content)]
    for place, start in enumerate(starts):
        if html.unescape(start.group(1).decode("utf-8", "replace")) != sheet:
            continue
        end = starts[place + 1].start() if place + 1 < len(starts) else len(content)
        if count := len(_ODS_FAILED.findall(content[start.end() : end])):
            raise _failed(sheet, count, "", file)
