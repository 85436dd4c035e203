"""Protecting a table: mark what is sensitive, hide it, audit the result."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import overload

import numpy as np

from discreet.audit.rules import Rule
from discreet.audit.sensitivity import mark
from discreet.data.linked import LinkedTables
from discreet.data.table import Status, Table
from discreet.errors import InfeasibleError, InputError
from discreet.progress import Progress, silent
from discreet.randomness import Randomness
from discreet.tables.methods import FAMILY, Protected, TableMethod
from discreet.tables.published import OWN
from discreet.tables.release import LinkedRelease, TableRelease

__all__ = ["protect"]


@overload
def protect(
    table: Table,
    rules: Sequence[Rule] = ...,
    method: TableMethod | None = ...,
    *,
    rng: Randomness | None = ...,
    progress: Progress = ...,
) -> TableRelease: ...


@overload
def protect(
    table: Sequence[Table],
    rules: Sequence[Rule] = ...,
    method: TableMethod | None = ...,
    *,
    rng: Randomness | None = ...,
    progress: Progress = ...,
) -> LinkedRelease: ...


def protect(
    table: Table | Sequence[Table],
    rules: Sequence[Rule] = (),
    method: TableMethod | None = None,
    *,
    rng: Randomness | None = None,
    progress: Progress = silent,
) -> TableRelease | LinkedRelease:
    """Mark the sensitive cells by the rules, protect them by the method, audit, and return the release.

    Several tables are taken as linked: cells they share are protected alike, and the audit uses
    what all of them publish together.

    Parameters
    ----------
    table
        A table, or several that show the same measure.
    rules
        What is sensitive; a ready-made table may bring its statuses and levels along.
    method
        How it is protected; cell suppression by default.
    rng
        The random source of methods that draw; secure by default.

    Examples
    --------
    >>> import pandas as pd
    >>> from discreet.audit.rules.minimum_frequency import MinimumFrequency
    >>> from discreet.tables.methods.controlled_rounding import ControlledRounding
    >>> cells = pd.DataFrame({"sector": ["Total", "IT", "Fin", "HC"], "value": [16, 7, 3, 6]})
    >>> table = Table.from_cells(
    ...     cells, by=["sector"], value="value", count="value", statistic="count"
    ... )
    >>> release = protect(table, [MinimumFrequency(4)], ControlledRounding(5))
    >>> release.cells["value"].tolist()
    [15.0, 5.0, 5.0, 5.0]
    """
    method = FAMILY.get("suppression")() if method is None else method
    rng = Randomness.secure() if rng is None else rng
    tables = [table] if isinstance(table, Table) else list(table)
    _require_names(tables)
    if method.needs_rules and not rules and all(one.status is None for one in tables):
        raise InputError(
            f"nothing says which cells are sensitive, and {method.name} protects only those",
            code="no-rules",
            hint="give rules=[…], or a table with a column of statuses",
        )
    if not isinstance(table, Table):
        return _protect_linked(table, rules, method, rng, progress)
    release = _protect_one(table, rules, method, rng, progress)
    _require_safe(release)
    return release


def _require_names(tables: Sequence[Table]) -> None:
    """Refuse attributes that are called as the columns of a release."""
    for name in (name for table in tables for name in table.by):
        if name in OWN:
            raise InputError(
                f"an attribute cannot be called {name!r}, as a column of every release is",
                code="reserved-name",
                hint="rename the column",
                column=name,
            )


def _protect_one(
    table: Table, rules: Sequence[Rule], method: TableMethod, rng: Randomness, progress: Progress
) -> TableRelease:
    if not len(table):
        raise InputError("the table has no cells", code="empty-table")
    table.require_additive()
    marked = method.prepare(table, rules)
    _require_protectable(marked, method)
    protected = method.hide(marked, rng=rng, progress=progress)
    return TableRelease(
        protected=protected,
        method=method,
        rules=tuple(rules),
        randomness=rng.kind if method.acting.is_random else "none",
        before=len(table),
    )


def _require_protectable(table: Table, method: TableMethod) -> None:
    """Refuse a table whose grand total itself is sensitive: no cell can hide it."""
    if table.status is None or method.acting.risk != "intervals":
        return
    top = np.flatnonzero((table.codes == 0).all(axis=1))
    if top.size and table.status[top[0]] == Status.PRIMARY:
        name = " × ".join(table.labels(int(top[0])))
        raise InfeasibleError(
            f"the grand total {name} is itself sensitive, so that nothing published below it is safe",
            code="sensitive-grand-total",
            hint="tabulate more records, relax the rule, or use a method that changes values "
            "(controlled-tabular-adjustment, dp-noise)",
            cells=[name],
        )


def _require_safe(release: TableRelease) -> None:
    """Raise if a table that hides cells does not keep them hidden."""
    if not release.withholds:
        return
    audit = release.audit()
    if audit.safe:
        return
    frame = audit.intervals
    unsafe = frame[~frame["safe"]][list(release.table.by)].values.tolist()
    names = [" × ".join(map(str, codes)) for codes in unsafe[:5]]
    raise InfeasibleError(
        f"{audit.unsafe} sensitive cells cannot be protected by {release.method.name}: "
        + "; ".join(names),
        code="unsafe-release",
        hint="merge categories (recoding), relax what may not be suppressed, or change values",
        cells=names,
    )


def _protect_linked(
    tables: Sequence[Table],
    rules: Sequence[Rule],
    method: TableMethod,
    rng: Randomness,
    progress: Progress,
) -> LinkedRelease:
    if method.acting.linked == "refused":
        raise InputError(
            f"{method.name} cannot promise for several linked tables at once",
            code="linked-method",
            hint="cross all their attributes in one table, or release each with its share of the "
            "budget",
        )
    for table in tables:
        table.require_additive()
    # Each table knows best what its own cells hold; what is shared gets the greater need.
    linked = LinkedTables.of(_told_apart([mark(table, rules) for table in tables]))
    if method.linked == "apart":
        return _protect_apart(linked, rules, method, rng, progress)
    joint = _protect_one(linked.joint, (), method, rng, progress)
    joint = dataclasses.replace(joint, rules=tuple(rules))
    if len(joint.table) != len(linked.joint):
        raise InputError(
            f"the method {method.name} changes the cells of a table, so it cannot be used on "
            "linked tables",
            code="linked-method",
            hint="recode the records first, or protect the tables with suppression",
        )
    _require_safe(joint)
    parts = []
    for table, place in zip(linked.tables, linked.places, strict=True):
        marked = joint.table
        own = table.replace(
            status=None if marked.status is None else marked.status[place],
            lower=None if marked.lower is None else marked.lower[place],
            upper=None if marked.upper is None else marked.upper[place],
        )
        done = joint.protected
        part = Protected(
            own,
            done.value[place],
            done.status[place],
            None if done.lower is None else done.lower[place],
            None if done.upper is None else done.upper[place],
            done.prints_intervals,
            done.grid,
            None if done.steps is None else done.steps[place],
            done.facts,
            done.confidential,
        )
        parts.append(TableRelease(part, method, tuple(rules), joint.randomness, before=len(table)))
    return LinkedRelease(joint, tuple(parts))


def _protect_apart(
    linked: LinkedTables,
    rules: Sequence[Rule],
    method: TableMethod,
    rng: Randomness,
    progress: Progress,
) -> LinkedRelease:
    """Protect each table on its own by a method that treats a cell alike in all of them."""
    key = rng.bytes(32)  # where no key is kept in a file, the tables still share one
    size = len(linked.joint)
    value, status = np.zeros(size), np.zeros(size, dtype=np.int8)
    lower, upper = np.full(size, -np.inf), np.full(size, np.inf)
    parts = []
    for table, place in zip(linked.tables, linked.places, strict=True):
        same = Randomness(key, secure=rng.is_secure)
        done = method.hide(table, rng=same, progress=progress)
        value[place], status[place] = done.value, done.status
        if done.lower is not None and done.upper is not None:
            np.maximum.at(lower, place, done.lower)
            np.minimum.at(upper, place, done.upper)
        parts.append(TableRelease(done, method, tuple(rules), rng.kind, before=len(table)))
    whole = Protected(linked.joint, value, status, lower, upper, facts=parts[0].protected.facts)
    return LinkedRelease(TableRelease(whole, method, tuple(rules), rng.kind), tuple(parts))


def _told_apart(tables: Sequence[Table]) -> list[Table]:
    """Return the tables with contributors numbered so that no two tables use one number.

    Numbers mean something within their own table only, unless the tables were made together.
    """
    tokens = {id(getattr(table, "numbering", None)) for table in tables}
    if len(tokens) == 1 and getattr(tables[0], "numbering", None) is not None:
        return list(tables)
    numbered, start = [], 0
    for table in tables:
        units = table.contributors
        if units is not None:
            table = table.replace(contributors=np.where(units >= 0, units + start, -1))
            start += int(units.max(initial=0)) + 1
        numbered.append(table)
    return numbered
