"""Cell suppression: from a table with sensitive cells to an audited pattern."""

from __future__ import annotations

import time
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from discreet.audit.knowledge import Bounds
from discreet.data.table import Status, Table
from discreet.errors import InputError
from discreet.progress import Progress, silent
from discreet.tables.suppression import efforts
from discreet.tables.suppression.pattern import Pattern
from discreet.tables.suppression.task import SCALE, Scale, Task
from discreet.tables.suppression.ties import HALF

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
    withheld: Iterable[int] | Bools = (),
    bounds: Bounds | None = None,
    key: bytes | None = None,
    scale: Scale = SCALE,
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
    withheld
        Cells (places or a mask) that are withheld for another reason, and so for nothing here.
    bounds
        What everybody knows of the values; by default that they are not negative.
    key
        A secret that decides between patterns of nearly the same cost. Without one the pattern
        tells values to whoever runs the same search: for figures, not for publication.
    scale
        How large a table may be for each way of searching.

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
        table,
        objective=objective,
        attacker=attacker,
        never=never,
        prefer=prefer,
        withheld=withheld,
        bounds=bounds,
        key=key,
        scale=scale,
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
    found = efforts.mended(task, found, progress) if found.audit is None else found
    audit = found.audit
    assert audit is not None
    status = np.where(found.withheld, np.int8(Status.SECONDARY), np.int8(Status.SAFE))
    status[np.asarray(task.table.status == Status.PRIMARY)] = Status.PRIMARY
    secondary = status == Status.SECONDARY
    return Pattern(
        objective=objective,
        effort=effort,
        attacker=task.attacker,
        primaries=int((status == Status.PRIMARY).sum()),
        secondaries=int(secondary.sum()),
        suppressed_value=float(np.abs(task.value[secondary]).sum()),
        cost=float(np.floor(found.cost(task) + 1e-9)) if task.tied else found.cost(task),
        bound=_bound(task, found.bound),
        optimal=found.proven(task),
        work=found.work,
        audit=audit,
        status=status,
    )


def _bound(task: Task, bound: float | None) -> float | None:
    """Return a bound in terms of the objective: without tie-breaks."""
    if bound is None or not task.tied:
        return bound
    return max(float(np.ceil(bound - HALF)), 0.0)
