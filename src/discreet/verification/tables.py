"""Promises of a released table: what is withheld is withheld in every format, and totals add up."""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from discreet.verification.findings import UNKNOWN, Finding, judged
from discreet.verification.held import Held, Need
from discreet.verification.reading import File, Form, inside, open_file
from discreet.verification.records import columns_finding, leftover_finding

__all__ = [
    "FEW", "Cell", "Codes", "Equation", "check_table", "printed_cells", "printed_equations", "solved",
]  # fmt: skip

Codes = tuple[str, ...]
#: A total and its parts.
Equation = tuple[Codes, tuple[Codes, ...]]
#: The printed columns of a cell, None where nothing is printed.
Cell = Mapping[str, Any]

_WITHHELD, _CONFIDENTIAL = "withheld", "C"
_NUMBERS = ("value", "lower", "upper", "count", "lower_95", "upper_95")
#: Up to so many withheld cells their intervals are computed again.
FEW = 30
_SAME = 1e-9


def check_table(folder: Path, promise: Mapping[str, Any], held: Held) -> list[Finding]:
    """Judge the files of a table by what was promised of them."""
    part = str(promise.get("folder", ""))
    place = inside(folder, part)
    found: list[Finding] = []
    tables: dict[str, dict[Codes, Cell]] = {}
    for name in promise["files"]:
        file, shown = open_file(inside(place, name)), f"{part}/{name}" if part else str(name)
        found.append(columns_finding(shown, file.columns, promise["columns"]))
        found.append(leftover_finding(shown, file))
        if not found[-2].holds:
            return found
        tables[shown] = _cells(file, promise["by"])
        found += _withheld(shown, tables[shown], promise)
    first, cells = next(iter(tables.items()))
    for name, other in list(tables.items())[1:]:
        wrong = _differences(cells, other)
        found.append(
            judged(name, f"the cells of {first}", f"{wrong:,} cells differ" if wrong else None)
        )
    equations = list(_equations(place, cells, promise))
    if promise["additive"]:
        found.append(_additive(first, cells, equations, float(promise["tolerance"])))
    if promise["withholds"] and promise["statistic"] != "mean":
        found.append(_intervals(first, cells, equations, promise, held.needs.get(part)))
    return found


def _cells(file: File, by: Sequence[str]) -> dict[Codes, Cell]:
    places = [file.columns.index(name) for name in by]
    cells: dict[Codes, Cell] = {}
    for row in file.rows():
        # An empty code is printed as nothing.
        codes = tuple("" if row[place] is None else str(row[place]) for place in places)
        if codes in cells:
            raise ValueError("a cell is printed twice")
        cells[codes] = {
            name: _number(value) if name in _NUMBERS else value
            for name, value in zip(file.columns, row, strict=True)
            if name not in by
        }
    return cells


def _number(form: Form) -> float | None:
    number = math.nan if form in (None, "") else float(form)  # workbooks hold empty texts
    return None if math.isnan(number) else number


def _withheld(name: str, cells: Mapping[Codes, Cell], promise: Mapping[str, Any]) -> list[Finding]:
    """Judge whether cells marked as withheld print nothing, and are as many as were promised."""
    hidden = [cell for cell in cells.values() if cell["status"] == _WITHHELD]
    marked = sum(cell["conf_status"] == _CONFIDENTIAL for cell in cells.values())
    silent = ("value", "count") if promise["intervals"] else _NUMBERS
    told = sum(any(cell.get(column) is not None for column in silent) for cell in hidden)
    empty = sum(cell["value"] is None for cell in cells.values())
    expected = int(promise["withheld"])
    counts = {len(hidden), marked, empty} - {expected}
    wrong = f"{expected:,} cells are withheld, and files say otherwise" if counts else None
    return [
        judged(name, "withheld cells print nothing", f"{told:,} print a number" if told else None),
        judged(name, "every withheld cell is marked, and no other", wrong),
    ]


def _differences(one: Mapping[Codes, Cell], two: Mapping[Codes, Cell]) -> int:
    """Return the number of cells that two files print differently."""
    if set(one) != set(two):
        return len(set(one) ^ set(two))
    return sum(any(not _same(one[c][n], two[c].get(n)) for n in one[c]) for c in one)


def _same(one: Any, two: Any) -> bool:
    if isinstance(one, float) and isinstance(two, float):
        return one == two or abs(one - two) <= _SAME * max(1.0, abs(one))
    return bool(one == two)


def printed_cells(folder: Path, promise: Mapping[str, Any]) -> dict[Codes, Cell]:
    """Return the cells of a table as its first file prints them. Any: as `check_table`."""
    return _cells(open_file(folder / promise["files"][0]), promise["by"])


def printed_equations(folder: Path, promise: Mapping[str, Any]) -> list[Equation]:
    """Return every printed total with its printed parts. Any: as `check_table`."""
    return list(_equations(folder, printed_cells(folder, promise), promise))


# -- totals ---------------------------------------------------------------------------------------
def _equations(
    folder: Path, cells: Mapping[Codes, Cell], promise: Mapping[str, Any]
) -> Iterator[Equation]:
    """Give every printed total with its printed parts; a cell that is not printed is a zero."""
    for place, name in enumerate(promise["by"]):
        for file in promise["hierarchies"].get(name, ()):
            parent = dict(_pairs(inside(folder, file)))
            parts: dict[Codes, list[Codes]] = defaultdict(list)
            for codes in cells:
                above = parent.get(codes[place])
                if above:
                    parts[(*codes[:place], above, *codes[place + 1 :])].append(codes)
            for total, below in parts.items():
                if total in cells:
                    yield total, tuple(below)


def _pairs(file: Path) -> list[tuple[str, str]]:
    with file.open(encoding="utf-8", newline="") as lines:
        return [(row[0], row[1]) for row in list(csv.reader(lines))[1:]]


def _amount(cell: Cell) -> float | None:
    """Return what adds up: the value, or of a mean with its count their product."""
    value: float | None = cell["value"]
    count: float | None = cell.get("count")
    return value if value is None or count is None else value * count


def _additive(
    name: str, cells: Mapping[Codes, Cell], equations: Sequence[Equation], tolerance: float
) -> Finding:
    wrong = 0
    for total, parts in equations:
        amounts = [_amount(cells[codes]) for codes in (total, *parts)]
        if None in amounts:
            continue
        whole, *rest = (amount for amount in amounts if amount is not None)
        scale = abs(whole) + sum(map(abs, rest))
        wrong += abs(whole - math.fsum(rest)) > tolerance * max(scale, 1e-12)
    of = f"of {len(equations):,} totals are not the sum of their parts"
    return judged(name, "totals are the sums of their parts", f"{wrong:,} {of}" if wrong else None)


# -- intervals ------------------------------------------------------------------------------------
def _intervals(
    name: str,
    cells: Mapping[Codes, Cell],
    equations: Sequence[Equation],
    promise: Mapping[str, Any],
    needs: Sequence[Need] | None,
) -> Finding:
    """Compute again between what values withheld cells lie for anybody with the file."""
    words = "withheld cells cannot be computed"
    hidden = [codes for codes, cell in cells.items() if cell["value"] is None]
    if promise["intervals"]:
        return Finding(name, words, UNKNOWN, "intervals are printed")
    if len(hidden) > FEW:
        return Finding(name, words, UNKNOWN, f"more than {FEW} cells: use discreet audit")
    found = solved(cells, hidden, equations, 0.0 if promise["nonnegative"] else None)
    if needs is None:
        points = sum(high - low <= 1e-7 * max(1.0, abs(low)) for low, high in found.values())
        if points:
            return Finding(name, words, UNKNOWN, f"{points:,} can; which are sensitive stays")
        return judged(name, words, None)
    bad = 0
    for need in needs:
        low, high = found.get(need.codes, (-math.inf, math.inf))
        slack = 1e-5 * max(1.0, abs(need.lower), abs(need.upper))
        bad += low > need.lower + slack or high < need.upper - slack
    wrong = f"{bad:,} of {len(needs):,} sensitive cells lie in too narrow an interval"
    return judged(name, "sensitive cells keep their protection interval", wrong if bad else None)


def solved(
    cells: Mapping[Codes, Cell],
    hidden: Sequence[Codes],
    equations: Sequence[Equation],
    least: float | None,
) -> dict[Codes, tuple[float, float]]:
    """Return the least and largest possible value of each hidden cell, by linear programming."""
    import numpy as np
    from scipy.optimize import linprog

    place = {codes: number for number, codes in enumerate(hidden)}
    lines, sums = [], []
    for total, parts in equations:
        signs = {total: 1.0, **dict.fromkeys(parts, -1.0)}
        if not any(codes in place for codes in signs):
            continue
        line = np.zeros(len(hidden))
        known = 0.0
        for codes, sign in signs.items():
            if codes in place:
                line[place[codes]] += sign
            else:
                known += sign * float(cells[codes]["value"])
        lines.append(line)
        sums.append(-known)
    # Printed values are rounded, so sums of them may miss their total by a little.
    slack = 1e-9 * max(1.0, *(abs(cell["value"] or 0.0) for cell in cells.values()))
    matrix, right = np.array(lines).reshape(-1, len(hidden)), np.array(sums)
    found = {}
    for codes, number in place.items():
        ends = []
        for sign in (1.0, -1.0):
            cost = np.zeros(len(hidden))
            cost[number] = sign
            done = linprog(
                cost,
                A_ub=np.vstack([matrix, -matrix]) if lines else None,
                b_ub=np.concatenate([right + slack, -right + slack]) if lines else None,
                bounds=[(least, None)] * len(hidden),
                method="highs",
            )
            end = done.fun if done.status == 0 else None
            ends.append(-sign * math.inf if end is None else sign * end)
        found[codes] = (ends[0], ends[1])
    return found
