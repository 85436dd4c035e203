"""Several publications together: what a stranger computes from all given folders at once.

Tables of one measure are joined by what their cells are called: the same codes of the same
attributes are one cell, wherever it is printed. Tables are of different records, and are not joined,
if their manifests say so or if they print different values for one cell.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from discreet.verification.findings import UNKNOWN, Finding, judged
from discreet.verification.manifest import MANIFEST
from discreet.verification.tables import (
    FEW,
    Cell,
    Codes,
    Equation,
    printed_cells,
    printed_equations,
    solved,
)

__all__ = ["verify_together"]

_EVIDENCE = "evidence.json"
#: A cell of any table: its codes that are no totals, by attribute.
Address = tuple[tuple[str, str], ...]


@dataclasses.dataclass(frozen=True, eq=False)
class _Printed:
    """A table as anybody reads it."""

    cells: dict[Address, Cell]
    equations: list[tuple[Address, tuple[Address, ...]]]
    #: Keyed digests by which the manifest tells the snapshot of its records; empty without.
    snapshot: str


def verify_together(folders: Sequence[str | Path]) -> list[Finding]:
    """Judge whether withheld cells of some folders can be computed from all of them."""
    groups: dict[tuple[str, str], list[_Printed]] = {}
    for folder in folders:
        for evidence in sorted(Path(folder).rglob(_EVIDENCE)):
            try:
                _collect(evidence, groups)
            except (OSError, ValueError, KeyError, TypeError, LookupError) as error:
                words = f"it cannot ({type(error).__name__})"
                return [judged(str(evidence), "can be read together with others", words)]
    return [
        finding
        for (_, measure), tables in groups.items()
        if len(tables) > 1
        for finding in _judge(measure or "records", tables)
    ]


def _collect(evidence: Path, groups: dict[tuple[str, str], list[_Printed]]) -> None:
    stated = json.loads(evidence.read_text(encoding="utf-8"))
    for promise in stated.get("promises", ()):
        if promise.get("kind") != "table" or promise["statistic"] == "mean":
            continue
        if promise["intervals"]:
            continue
        place = evidence.parent / str(promise.get("folder", ""))
        cells, equations = printed_cells(place, promise), printed_equations(place, promise)
        totals = _totals(equations, promise, cells)

        def named(
            codes: Codes,
            by: Sequence[str] = tuple(promise["by"]),
            totals: Mapping[str, set[str]] = totals,
        ) -> Address:
            pairs = zip(by, codes, strict=True)
            return tuple(sorted((n, code) for n, code in pairs if code not in totals[n]))

        table = _Printed(
            {named(codes): cell for codes, cell in cells.items()},
            [(named(total), tuple(named(part) for part in parts)) for total, parts in equations],
            _snapshot(evidence.parent),
        )
        groups.setdefault((promise["statistic"], str(promise.get("measure") or "")), []).append(
            table
        )


def _totals(
    equations: Sequence[Equation], promise: Mapping[str, Any], cells: Mapping[Codes, Cell]
) -> dict[str, set[str]]:
    """Return for each attribute the codes that stand for everybody: those above all others."""
    found: dict[str, set[str]] = {}
    for place, name in enumerate(promise["by"]):
        below = {
            part[place]
            for total, parts in equations
            for part in parts
            if part[place] != total[place]
        }
        found[name] = {codes[place] for codes in cells} - below
        if len(found[name]) != 1:  # no one code is above all others
            found[name] = set()
    return found


def _snapshot(folder: Path) -> str:
    """Return by what the manifest of a folder calls the state of its records; empty without one."""
    place = folder / MANIFEST
    if not place.exists():
        return ""
    stated = json.loads(place.read_text(encoding="utf-8")).get("records", {})
    return str(stated.get("snapshot", ""))


def _judge(measure: str, tables: Sequence[_Printed]) -> list[Finding]:
    """Judge the tables of each state of the records together."""
    states: list[list[_Printed]] = []
    # Those whose manifests say what they are of first: the others go where nothing speaks against it.
    for table in sorted(tables, key=lambda one: not one.snapshot):
        fitting = (s for s in states if not any(_differ(table, other) for other in s))
        joined = next(fitting, None)
        if joined is None:
            states.append([table])
        else:
            joined.append(table)
    found = [_judge_state(measure, joined) for joined in states if len(joined) > 1]
    if len(states) > 1:
        told = f"{len(states):,} states of the records: differences over time stay with the curator"
        found.append(Finding("all folders", f"tables of {measure} over time", UNKNOWN, told))
    return found


def _judge_state(measure: str, joined: Sequence[_Printed]) -> Finding:
    words = f"withheld cells of {measure} cannot be computed from all folders together"
    cells: dict[Address, Cell] = {}
    hidden: set[Address] = set()
    equations = []
    for table in joined:
        for address, cell in table.cells.items():
            if cell["value"] is None:
                hidden.add(address)
                cells.setdefault(address, cell)
            elif address not in cells or cells[address]["value"] is None:
                cells[address] = cell
        equations += table.equations
    printed = sum(cells[address]["value"] is not None for address in hidden)
    if printed:
        return judged("all folders", words, f"{printed:,} are printed in another folder")
    if len(hidden) > FEW:
        return Finding("all folders", words, UNKNOWN, f"more than {FEW} cells")
    together = _points(cells, hidden, equations)
    alone: set[Address] = set()
    for table in joined:
        mine = {address for address, cell in table.cells.items() if cell["value"] is None}
        alone |= _points(table.cells, mine, table.equations)
    more = len(together - alone)
    return judged("all folders", words, f"{more:,} can, and from none alone" if more else None)


def _differ(one: _Printed, other: _Printed) -> bool:
    """Whether two tables are of different records: they say so, or one cell has two values."""
    if one.snapshot and other.snapshot:
        return one.snapshot != other.snapshot
    for address, cell in one.cells.items():
        there = other.cells.get(address)
        if there is None or there["value"] is None or cell["value"] is None:
            continue
        mine, theirs = float(cell["value"]), float(there["value"])
        if abs(mine - theirs) > 1e-6 * max(1.0, abs(mine)):
            return True
    return False


def _points(
    cells: Mapping[Any, Cell], hidden: set[Address], equations: Sequence[Any]
) -> set[Address]:
    """Return the withheld cells that can only have one value."""
    if not hidden:
        return set()
    names: list[Any] = sorted(hidden)  # any name of a cell will do
    found: Mapping[Any, tuple[float, float]] = solved(cells, names, list(equations), 0.0)
    return {
        address for address, (low, high) in found.items() if high - low <= 1e-7 * max(1.0, abs(low))
    }
