"""Lines around the table of a CSV file: titles above the header, notes below.

A line with at most one filled field is a title where the table has not begun. After the last record
it is a note if it is short of fields or stands below an empty line; a record with all its fields may
well hold one value only, so it stays.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Sequence

__all__ = ["is_note", "is_total", "notes", "titles"]

_TOTAL = re.compile(
    r"(grand |sub-?)?(totals?|totaux|totale|sum|summe|gesamt|insgesamt|suma|somme|totaal|i alt)\W*",
    re.IGNORECASE,
)
#: Records above the header that are looked at.
_MOST = 30

Numbered = tuple[int, Sequence[str]]


def _filled(fields: Sequence[str]) -> int:
    return sum(1 for field in fields if field.strip())


def is_total(fields: Sequence[str]) -> bool:
    """Whether a line below the records seems to be their total.

    >>> is_total(["", "Total", "1,234"]), is_total(["Total shop", "IT", "3"])
    (True, False)
    """
    return any(_TOTAL.fullmatch(field.strip()) for field in fields)


def titles(records: Sequence[Numbered]) -> int:
    """Return how many records stand above the header.

    >>> titles([(1, ["Survey 2024", "", ""]), (2, ["a", "b", "c"]), (3, ["1", "2", "3"])])
    1
    """
    if len(records) < 2:
        return 0
    counted = Counter(len(fields) for _, fields in itertools.islice(records, 200))
    narrow = counted.pop(1, 0)
    if not counted or narrow > counted.total():
        return 0
    width = counted.most_common(1)[0][0]
    found = 0
    for _, fields in records[:_MOST]:
        filled = _filled(fields)
        # A record with all its fields empty is one of the table unless a title stands above it.
        if filled > 1 or (len(fields) == width and (width < 3 or (filled == 0 and not found))):
            break
        found += 1
    rest = records[found:]
    return found if rest and _filled(rest[0][1]) > 1 else 0


def is_note(fields: Sequence[str], width: int) -> bool:
    """Whether a line that is short of fields can be a note below the table."""
    return width >= 3 and len(fields) < width and _filled(fields) <= 1


def notes(records: Sequence[Numbered], width: int) -> int:
    """Return how many of the last records are notes, with empty ones between them.

    >>> table = [(1, ["a", "b", "c"]), (2, ["1", "2", "3"]), (3, ["Source: survey"])]
    >>> notes(table, 3), notes(table[:2], 3)
    (1, 0)
    """
    best = 0
    for found, place in enumerate(range(len(records) - 1, 0, -1), start=1):
        line, fields = records[place]
        before, above = records[place - 1]
        below_gap = line > before + 1 + sum(field.count("\n") for field in above)
        if _filled(fields) > 1 or width < 2:
            break
        if is_note(fields, width) or (width >= 3 and below_gap):
            best = found
    return best
