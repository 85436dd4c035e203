"""Marking a table: every rule's verdict, combined, as statuses and protection levels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from discreet.audit.rules import Rule
from discreet.audit.rules._base import Verdict
from discreet.data.table import Status, Table
from discreet.errors import InputError

__all__ = ["mark"]


def mark(table: Table, rules: Sequence[Rule] = ()) -> Table:
    """Return the table with its sensitive cells and their protection levels marked.

    Rules are combined: a cell is sensitive by any of them, with the greatest level. Statuses and
    levels the table brings along (ready-made tables) are kept, and combined in the same way. Empty
    cells that a rule judges are added.

    Examples
    --------
    >>> import pandas as pd
    >>> from discreet.audit.rules.minimum_frequency import MinimumFrequency
    >>> cells = pd.DataFrame({"sector": ["Total", "IT", "Fin"], "value": [9, 7, 2]})
    >>> table = Table.from_cells(cells, by=["sector"], value="value", count="value")
    >>> mark(table, [MinimumFrequency(3)]).status.tolist()
    [0, 0, 2]
    """
    for rule in rules:
        table = rule.completed(table)
    found = _given(table)
    for rule in rules:
        found = found | rule.judge(table)
    status = np.zeros(len(table), np.int8) if table.status is None else table.status.copy()
    status[found.sensitive] = Status.PRIMARY
    lower = found.lower
    if not (table.value < 0).any():
        # Everybody knows that such values are not negative: nothing below zero can be asked for.
        lower = np.minimum(lower, table.value)
    zeros = table.zeros or any(rule.judges_zeros(table) for rule in rules)
    return table.replace(status=status, lower=lower, upper=found.upper, zeros=zeros)


def _given(table: Table) -> Verdict:
    none = np.zeros(len(table))
    if table.status is None:
        return Verdict(none > 0, none, none)
    sensitive = np.asarray(table.status == Status.PRIMARY)
    levels = []
    for name, level in (("lower", table.lower), ("upper", table.upper)):
        if level is None:
            levels.append(none)
            continue
        wrong = np.flatnonzero((level < 0) | ~np.isfinite(level))
        if wrong.size:
            cell = " × ".join(table.labels(int(wrong[0])))
            raise InputError(
                f"{wrong.size} cells have a negative or infinite {name} protection level, such as "
                f"{cell}",
                code="protection-level",
                hint="a level is a distance from the value: zero or more",
                cells=[table.labels(int(i)) for i in wrong[:20]],
            )
        levels.append(np.where(sensitive, level, 0.0))
    return Verdict(sensitive, levels[0], levels[1])
