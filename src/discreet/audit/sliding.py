"""Sliding protection levels: how many values each sensitive cell may have, wherever they lie.

Where a method draws at which place between two bounds a value lies, neither end of its protection
interval is promised, and a verdict that asked for them would tell what was drawn. What is promised
is the width: the interval of each sensitive cell is as wide as its two levels together. Whole
numbers that must remain possible down to the least that everybody knows do not slide: of counts
below a minimum frequency n each from 1 to n is asked for, whichever it is.

Levels of magnitudes grow with the value. A verdict that asked for the width that the true value
needs would tell that no larger value is true that needs more. So the width is asked for that the
largest value between the bounds would need: then the verdict is the same for all of them.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.audit.intervals import Audit, audit_table
from discreet.audit.knowledge import Bounds, least, most, needs, within
from discreet.data.table import Bools, Floats, Status, Table
from discreet.progress import Progress, silent

__all__ = ["audit_width", "holds_whole_numbers", "levels", "needed_width", "with_verdicts"]


def audit_width(
    table: Table,
    *,
    published: npt.ArrayLike,
    bounds: Bounds,
    attacker: str = "outsider",
    exact: bool = False,
    progress: Progress = silent,
) -> Audit:
    """Judge by how many values each sensitive cell may have between bounds that are published.

    Alternatives that lie as far apart as the levels are looked for first; where none are found,
    exact ends decide.

    Examples
    --------
    >>> import pandas as pd
    >>> cells = pd.DataFrame({"sector": ["Total", "IT", "Fin"], "value": [12, 7, 5]})
    >>> table = Table.from_cells(cells, by=["sector"], value="value", statistic="count")
    >>> marked = table.replace(
    ...     status=np.array([0, 0, 2], np.int8),
    ...     lower=np.array([0, 0, 1]),
    ...     upper=np.array([0, 0, 1]),
    ... )
    >>> low, high = np.array([12.0, 5, 5]), np.array([12.0, 7, 7])
    >>> audit_width(marked, published=low == high, bounds=(low, high)).safe
    True
    """
    lower, upper = bounds = within(table, bounds)
    whole = holds_whole_numbers(table)
    below = levels(table)[0]
    width = needed_width(table, np.maximum(np.abs(lower), np.abs(upper)))
    # Of a value near one of its bounds most of the width must lie on the other side.
    fall = np.clip(width / 2, np.maximum(width - (upper - table.value), 0.0), table.value - lower)
    fixed = np.zeros(len(table), dtype=bool)
    if whole:
        fixed = np.isfinite(below) & (below >= table.value - least(table, table.value) - 1e-9)
        fall = np.where(fixed, np.ceil(below - 1e-9), np.floor(fall))
    divided = table.replace(lower=fall, upper=np.maximum(width - fall, 0.0))
    settings: dict[str, Any] = {
        "published": published,
        "attacker": attacker,
        "bounds": bounds,
        "progress": progress,
    }
    audit = audit_table(divided, exact=exact, **settings)
    cells = audit.cells
    least_upper = np.where(fixed, table.value - fall + width, -np.inf)[cells]
    most_lower = np.where(fixed, table.value - fall, np.inf)[cells]
    exactly = np.full(len(cells), exact)
    open_ = ~_is_wide(audit, (width[cells], most_lower, least_upper), whole=whole)
    if open_.any() and not exact:
        status = np.full(len(table), np.int8(Status.SAFE))
        status[cells[open_]] = Status.PRIMARY
        ends = audit_table(divided.replace(status=status), exact=True, **settings)
        place = np.searchsorted(cells, ends.cells)
        found_lower, found_upper = audit._lower.copy(), audit._upper.copy()
        found_lower[place], found_upper[place] = ends._lower, ends._upper
        exactly[place] = True
        audit = dataclasses.replace(audit, _lower=found_lower, _upper=found_upper)
    # What totals exclude need not be protected: exact ends ask for less than printed ones.
    most = np.abs(table.value)
    most[cells] = np.maximum(np.abs(audit._lower), np.abs(audit._upper))
    width[cells] = np.where(exactly, needed_width(table, most)[cells], width[cells])
    value = table.value[cells]
    audit = dataclasses.replace(
        audit, _need_lower=value - fall[cells], _need_upper=value + (width - fall)[cells]
    )
    return with_verdicts(
        audit, _is_wide(audit, (width[cells], most_lower, least_upper), whole=whole)
    )


def levels(table: Table) -> tuple[Floats, Floats]:
    """Return the protection levels; a sensitive cell without any must not be told exactly.

    Nothing is asked for below what everybody knows.
    """
    room = table.value - least(table, table.value), most(table) - table.value
    return needs(table, table.value, room)


def needed_width(table: Table, most: Floats) -> Floats:
    """Return how wide the intervals of cells must be that may be as large as `most`.

    Levels of counts do not grow with them. Levels that together exceed the value are taken as they
    are: no interval that ends at a value is wider than it.

    >>> import pandas as pd
    >>> cells = pd.DataFrame({"sector": ["Total", "IT", "Fin"], "value": [12.5, 10, 2.5]})
    >>> cells["level"] = cells["value"] / 10
    >>> table = Table.from_cells(cells, ["sector"], "value", lower="level", upper="level")
    >>> needed_width(table, np.array([12.5, 20, 5])).tolist()
    [2.5, 4.0, 1.0]
    """
    below, above = levels(table)
    size = np.abs(table.value)
    grows = (below + above < size) & np.isfinite(most) & (most > size)
    if not table.is_whole:
        scale = np.divide(most, size, out=np.ones(len(table)), where=grows)
        below, above = below * scale, above * scale
    if holds_whole_numbers(table):
        return np.asarray(np.ceil(below - 1e-9) + np.ceil(above - 1e-9))
    return below + above


def holds_whole_numbers(table: Table) -> bool:
    """Return whether every value is a whole number."""
    return bool((table.value == np.round(table.value)).all())


def with_verdicts(audit: Audit, safe: Bools) -> Audit:
    """Return the audit with other verdicts on its cells."""
    needed = np.maximum(audit._need_upper - audit._need_lower, 1e-12)
    found = audit._upper - audit._lower
    missing = np.where(safe, 0.0, np.clip(1 - found / needed, 0.0, 1.0))
    point = found <= 1e-6 * np.maximum(1.0, np.abs(audit._lower))
    return dataclasses.replace(
        audit,
        safe=bool(safe.all()),
        unsafe=int((~safe).sum()),
        disclosed=int((point & ~safe).sum()),
        shortfall=float(missing.max(initial=0.0)),
        _safe=safe,
    )


def _is_wide(audit: Audit, needed: tuple[Floats, Floats, Floats], *, whole: bool) -> Bools:
    """Return which intervals are wide enough, and reach the ends that do not slide."""
    lower, upper = audit._lower, audit._upper
    if whole:
        lower, upper = np.ceil(lower - 1e-6), np.floor(upper + 1e-6)
    width, most_lower, least_upper = needed
    slack = 1e-6 * np.maximum(1.0, width)
    reaches = (lower <= most_lower + slack) & (upper >= least_upper - slack)
    return np.asarray((upper - lower >= width - slack) & reaches)
