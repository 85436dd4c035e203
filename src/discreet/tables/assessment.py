"""The audit of a release, whatever its method: by intervals, by distance, or by the noise itself."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from discreet.audit.intervals import Audit, audit_table
from discreet.audit.knowledge import needs
from discreet.audit.sliding import audit_width, holds_whole_numbers, levels, with_verdicts
from discreet.data.table import Bools, Floats, Ints, Table
from discreet.progress import Progress, silent
from discreet.report import Report, Rows
from discreet.tables.methods._base import Protected, TableMethod, sensitive
from discreet.tables.methods._promised import verdict_of
from discreet.tables.tabulation import counted

__all__ = ["Assessment", "assess", "of_part"]


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
        audit = _of_intervals(protected, attacker, exact, progress)
        kept = method.kept(table)
        safe = audit._safe if kept is None else kept[audit.cells]
        if protected.spread is not None:
            wide = protected.spread >= _greater_level(table) * (1 - 1e-9)
            safe = safe & wide[audit.cells]
        return audit if safe is audit._safe else with_verdicts(audit, safe)
    cells = np.flatnonzero(sensitive(table))
    if method.risk != "noise" and table.most is not None and len(cells):
        return _of_few_values(protected, cells)
    if method.risk == "spread":
        return _of_spread(protected, cells)
    if method.risk == "noise":
        return _of_noise(protected, method, cells)
    return _of_distance(protected, cells)


def _of_intervals(protected: Protected, attacker: str, exact: bool, progress: Progress) -> Audit:
    table, lower, upper = protected.table, protected.lower, protected.upper
    shown = ~protected.withheld
    if lower is None or upper is None:
        audit = audit_table(
            table, published=shown, attacker=attacker, exact=exact, progress=progress
        )
        if table.statistic == "mean" and audit.safe and not shown.all():
            # Printed beside the means, numbers of records are a table of their own.
            numbers = audit_table(counted(table), published=shown, attacker=attacker)
            return audit if numbers.safe else numbers
        return audit
    return audit_width(
        table,
        published=shown & (upper <= lower),
        bounds=(lower, upper),
        attacker=attacker,
        exact=exact,
        progress=progress,
    )


def _of_spread(protected: Protected, cells: Ints) -> Assessment:
    """Judge noise by what it leaves unknown whatever was drawn."""
    assert protected.spread is not None
    safe = protected.spread[cells] >= _greater_level(protected.table)[cells] * (1 - 1e-9)
    number, unsafe = len(cells), int((~safe).sum())
    return Assessment(
        safe=not unsafe,
        verdict=f"safe: whatever was drawn, the noise leaves each of {number:,} sensitive cells "
        "unknown by its protection level"
        if not unsafe
        else f"not safe: the noise is too small for {unsafe:,} of {number:,} sensitive cells",
        promise="safe: whatever was drawn, the noise leaves every sensitive cell unknown by its "
        "protection level"
        if not unsafe
        else "not safe: the noise is too small for the protection levels",
        sensitive=number,
        unsafe=unsafe,
        disclosed=0,
        _table=protected.table,
        _cells=cells,
        _estimate=protected.value[cells],
        _safe=safe,
    )


def _of_few_values(protected: Protected, cells: Ints) -> Assessment:
    """Judge changed sums of a measure with few values: how many people there are undoes changes."""
    words = (
        "not safe: how many people a cell has is known elsewhere, and tells of a measure with few "
        "values what the change hides"
    )
    return Assessment(
        safe=False,
        verdict=words,
        promise=words,
        sensitive=len(cells),
        unsafe=len(cells),
        disclosed=0,
        _table=protected.table,
        _cells=cells,
        _estimate=protected.value[cells],
        _safe=np.zeros(len(cells), dtype=bool),
    )


def _greater_level(table: Table) -> Floats:
    """Return the greater level of each cell; of whole numbers two must remain at least."""
    level = np.maximum(*levels(table))
    return np.maximum(np.ceil(level - 1e-9), 1.0) if holds_whole_numbers(table) else level


def _of_distance(protected: Protected, cells: Ints) -> Assessment:
    table = protected.table
    moved = (protected.value - table.value)[cells]
    endless = np.full(len(table), np.inf)
    lower, upper = (level[cells] for level in needs(table, table.value, (endless, endless)))
    # What cannot fall, such as a zero, is not protected by a fall of nothing.
    lower = np.where(lower > 0, lower, upper)
    slack = 1e-6 * np.maximum(1.0, np.abs(table.value[cells]))
    safe = (moved >= upper - slack) | (moved <= -lower + slack)
    same = np.abs(moved) <= 1e-9 * np.maximum(1.0, np.abs(table.value[cells]))
    unsafe = int((~safe).sum())
    verdict, promise = _words_of_distance(len(cells), unsafe)
    return Assessment(
        safe=not unsafe,
        verdict=verdict,
        promise=promise,
        sensitive=len(cells),
        unsafe=unsafe,
        disclosed=int((same & ~safe).sum()),
        _table=table,
        _cells=cells,
        _estimate=protected.value[cells],
        _safe=safe,
    )


def _words_of_distance(number: int, unsafe: int) -> tuple[str, str]:
    """Return verdict and promise where sensitive cells were moved."""
    if unsafe:
        return (
            f"not safe: {unsafe:,} of {number:,} sensitive cells were moved by less than their level",
            "not safe: sensitive cells were moved by less than their level",
        )
    return (
        f"safe: each of {number:,} sensitive cells was moved by at least its protection level",
        "safe: every sensitive cell was moved by at least its protection level",
    )


def _of_noise(protected: Protected, method: TableMethod, cells: Ints) -> Assessment:
    promise = str(protected.facts.get("promise", f"noise of {method.name}"))
    verdict = verdict_of(promise, str(protected.facts.get("caution") or ""))
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


def of_part(audit: Audit | Assessment, table: Table, places: Ints) -> Audit | Assessment:
    """Return what an audit of linked tables found out about the cells of one of them.

    `places` has the place of each of the table's cells among those of all tables together.
    """
    own = np.full(len(audit._table), -1)
    own[places] = np.arange(len(places))
    cells = own[audit._cells]
    here = cells >= 0
    safe = audit._safe[here]
    shared: dict[str, Any] = {
        "safe": bool(safe.all()),
        "sensitive": int(here.sum()),
        "unsafe": int((~safe).sum()),
        "_table": table,
        "_cells": cells[here],
        "_safe": safe,
    }
    value = table.value[shared["_cells"]]
    slack = 1e-9 * np.maximum(1.0, np.abs(value))
    if isinstance(audit, Assessment):
        estimate = audit._estimate[here]
        if not audit.safe:  # noise is safe by promise, whatever the cells
            words = _words_of_distance(shared["sensitive"], shared["unsafe"])
            shared["verdict"], shared["promise"] = words
            shared["disclosed"] = int(((np.abs(estimate - value) <= slack) & ~safe).sum())
        return dataclasses.replace(audit, **shared, _estimate=estimate)
    lower, upper = audit._lower[here], audit._upper[here]
    point = upper - lower <= slack
    return dataclasses.replace(
        audit,
        **shared,
        disclosed=int((point & ~safe).sum()),
        shortfall=0.0 if safe.all() else audit.shortfall,
        _lower=lower,
        _upper=upper,
        _need_lower=audit._need_lower[here],
        _need_upper=audit._need_upper[here],
    )
