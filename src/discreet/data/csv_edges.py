"""Lines around the table of a CSV file: titles above the header, notes below.

A line with at most one filled field is a title where the table has not begun. After the last record
it is a note if it is short of fields, stands below an empty line, or is a sentence in the first field
where no record has one value only.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Sequence

from discreet.data.totals import is_total

__all__ = ["is_note", "is_remark", "notes", "titles"]

_SENTENCE = re.compile(r"[^\W\d].*[\s:]|^\*")
#: Records above the header that are looked at.
_MOST = 30

Numbered = tuple[int, Sequence[str]]


def _filled(fields: Sequence[str]) -> int:
    return sum(1 for field in fields if field.strip())


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


def is_remark(cells: Sequence[str]) -> bool:
    """Whether a row has a sentence in its first cell and nothing else, as notes have.

    >>> is_remark(["Source: the office", "", ""]), is_remark(["P-31", "", ""])
    (True, False)
    """
    first = cells[0].strip()
    return _filled(cells) == 1 and len(cells) > 2 and bool(_SENTENCE.search(first))


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
    for found, place in enumerate(range(len(records) - 1 - best, 0, -1), start=best + 1):
        if is_total(records[place][1]) or not is_remark(records[place][1]):
            rest = records[1 : place + 1]
            # Where other records have one value only, the last one may be a record too.
            return best if any(_filled(fields) == 1 for _, fields in rest) else found - 1
    return best
