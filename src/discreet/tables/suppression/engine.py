"""Cell suppression: from a table with sensitive cells to an audited pattern."""

from __future__ import annotations

import time
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from discreet.audit.knowledge import Bounds
from discreet.data.table import Status, Table
from discreet.errors import EngineError, InputError
from discreet.progress import Progress, silent
from discreet.tables.suppression import efforts
from discreet.tables.suppression.pattern import Pattern
from discreet.tables.suppression.task import Task

__all__ = ["EFFORTS", "suppress"]

Bools = npt.NDArray[np.bool_]

EFFORTS = ("fast", "balanced", "optimal")


def suppress(
    table: Table,
    *,
    objective: str = "count",
    effort: str = "balanced",
    attacker: str = "contributors",
    time_limit: float | None = None,
    never: Iterable[int] | Bools = (),
    prefer: Iterable[int] | Bools = (),
    bounds: Bounds | None = None,
    progress: Progress = silent,
) -> Pattern:
    """Choose cells to withhold so that no sensitive cell can be inferred too closely.

    Parameters
    ----------
    table
        A table whose sensitive cells have status primary, with protection levels.
    objective
        What to keep small: the "count" of secondaries, their "value", "log-value" or given "cost".
    effort
        "fast" finds a safe pattern, "balanced" a cheap one, "optimal" proves the cheapest.
    attacker
        "contributors" protects against outsiders and against each contributor, who knows its own
        part; "outsider" against outsiders only.
    time_limit
        Seconds after which no further improvement is sought. The same input gives the same
        pattern unless the limit strikes.
    never, prefer
        Cells (places or a mask) that must stay published, and that are best withheld.
    bounds
        What everybody knows of the values; by default that they are not negative.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = [["T", "T", 32], ["T", "A", 10], ["T", "B", 22], ["X", "T", 9], ["X", "A", 3]]
    >>> rows += [["X", "B", 6], ["Y", "T", 23], ["Y", "A", 7], ["Y", "B", 16]]
    >>> frame = pd.DataFrame(rows, columns=["r", "c", "value"]).astype({"value": float})
    >>> frame["primary"] = (frame["r"] == "X") & (frame["c"] == "A")
    >>> table = Table.from_cells(frame, by=["r", "c"], value="value", total="T", primary="primary")
    >>> pattern = suppress(table, objective="value", attacker="outsider")
    >>> pattern.secondaries, pattern.suppressed_value, pattern.audit.safe
    (3, 29.0, True)
    """
    if effort not in EFFORTS:
        raise InputError(
            f"there is no effort {effort!r}",
            code="unknown-effort",
            hint="choose one of " + ", ".join(EFFORTS),
        )
    deadline = None if time_limit is None else time.monotonic() + time_limit
    task = Task.of(
        table, objective=objective, attacker=attacker, never=never, prefer=prefer, bounds=bounds
    )
    if not len(task.target):
        found = efforts.Found(task.primary, [], 0, bound=0.0)
        return _finish(task, found, objective, effort, progress)
    if effort == "fast":
        found = efforts.fast(task, progress)
    elif effort == "balanced":
        found = efforts.balanced(task, deadline, progress)
    else:
        found = efforts.optimal(task, deadline, progress)
    return _finish(task, found, objective, effort, progress)


def _finish(
    task: Task, found: efforts.Found, objective: str, effort: str, progress: Progress
) -> Pattern:
    """Audit the pattern, whatever it came from, and report it."""
    status = np.where(found.withheld, np.int8(Status.SECONDARY), np.int8(Status.SAFE))
    status[task.primary] = Status.PRIMARY
    audit = efforts.audited(task, found, progress) if found.audit is None else found.audit
    if not audit.safe:
        raise EngineError(
            f"the auditor refused a pattern: {audit.unsafe} cells, such as "
            + "; ".join(" × ".join(codes) for codes in audit.unsafe_cells[:3]),
            code="pattern-refused",
            hint="this is a fault of discreet; please report it",
        )
    secondary = status == Status.SECONDARY
    return Pattern(
        objective=objective,
        effort=effort,
        attacker=task.attacker,
        primaries=int(task.primary.sum()),
        secondaries=int(secondary.sum()),
        suppressed_value=float(np.abs(task.value[secondary]).sum()),
        cost=found.cost(task),
        bound=found.bound,
        optimal=found.proven(task),
        work=found.work,
        audit=audit,
        status=status,
    )
