"""tau-Argus a-priori files (`.hst`): what is known about single cells before any rule is applied.

Each line names a cell by one code per attribute and says one thing about it::

    Agriculture, North, u           sensitive
    Agriculture, South, p           must stay published
    Industry, North, s              safe
    Industry, South, c, 5           withholding it costs 5
    Services, North, pl, 10, 20     protection levels below and above its value
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from discreet.data.files import read_rows, require_file
from discreet.data.table import Bools, Status, Table
from discreet.errors import InputError, nearest

__all__ = ["Apriori", "read_apriori"]

#: What may be said of a cell, and how many numbers follow.
_WORDS = {"u": 0, "p": 0, "s": 0, "c": 1, "pl": 2}


@dataclasses.dataclass(frozen=True)
class Apriori:
    """A table with given statuses, costs and levels, and the cells that must stay published."""

    table: Table
    never: tuple[tuple[str, ...], ...]


def read_apriori(path: str | Path, table: Table, *, separator: str | None = None) -> Apriori:
    """Return the table as an a-priori file changes it.

    Rules that are applied afterwards add to what the file says is sensitive.

    Parameters
    ----------
    separator
        Of the fields; found out by default.
    """
    file = require_file(path)
    status = np.zeros(len(table), np.int8) if table.status is None else table.status.copy()
    cost = np.abs(table.value) if table.cost is None else table.cost.copy()
    lower = np.zeros(len(table)) if table.lower is None else table.lower.copy()
    upper = np.zeros(len(table)) if table.upper is None else table.upper.copy()
    never: list[tuple[str, ...]] = []
    given = set()
    for line, fields in read_rows(file, delimiter=separator):
        codes, word, numbers = _parsed(fields, len(table.dimensions), file, line)
        cell = _cell(table, codes, file, line)
        given.add(word)
        if word == "u":
            status[cell] = Status.PRIMARY
        elif word == "s":
            status[cell] = Status.SAFE
        elif word == "p":
            never.append(codes)
        elif word == "c":
            cost[cell] = numbers[0]
        else:
            lower[cell], upper[cell] = numbers
    changed = table.replace(status=status, never=_with_never(table, never))
    if "c" in given:
        changed = changed.replace(cost=cost)
    if "pl" in given:
        changed = changed.replace(lower=lower, upper=upper)
    return Apriori(changed, tuple(never))


def _with_never(table: Table, cells: list[tuple[str, ...]]) -> Bools | None:
    if not cells:
        return table.never
    mask = np.zeros(len(table), dtype=bool) if table.never is None else table.never.copy()
    mask[[table.cell(*codes) for codes in cells]] = True
    return mask


def _parsed(
    fields: list[str], attributes: int, file: Path, line: int
) -> tuple[tuple[str, ...], str, list[float]]:
    parts = [field.strip() for field in fields]
    if len(parts) <= attributes:
        raise InputError(
            f"the line has {len(parts)} fields; the table has {attributes} attributes, and after "
            "their codes it must say something",
            code="ragged-row",
            hint="write one code per attribute, then u, p, s, c with a cost or pl with two levels",
            file=file,
            line=line,
        )
    word, rest = parts[attributes].lower(), parts[attributes + 1 :]
    if word not in _WORDS:
        guess = nearest(word, _WORDS)
        raise InputError(
            f"{word!r} says nothing about a cell",
            code="unknown-status",
            hint=f"write {guess!r}" if guess else "write one of " + ", ".join(_WORDS),
            file=file,
            line=line,
        )
    rest = [part for part in rest if part]
    try:
        numbers = [float(part) for part in rest]
    except ValueError:
        numbers = []
    if len(numbers) != _WORDS[word] or len(rest) != len(numbers) or min(numbers, default=0.0) < 0:
        raise InputError(
            f"{word!r} is followed by {_WORDS[word]} numbers, zero or more, not by {len(rest)} fields"
            if len(rest) != _WORDS[word]
            else f"what follows {word!r} is not a number of zero or more",
            code="not-a-number",
            hint="write c,5 for a cost and pl,10,20 for levels, with a point as decimal mark",
            file=file,
            line=line,
        )
    return tuple(parts[:attributes]), word, numbers


def _cell(table: Table, codes: tuple[str, ...], file: Path, line: int) -> int:
    try:
        return table.cell(*codes)
    except InputError as error:
        raise InputError(
            str(error.args[0]),
            code=error.code,
            hint="an a-priori file names cells of the table, totals with the code of the total",
            file=file,
            line=line,
        ) from None
