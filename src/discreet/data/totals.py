"""Rows that add up those above them, whether a label says so or not, and what is asked about them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from discreet.data.reading import Question

__all__ = ["Totals", "asked_about_totals", "find_totals", "is_total"]

_TOTAL = re.compile(
    r"(grand |sub-?)?(totals?|totaux|totale|sum|summe|gesamt|insgesamt|suma|somme|totaal|i alt)\W*",
    re.IGNORECASE,
)
_SUBTOTAL = re.compile(
    r"(sub-?total|sous-total|subtotaal|subtotale|zwischensumme|teilsumme|summe)\b", re.IGNORECASE
)
#: So many numbers above a last row, if they add up to its own, make it a total whatever it is called.
_ENOUGH = 5

#: A cell: a number, a text, or nothing.
Cell = float | str | None
#: The line or row of a last record that seems to be a total, and of totals above it.
Totals = tuple[int | None, tuple[int, ...]]


def is_total(fields: Sequence[object]) -> bool:
    """Whether a label says that a row is a total.

    >>> is_total(["", "Total", "1,234"]), is_total(["Total shop", "IT", "3"])
    (True, False)
    """
    return any(isinstance(field, str) and _TOTAL.fullmatch(field.strip()) for field in fields)


def find_totals(
    rows: Sequence[tuple[int, Sequence[Cell]]], *, ends: bool = True, is_open: bool = True
) -> Totals:
    """Return the last record if it seems to be a total, and the totals inside the table.

    Without a label a row is a total if it leaves out what every record has and one of its numbers
    is the sum of those above; the last one also if it leaves out what every record has and holds
    numbers only, or if many numbers add up to its own.

    Parameters
    ----------
    ends
        Whether the last of the rows is the last of the file.
    is_open
        Whether nobody said where the records end.

    Examples
    --------
    >>> find_totals([(2, ["a", 1.0]), (3, ["b", 2.0]), (4, [None, 3.0]), (5, ["Summers", 2.0])])
    (None, (4,))
    >>> find_totals([(2, ["a", 1.0]), (3, ["Subtotal A", 1.0]), (4, ["Total", 1.0])])
    (4, (3,))
    """
    bare = _bare(rows)
    last = None
    if ends and is_open and len(rows) > 1:
        line, cells = rows[-1]
        is_last = is_total(cells) or (len(rows) - 1 in bare and len(rows) > _ENOUGH)
        if is_last or _adds_up(rows, len(rows) - 1, 0, least=_ENOUGH):
            last = line
    inside = []
    start = 0
    for place, (line, cells) in enumerate(rows):
        labelled = any(isinstance(one, str) and _SUBTOTAL.match(one.strip()) for one in cells)
        summed = place in bare and any(
            _adds_up(rows, place, first, least=2) for first in dict.fromkeys((start, 0))
        )
        if labelled or summed or is_total(cells):
            start = place + 1
            if line != last:
                inside.append(line)
    if last is None and is_open and ends and inside and inside[-1] == rows[-1][0] and len(rows) > 2:
        last = inside.pop()
    return last, tuple(inside)


def _bare(rows: Sequence[tuple[int, Sequence[Cell]]]) -> set[int]:
    """Return the places of the rows of numbers only that leave out what all others have."""
    width = len(rows[0][1]) if rows else 0
    only = {
        place
        for place, (_, cells) in enumerate(rows)
        if any(isinstance(one, float) for one in cells)
        and any(one is None for one in cells)
        and not any(isinstance(one, str) for one in cells)
    }
    if not only or len(only) * 2 > len(rows):
        return set()
    rest = [cells for place, (_, cells) in enumerate(rows) if place not in only]
    always = [column for column in range(width) if all(c[column] is not None for c in rest)]
    return {place for place in only if any(rows[place][1][column] is None for column in always)}


def _adds_up(
    rows: Sequence[tuple[int, Sequence[Cell]]], place: int, first: int, *, least: int
) -> bool:
    """Whether a number of a row is the sum of `least` or more different from 0 above it."""
    for column, total in enumerate(rows[place][1]):
        if not isinstance(total, float) or total == 0 or place - first < least:
            continue
        above = [cells[column] for _, cells in rows[first:place]]
        numbers = [one for one in above if isinstance(one, float) and one != 0]
        if len(numbers) < least or any(isinstance(one, str) for one in above):
            continue
        # Amounts are printed with few decimals, so sums differ in the last one.
        if abs(sum(numbers) - total) <= 1e-9 * abs(total) + 1e-6:
            return True
    return False


def asked_about_totals(totals: Totals, word: str, below: int) -> tuple[Question, ...]:
    """Return what is asked about totals; `word` is line or row, `below` how many the last one ends.

    >>> asked_about_totals((None, (14, 27)), "row", 0)
    ('rows 14, 27: totals of records above? Read as records; if they are, delete them in the file',)
    >>> asked_about_totals((62, ()), "line", 1)
    ('line 62: a total of the records above? Read as a record; if it is one, write --footer 1',)
    """
    last, inside = totals
    asked = []
    if inside:
        shown = ", ".join(f"{line:,}" for line in inside[:5])
        shown += f" and {len(inside) - 5:,} more" if len(inside) > 5 else ""
        told = (
            "totals of records above? Read as records; if they are, delete them in the file"
            if len(inside) > 1
            else "a total of records above? Read as a record; if it is, delete it in the file"
        )
        asked.append(Question(f"{word}{'s' * (len(inside) > 1)} {shown}", told))
    if last is not None:
        told = "a total of the records above? Read as a record; if it is one,"
        asked.append(Question(f"{word} {last:,}", told, (("footer", str(below)),)))
    return tuple(asked)
