"""The audit of a release, whatever its method: by intervals, by distance, or by the noise itself."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from discreet.audit.intervals import Audit, audit_table
from discreet.audit.knowledge import least, needs
from discreet.data.table import Bools, Floats, Ints, Table
from discreet.progress import Progress, silent
from discreet.report import Report, Rows
from discreet.tables.methods._base import Protected, TableMethod, sensitive

__all__ = ["Assessment", "assess"]


@dataclasses.dataclass(frozen=True)
class Assessment(Report):
    """How far published values lie from the protection intervals of sensitive cells.

    For methods that publish a changed value in place of every sensitive one: an attacker's best
    guess is that value, which must lie outside the protection interval.
    """

    safe: bool
    verdict: str
    #: The verdict as it may be published: without how many cells are sensitive.
    promise: str
    sensitive: int
    unsafe: int
    #: Sensitive cells that are published as they are.
    disclosed: int
    _table: Table = dataclasses.field(repr=False)
    _cells: Ints = dataclasses.field(repr=False)
    _estimate: Floats = dataclasses.field(repr=False)
    _safe: Bools = dataclasses.field(repr=False)

    @property
    def intervals(self) -> Any:
        """The sensitive cells: codes, lower and upper (the estimate), needs, safe.

        Any: pandas is not on the start path.
        """
        import pandas as pd

        table, cells = self._table, self._cells
        data: dict[str, Any] = {
            dimension.name: [dimension.codes[code] for code in table.codes[cells, place]]
            for place, dimension in enumerate(table.dimensions)
        }
        data["lower"] = data["upper"] = self._estimate
        none = np.zeros(len(table))
        data["need_lower"] = (table.value - (none if table.lower is None else table.lower))[cells]
        data["need_upper"] = (table.value + (none if table.upper is None else table.upper))[cells]
        data["safe"] = self._safe
        return pd.DataFrame(data)

    def rows(self) -> Rows:
        """Return the counts."""
        names = ("sensitive", "unsafe", "disclosed")
        return ("", ""), [("verdict", self.verdict), *((n, getattr(self, n)) for n in names)]


def assess(
    protected: Protected,
    method: TableMethod,
    *,
    attacker: str = "outsider",
    exact: bool = False,
    progress: Progress = silent,
) -> Audit | Assessment:
    """Judge what a method published by the kind of risk it declares."""
    table, method = protected.table, method.acting
    if method.risk == "intervals":
        return _of_intervals(protected, attacker, exact, progress)
    cells = np.flatnonzero(sensitive(table))
    if method.risk == "noise":
        return _of_noise(protected, method, cells)
    return _of_distance(protected, cells)


def _of_intervals(protected: Protected, attacker: str, exact: bool, progress: Progress) -> Audit:
    table = protected.table
    published = ~protected.withheld
    if protected.lower is None or protected.upper is None:
        return audit_table(
            table, published=published, attacker=attacker, exact=exact, progress=progress
        )
    lower, upper = protected.lower, protected.upper
    published = published & (upper <= lower)
    audit = audit_table(
        table,
        published=published,
        attacker=attacker,
        exact=exact,
        bounds=(lower, upper),
        progress=progress,
    )
    return _with_full_needs(table, audit, lower, upper)


def _with_full_needs(table: Table, audit: Audit, lower: Floats, upper: Floats) -> Audit:
    """Judge against the whole protection levels.

    The auditor takes bounds for what everybody knew before, of which no protection can be asked.
    Here the release itself gives them away: where they do not leave room for the protection
    interval the cell is not safe, whatever the equations say.
    """
    cells = audit.cells
    value = table.value[cells]
    low, high = _levels(table)
    need_lower = np.maximum(value - low[cells], least(table, table.value)[cells])
    need_upper = value + high[cells]
    slack = 1e-6 * np.maximum(1.0, np.abs(value))
    roomy = (lower[cells] <= need_lower + slack) & (upper[cells] >= need_upper - slack)
    safe = audit._safe & roomy
    level = np.maximum(need_upper - need_lower, 1e-12)
    reach = np.minimum(upper[cells], need_upper) - np.maximum(lower[cells], need_lower)
    missing = np.where(safe, 0.0, np.clip(1 - reach / level, 0.0, 1.0))
    point = (audit._upper - audit._lower) <= slack
    return dataclasses.replace(
        audit,
        safe=bool(safe.all()),
        unsafe=int((~safe).sum()),
        disclosed=int((point & ~safe).sum()),
        shortfall=max(audit.shortfall, float(missing.max(initial=0.0))),
        _need_lower=need_lower,
        _need_upper=need_upper,
        _safe=safe,
    )


def _of_distance(protected: Protected, cells: Ints) -> Assessment:
    table = protected.table
    moved = (protected.value - table.value)[cells]
    lower, upper = (level[cells] for level in _levels(table))
    # What cannot fall, such as a zero, is not protected by a fall of nothing.
    lower = np.where(lower > 0, lower, upper)
    slack = 1e-6 * np.maximum(1.0, np.abs(table.value[cells]))
    safe = (moved >= upper - slack) | (moved <= -lower + slack)
    same = np.abs(moved) <= 1e-9 * np.maximum(1.0, np.abs(table.value[cells]))
    number, unsafe = len(cells), int((~safe).sum())
    verdict = (
        f"safe: each of {number:,} sensitive cells was moved by at least its protection level"
        if not unsafe
        else f"not safe: {unsafe:,} of {number:,} sensitive cells were moved by less than their level"
    )
    return Assessment(
        safe=not unsafe,
        verdict=verdict,
        promise="safe: every sensitive cell was moved by at least its protection level"
        if not unsafe
        else "not safe: sensitive cells were moved by less than their level",
        sensitive=number,
        unsafe=unsafe,
        disclosed=int((same & ~safe).sum()),
        _table=table,
        _cells=cells,
        _estimate=protected.value[cells],
        _safe=safe,
    )


def _levels(table: Table) -> tuple[Floats, Floats]:
    """Return the protection levels; a sensitive cell without any must not be told exactly."""
    endless = np.full(len(table), np.inf)
    return needs(table, table.value, (endless, endless))


def _of_noise(protected: Protected, method: TableMethod, cells: Ints) -> Assessment:
    promise = str(protected.facts.get("promise", f"noise of {method.name}"))
    verdict = f"safe by promise: {promise}, whatever anybody else knows"
    return Assessment(
        safe=True,
        verdict=verdict,
        promise=verdict,
        sensitive=len(cells),
        unsafe=0,
        disclosed=0,
        _table=protected.table,
        _cells=cells,
        _estimate=protected.value[cells],
        _safe=np.ones(len(cells), dtype=bool),
    )
