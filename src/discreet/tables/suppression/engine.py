"""Cell suppression: from a table with sensitive cells to an audited pattern."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from discreet.audit.certificates import Certificates
from discreet.audit.corners import corners
from discreet.audit.intervals import audit_table
from discreet.audit.knowledge import Bounds
from discreet.data.table import Status, Table
from discreet.errors import EngineError, InputError
from discreet.progress import Progress, silent
from discreet.tables.suppression.optimal import optimum
from discreet.tables.suppression.pattern import Pattern
from discreet.tables.suppression.search import Search
from discreet.tables.suppression.task import Task

__all__ = ["EFFORTS", "suppress"]

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

EFFORTS = ("fast", "balanced", "optimal")
#: Pivots that "balanced" may spend per cell that can move, and in any case.
_PIVOTS, _LEAST = 20, 3000
#: How many times that improving may take, and exploring as often as all before it took.
_LONG, _AGAIN = 4, 1
#: Exchanges in vain after which exploring ends, and one more per so many secondaries.
_PATIENT, _PER = 20, 10
#: Live cells below which exploring is cheap: the fewer, the more exchanges, of so many pivots each.
_SMALL, _EACH = 350, 100
#: How many times more "optimal" spends before it starts to prove, and how many seconds on that.
_MORE, _PATIENCE = 4, 600.0
#: What "fast" may spend on improving, in times what building took: with one window, with many;
#: and most pivots of one window, which are dear in a large one.
_FAST, _FAST_PIVOTS = (2.5, 6.0), 60_000
#: Live cells up to which the whole table is one window.
_WHOLE = 10_000
#: In larger tables improving takes at most so many times what building took, exploring half of all.
_TIMES = 10
#: Live cells beyond which only the nearest window is looked at.
_LARGE = 30_000


@dataclasses.dataclass(frozen=True)
class Found:
    """A safe pattern with the certificates that prove it, and a bound where one is proven."""

    withheld: Bools
    certificates: Iterable[tuple[npt.NDArray[np.int64], Floats]]
    work: int
    bound: float | None = None
    #: Demands with the contributors that mattered to them.
    asked: tuple[tuple[int, int], ...] = ()


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
        found = Found(task.primary, [], 0, bound=0.0)
        return _finish(task, found, objective, effort, attacker, bounds, progress)
    if effort == "fast":
        found = _fast(task, progress)
    else:
        found = _balanced(
            task, deadline, _PIVOTS if effort == "balanced" else _MORE * _PIVOTS, progress
        )
    if effort == "optimal":
        seconds = _PATIENCE if deadline is None else deadline - time.monotonic()
        found = _optimal(task, found, attacker, bounds, max(seconds, 0.0), progress)
    return _finish(task, found, objective, effort, attacker, bounds, progress)


def _fast(task: Task, progress: Progress) -> Found:
    windows = _windows(task)
    search = Search(task, _guides(task)[0], windows=windows, progress=progress)
    if int(task.live.sum()) <= _LARGE:
        search.build()
        more = _FAST[windows > 0] * search.work
        search.improve(int(search.work + (more if windows else min(more, _FAST_PIVOTS))))
        return _found(search, search.work)
    # Programs only for what finds no corner.
    start = corners(
        task.table,
        (task.target, task.amount),
        (task.down, task.up),
        withheld=task.primary,
        live=task.live,
        price=search.rate,
        free=search.free,
        knowledge=task.knowledge,
        progress=progress,
    )
    if start is not None:
        search.adopt(start.withheld, start.met)
    search.build()
    found = _found(search, search.work)
    if start is None:
        return found
    together = Certificates.joined([start.certificates, Certificates.of(found.certificates)])
    return dataclasses.replace(found, certificates=together)


def _windows(task: Task) -> int:
    """Return how far to look around a cell: the larger the table, the nearer."""
    live = int(task.live.sum())
    if live <= _WHOLE:
        return 0
    return 2 if live <= _LARGE else 1


def _balanced(task: Task, deadline: float | None, pivots: int, progress: Progress) -> Found:
    """Build along several guides, improve each, keep the best and explore around it."""
    budget = _LEAST + pivots * int(task.live.sum())
    if task.knowledge is not None:
        # Each contributor wants a certificate of its own.
        budget *= 2
    windows = _windows(task)
    best: Search | None = None
    spent, dearest = 0, 0
    for guide in _guides(task):
        if best is not None and spent + dearest > budget // 2:
            break
        search = Search(task, guide, deadline, windows=windows, progress=progress)
        search.build()
        search.improve(_TIMES * search.work if windows else _LONG * budget)
        spent += search.work
        dearest = max(dearest, search.work)
        if best is None or search.cost < best.cost * (1 - 1e-12):
            best = search
    assert best is not None
    # Exploring goes on as long as it pays, and a little longer.
    before = best.work
    # A proof that follows makes up for what is not found here.
    more = max(_SMALL - int(task.live.sum()), 0) // 8 if pivots == _PIVOTS else 0
    limit = before + (before // 2 if windows else _AGAIN * before + budget + _EACH * more)
    patience = _PATIENT + len(best.secondaries) // _PER + more
    best.explore(limit, patience)
    spent += best.work - before
    return _found(best, spent)


def _optimal(
    task: Task,
    found: Found,
    attacker: str,
    bounds: Bounds | None,
    seconds: float,
    progress: Progress,
) -> Found:
    """Prove a pattern optimal, or find the optimum; else say how far off it may be."""
    best = optimum(task, found.withheld, found.asked, seconds=seconds, progress=progress)
    if best.withheld is not None:
        audit = audit_table(task.table, published=~best.withheld, attacker=attacker, bounds=bounds)
        if audit.safe:
            return Found(best.withheld, [], found.work, best.bound)
        # Safe within the solver's tolerance but not the auditor's: the bound holds all the same.
    return dataclasses.replace(found, bound=best.bound)


def _guides(task: Task) -> list[Floats]:
    """Prices to build by: the objective itself, and others that lead elsewhere."""
    size = np.abs(task.value) / max(task.unit, 1e-12)
    damped = np.log1p(size)
    if np.ptp(task.price[task.live]) == 0:
        # Among equal prices smaller cells are easier to do without.
        return [task.price * (0.1 + damped), task.price * (0.1 + size), task.price]
    return [np.sqrt(task.price * task.price.mean()), task.price, task.price**0.25]


def _found(search: Search, work: int) -> Found:
    certificates = {id(c): c for found in search.certificates for c in found}
    asked = tuple(sorted(search.asked))
    return Found(search.withheld, list(certificates.values()), work, asked=asked)


def _finish(
    task: Task,
    found: Found,
    objective: str,
    effort: str,
    attacker: str,
    bounds: Bounds | None,
    progress: Progress,
) -> Pattern:
    """Audit the pattern, whatever it came from, and report it."""
    table = task.table
    status = np.where(found.withheld, np.int8(Status.SECONDARY), np.int8(Status.SAFE))
    status[task.primary] = Status.PRIMARY
    audit = audit_table(
        table,
        published=~found.withheld,
        attacker=attacker,
        bounds=bounds,
        certificates=found.certificates,
        progress=progress,
    )
    if not audit.safe:
        raise EngineError(
            f"the auditor refused a pattern: {audit.unsafe} cells, such as "
            + "; ".join(" × ".join(codes) for codes in audit.unsafe_cells[:3]),
            code="pattern-refused",
            hint="this is a fault of discreet; please report it",
        )
    secondary = status == Status.SECONDARY
    cost = float(task.price[secondary].sum())
    return Pattern(
        objective=objective,
        effort=effort,
        attacker=attacker,
        primaries=int(task.primary.sum()),
        secondaries=int(secondary.sum()),
        suppressed_value=float(np.abs(task.value[secondary]).sum()),
        cost=cost,
        bound=found.bound,
        optimal=found.bound is not None and cost <= found.bound * (1 + 1e-9) + 1e-9,
        work=found.work,
        audit=audit,
        status=status,
    )
