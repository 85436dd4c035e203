"""What can be inferred of withheld cells: feasibility intervals by linear programming.

Everything an attacker can rule out is ruled out by the published cells, the equations and prior
bounds; so a withheld cell can be anything between its minimum and maximum over the tables that look
the same. A sensitive cell is safe where that interval reaches from its value less its lower
protection level to its value plus the upper one. Of counts only tables of whole numbers count.
"""

from __future__ import annotations

import contextvars
import dataclasses
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.audit.certificates.collection import Certificates
from discreet.audit.certificates.corners import corners
from discreet.audit.contributors.prior import Prior
from discreet.audit.decide import decide
from discreet.audit.knowledge import ATTACKERS, Bounds, Contributors, a_priori, needs
from discreet.audit.outsider.deviations import components, independent
from discreet.audit.outsider.feasible import complete
from discreet.audit.problem import TOLERANCE, TUNING, Decision, Problem, Tuning
from discreet.data.table import Status, Table
from discreet.errors import InputError
from discreet.progress import Progress, silent
from discreet.report import Report, Rows

__all__ = ["Audit", "Certificate", "audit_table"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

#: A deviation as cells and how far each moves.
Certificate = tuple[Ints, Floats]


@dataclasses.dataclass(frozen=True)
class Audit(Report):
    """What an attacker can infer of the withheld cells of a table.

    The counts may be published; the intervals with their needs may not, since the needs tell the
    value between them.
    """

    safe: bool
    attacker: str
    #: Whether the ends of all intervals are exact, not only far enough apart.
    exact: bool
    suppressed: int
    sensitive: int
    unsafe: int
    #: Sensitive cells whose interval is a single point.
    disclosed: int
    #: The largest part of a protection level that an interval misses, 0 to 1.
    shortfall: float
    _table: Table = dataclasses.field(repr=False)
    _cells: Ints = dataclasses.field(repr=False)
    _lower: Floats = dataclasses.field(repr=False)
    _upper: Floats = dataclasses.field(repr=False)
    _need_lower: Floats = dataclasses.field(repr=False)
    _need_upper: Floats = dataclasses.field(repr=False)
    _safe: Bools = dataclasses.field(repr=False)

    @property
    def intervals(self) -> Any:
        """The audited cells as a pandas frame: codes, lower, upper, need_lower, need_upper, safe.

        Where the audit is not exact a safe cell's interval is at least as wide as told. Any:
        pandas is not on the start path.
        """
        import pandas as pd

        data: dict[str, Any] = {
            dimension.name: np.array(dimension.codes, dtype=object)[
                self._table.codes[self._cells, place]
            ]
            for place, dimension in enumerate(self._table.dimensions)
        }
        data["lower"], data["upper"] = self._lower, self._upper
        data["need_lower"], data["need_upper"] = self._need_lower, self._need_upper
        data["safe"] = self._safe
        return pd.DataFrame(data)

    @property
    def cells(self) -> Ints:
        """Places of the audited cells in the table, in the order of `intervals`."""
        return self._cells

    @property
    def unsafe_cells(self) -> list[tuple[str, ...]]:
        """Codes of the sensitive cells that are not safe."""
        return [self._table.labels(int(cell)) for cell in self._cells[~self._safe]]

    @property
    def verdict(self) -> str:
        """One sentence in plain words."""
        who = "an outsider" if self.attacker == "outsider" else "an outsider or a contributor"
        if self.safe:
            return (
                f"safe: {who} cannot bring any of {self.sensitive:,} sensitive cells "
                "within its protection levels"
            )
        return (
            f"not safe: {who} can infer {self.unsafe:,} of {self.sensitive:,} sensitive cells "
            f"too closely, {self.disclosed:,} of them exactly"
        )

    @property
    def promise(self) -> str:
        """The verdict as it may be published: without how many cells are sensitive."""
        who = "an outsider" if self.attacker == "outsider" else "an outsider or a contributor"
        if self.safe:
            return f"safe: {who} cannot bring any sensitive cell within its protection levels"
        return f"not safe: {who} can infer sensitive cells too closely"

    def rows(self) -> Rows:
        """Return the counts, one line each; no interval and no value."""
        names = ("attacker", "suppressed", "sensitive", "unsafe", "disclosed", "shortfall")
        return ("", ""), [("verdict", self.verdict), *((n, getattr(self, n)) for n in names)]


def audit_table(
    table: Table,
    *,
    published: npt.ArrayLike,
    attacker: str = "outsider",
    exact: bool = False,
    bounds: Bounds | None = None,
    coalition: Iterable[int] = (),
    cells: str = "sensitive",
    certificates: Iterable[Certificate] = (),
    tuning: Tuning = TUNING,
    progress: Progress = silent,
) -> Audit:
    """Compute what an attacker can infer of the withheld cells.

    Parameters
    ----------
    table
        Cells, equations and, for the needs, protection levels. Values of withheld cells may be
        missing (not a number): then the table is judged from the published cells alone.
    published
        A mask of the cells that are shown, or the status of every cell (safe or changed is shown).
    attacker
        "outsider", or "contributors" to let each contributor use what it knows as well.
    exact
        Compute the exact ends of the intervals instead of stopping where the need is met.
    bounds
        What everybody knows of the values, lower and upper for each cell; by default not negative.
    coalition
        Contributors who also act together, as numbers of `table.contributors`; without these,
        places of single-contributor cells, whose contributors they are.
    cells
        "sensitive" to audit the cells with status primary, "suppressed" to audit all withheld.
    certificates
        Deviations to be checked first; what they prove needs no program. Nothing is taken on
        trust: equations, bounds and published cells are compared.
    tuning
        Sizes from which the audit takes another way; the result is the same.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = [["T", "T", 32], ["T", "A", 10], ["T", "B", 22], ["X", "T", 9], ["X", "A", 3]]
    >>> rows += [["X", "B", 6], ["Y", "T", 23], ["Y", "A", 7], ["Y", "B", 16]]
    >>> frame = pd.DataFrame(rows, columns=["r", "c", "value"]).astype({"value": float})
    >>> table = Table.from_cells(frame, by=["r", "c"], value="value", total="T")
    >>> inner = [table.cell(r, c) for r in "XY" for c in "AB"]
    >>> shown = np.ones(9, dtype=bool)
    >>> shown[inner] = False
    >>> audit = audit_table(table, published=shown, exact=True, cells="suppressed")
    >>> audit.intervals[["r", "c", "lower", "upper"]].values.tolist()[0]
    ['X', 'A', 0.0, 9.0]
    """
    if attacker not in ATTACKERS:
        raise InputError(
            f"there is no attacker {attacker!r}",
            code="unknown-attacker",
            hint="choose one of " + ", ".join(ATTACKERS),
        )
    hidden = ~_mask(table, published)
    value = complete(table, hidden, bounds)
    down, up = a_priori(table, value, bounds)
    wanted = _wanted(table, hidden, cells)
    lower_need, upper_need = needs(table, value, (down, up))
    whole = table.is_whole and bool((value == np.round(value)).all())
    equations = independent(table.equations, hidden)
    knowledge = prior = None
    if attacker == "contributors":
        unzero = hidden | (value != 0)
        counted = unzero if table.count is None else unzero | (table.count > 0)
        knowledge = Contributors.of(table, value, counted)
        knowledge = knowledge.pooled(coalition) if (coalition := list(coalition)) else knowledge
        unit = float(np.median(upper_need[wanted])) if wanted.any() else 1.0
        unit = max(unit, 1e-12)
        prior = Prior(table, value, counted, down, up, knowledge, unit, whole=whole)
    problem = Problem(
        equations=equations.tocsc(),
        down=down,
        up=up,
        lower_need=lower_need,
        upper_need=upper_need,
        wanted=wanted,
        knowledge=knowledge,
        prior=prior,
        exact=exact,
        tuning=tuning,
        whole=whole,
    )
    decision = _by_component(problem, table, np.flatnonzero(hidden), certificates, progress)
    return _report(table, problem, decision, value, hidden, attacker)


def _by_component(
    problem: Problem,
    table: Table,
    hidden: Ints,
    certificates: Iterable[Certificate],
    progress: Progress,
) -> Decision:
    whole = Decision.blank(problem)
    whole.check(certificates, hidden)
    if not problem.exact:
        whole.check(_cheap(problem, table, whole, hidden), hidden)
    groups, _ = components(table.equations, hidden)
    groups = [g for g in groups if problem.wanted[g].any() and not whole.done(g)]
    size, done = sum(len(group) for group in groups), 0

    def run(group: Ints) -> Decision:
        return decide(problem, group, whole)

    if len(groups) > 1 and size > 4000:
        # Each component has cells of its own, so that threads write to different places.
        # They work within the limit of time that holds here.
        contexts = [contextvars.copy_context() for _ in groups]
        with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
            every = pool.map(lambda one, group: one.run(run, group), contexts, groups)
            for group, _ in zip(groups, every, strict=True):
                done += len(group)
                progress("auditing", done, size)
    else:
        for group in groups:
            run(group)
            done += len(group)
            progress("auditing", done, size)
    return whole


def _cheap(problem: Problem, table: Table, decision: Decision, hidden: Ints) -> Certificates:
    """Return certificates without programs for what is still open, where that is much."""
    none = Certificates.of([])
    up = np.flatnonzero(problem.wanted & ~decision.met_up)
    down = np.flatnonzero(problem.wanted & ~decision.met_down)
    if len(up) + len(down) < problem.tuning.corners_from:
        return none
    withheld = np.zeros(len(table), dtype=bool)
    withheld[hidden] = True
    free = np.zeros(len(table))
    if problem.knowledge is not None:
        # What one contributor can take away is used last.
        free[problem.knowledge.owner >= 0] = 1e-4
    found = corners(
        table,
        (
            np.concatenate([up, down]),
            np.concatenate([problem.upper_need[up], -problem.lower_need[down]]),
        ),
        (problem.down, problem.up),
        withheld=withheld,
        live=withheld,
        price=free,
        free=free,
        knowledge=problem.knowledge,
    )
    return none if found is None else found.certificates


def _report(
    table: Table,
    problem: Problem,
    decision: Decision,
    value: Floats,
    hidden: Bools,
    attacker: str,
) -> Audit:
    cells = np.flatnonzero(problem.wanted)
    fall, rise = decision.fall[cells], decision.rise[cells]
    need_lower, need_upper = problem.lower_need[cells], problem.upper_need[cells]
    safe = decision.met_down[cells] & decision.met_up[cells]
    point = (fall + rise) <= TOLERANCE * np.maximum(1.0, np.abs(value[cells]))
    missing = np.zeros(len(cells))
    for need, reach in ((need_lower, fall), (need_upper, rise)):
        short = np.where(need > 0, 1 - reach / np.where(need > 0, need, 1.0), 0.0)
        missing = np.maximum(missing, np.clip(short, 0.0, 1.0))
    missing[safe] = 0.0
    return Audit(
        safe=bool(safe.all()),
        attacker=attacker,
        exact=problem.exact,
        suppressed=int(hidden.sum()),
        sensitive=len(cells),
        unsafe=int((~safe).sum()),
        disclosed=int((point & ~safe).sum()),
        shortfall=float(missing.max(initial=0.0)),
        _table=table,
        _cells=cells,
        _lower=value[cells] - fall,
        _upper=value[cells] + rise,
        _need_lower=value[cells] - need_lower,
        _need_upper=value[cells] + need_upper,
        _safe=safe,
    )


def _mask(table: Table, published: npt.ArrayLike) -> Bools:
    given = np.asarray(published)
    if given.shape != (len(table),):
        raise InputError(
            f"`published` needs one entry per cell, {len(table)}, found {given.shape}",
            code="mask-shape",
        )
    if given.dtype == bool:
        return given
    return np.isin(given, (Status.SAFE, Status.CHANGED))


def _wanted(table: Table, hidden: Bools, cells: str) -> Bools:
    if cells == "suppressed" or table.status is None:
        return hidden
    return np.asarray(table.status == Status.PRIMARY)
