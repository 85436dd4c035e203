"""Protecting a table: mark what is sensitive, hide it, audit the result."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, overload

import numpy as np
import numpy.typing as npt

from discreet.audit.rules import Rule
from discreet.audit.rules.group_disclosure import GroupDisclosure, discloses_groups
from discreet.data.linked import LinkedTables
from discreet.data.table import Floats, Status, Table
from discreet.dp.grant import charge
from discreet.errors import InfeasibleError, InputError
from discreet.progress import Progress, silent
from discreet.randomness import Randomness
from discreet.tables.measures import Identity, grouped, told_apart
from discreet.tables.methods import FAMILY, Protected, TableMethod
from discreet.tables.methods.suppression import Suppression
from discreet.tables.published import OWN
from discreet.tables.release import LinkedRelease, TableRelease

if TYPE_CHECKING:  # without a ledger its auditor, which loads a compiler, is not imported
    from discreet.ledger.memory import Memory
    from discreet.ledger.store import Ledger
    from discreet.tables.remembering import Together

__all__ = ["protect", "require_rules"]

#: How often linked tables are protected again, with the cells withheld that told too much.
_ROUNDS = 4


@overload
def protect(
    table: Table,
    rules: Sequence[Rule] = ...,
    method: TableMethod | None = ...,
    *,
    rng: Randomness | None = ...,
    unsafe: bool = ...,
    ledger: str | Path | Ledger | None = ...,
    snapshot: str | None = ...,
    like: str | int | None = ...,
    progress: Progress = ...,
) -> TableRelease: ...


@overload
def protect(
    table: Sequence[Table],
    rules: Sequence[Rule] = ...,
    method: TableMethod | None = ...,
    *,
    rng: Randomness | None = ...,
    unsafe: bool = ...,
    ledger: str | Path | Ledger | None = ...,
    snapshot: str | None = ...,
    like: str | int | None = ...,
    progress: Progress = ...,
) -> LinkedRelease: ...


def protect(
    table: Table | Sequence[Table],
    rules: Sequence[Rule] = (),
    method: TableMethod | None = None,
    *,
    rng: Randomness | None = None,
    unsafe: bool = False,
    ledger: str | Path | Ledger | None = None,
    snapshot: str | None = None,
    like: str | int | None = None,
    progress: Progress = silent,
) -> TableRelease | LinkedRelease:
    """Mark the sensitive cells by the rules, protect them by the method, audit, and return the release.

    Several tables are taken as linked: cells they share are protected alike, and the audit uses
    what all of them publish together. Count, sum and mean of the same records are protected
    together by suppression: of three numbers of a cell any two tell the third.

    Parameters
    ----------
    table
        A table, or several: of the same measure, or counts, sums and means of the same records.
    rules
        What is sensitive; a ready-made table may bring its statuses and levels along.
    method
        How it is protected; cell suppression by default.
    rng
        The random source of methods that draw; secure by default.
    unsafe
        Whether the release may be written although it is not safe; its pages then say so.
    ledger
        The memory of earlier releases, with which the table is protected and judged: an open
        ledger, a file or `postgresql://…`. What has differential privacy is charged to its grant
        before noise is drawn.
    snapshot
        The name of this state of the records, for the ledger; a new one when they have changed.
    like
        An earlier release whose pattern is preferred, by its number or the name of its snapshot.

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
    >>> set(release.cells["value"] % 5)
    {0.0}
    """
    method = FAMILY.get("suppression")() if method is None else method
    rng = Randomness.secure() if rng is None else rng
    tables = [table] if isinstance(table, Table) else list(table)
    _require_names(tables)
    if all(one.status is None for one in tables):
        require_rules(rules, method)
    rules = _with_defaults(rules, tables, method)
    if ledger is not None:
        from discreet.ledger.memory import Memory
        from discreet.tables.remembering import dataset_of

        with Memory(ledger, dataset_of(tables), snapshot=snapshot) as memory:
            return _remembered(table, rules, method, rng, memory, like, unsafe, progress)
    if like is not None:
        raise InputError(
            "like= names an earlier release of a ledger, and no ledger is given",
            code="like-without-ledger",
            hint="write ledger=",
            parameter="like",
        )
    return _with_records(_protected(table, rules, method, rng, unsafe, progress), tables)


def _with_records(
    release: TableRelease | LinkedRelease, tables: Sequence[Table]
) -> TableRelease | LinkedRelease:
    """Return the release with the records that were tabulated, by which a ledger knows it."""
    source = getattr(tables[0], "source", None)
    if source is None:
        return release
    if isinstance(release, TableRelease):
        return release.kept_as(data=source.dataset)
    parts = tuple(one.kept_as(data=source.dataset) for one in release.releases)
    return dataclasses.replace(release, releases=parts)


def _protected(
    table: Table | Sequence[Table],
    rules: Sequence[Rule],
    method: TableMethod,
    rng: Randomness,
    unsafe: bool,
    progress: Progress,
) -> TableRelease | LinkedRelease:
    """Protect without a memory."""
    if not isinstance(table, Table):
        linked = _protect_linked(table, rules, method, rng, progress)
        if not unsafe:
            _require_safe(linked.joint)
            return linked
        accepted = linked.joint.kept_as(accepts_unsafe=True)
        parts = tuple(
            one.kept_as(within=(accepted, one.within[1]))
            if one.within is not None and one.within[0] is linked.joint
            else one
            for one in linked.releases
        )
        return dataclasses.replace(linked, joint=accepted, releases=parts)
    release = _protect_one(table, rules, method, rng, progress)
    if unsafe:
        return release.kept_as(accepts_unsafe=True)
    _require_safe(release)
    return release


def _remembered(
    table: Table | Sequence[Table],
    rules: Sequence[Rule],
    method: TableMethod,
    rng: Randomness,
    memory: Memory,
    like: str | int | None,
    unsafe: bool,
    progress: Progress,
) -> TableRelease | LinkedRelease:
    """Charge, protect, and judge together with what a ledger remembers."""
    from discreet.ledger.recording import standing_in
    from discreet.tables.remembering import preferring, protect_together, titled

    tables = [table] if isinstance(table, Table) else list(table)
    charged = None
    if events := method.acting.events(tables[0]):
        what = titled(tables, method)
        charged = charge(memory.ledger, memory.dataset.name, events, what=what)
    if not isinstance(table, Table):
        made = _protected(table, rules, method, rng, unsafe, progress)
        linked = _with_records(made, tables)
        assert isinstance(linked, LinkedRelease)
        if _is_searched(method) and (memory.earlier or memory.answers):
            linked = _linked_together(linked, tables, rules, method, rng, memory, progress)
        linked.judge(memory)
        return dataclasses.replace(linked, standing=standing_in(memory, charged))
    if like is not None:
        table = preferring(table, like, memory)
    release = _protected(table, rules, method, rng, unsafe, progress)
    assert isinstance(release, TableRelease)
    if method.acting.risk == "intervals" and release.protected.lower is None:
        found = protect_together(release, memory, rng=rng, progress=progress)
        if found is not None:
            release = _part(release, found)
    else:
        release.judge(memory)
    return release.kept_as(data=memory.dataset, standing=standing_in(memory, charged))


def _is_searched(method: TableMethod) -> bool:
    """Whether a method finds other patterns where its own tells too much beside earlier releases."""
    return isinstance(method, Suppression) and method.acting is method and method.linked != "apart"


def _linked_together(
    linked: LinkedRelease,
    tables: Sequence[Table],
    rules: Sequence[Rule],
    method: TableMethod,
    rng: Randomness,
    memory: Memory,
    progress: Progress,
) -> LinkedRelease:
    """Withhold cells of linked tables until all are safe together with earlier releases."""
    from discreet.tables.remembering import protect_together

    if linked.others:  # several measures: judged, and refused if need be
        return linked
    joined = LinkedTables.of(told_apart([method.mark(table, rules) for table in tables]))
    withheld = np.asarray(linked.joint.protected.withheld).copy()
    for _ in range(_ROUNDS):
        found, beside = False, memory
        for release, place in zip(linked.releases, joined.places, strict=True):
            together = protect_together(release, beside, rng=rng, progress=progress)
            if together is not None:
                found = True
                withheld[place] |= together.protected.withheld[: together.own]
            beside = beside.beside(release.title(), release.discloses(beside))
        if not found:
            return linked
        joint = _protect_one(joined.joint, (), method, rng, progress, withheld=withheld)
        joint = dataclasses.replace(joint, rules=tuple(rules))
        _require_safe(joint)
        again = LinkedRelease(joint, _split(joint, joined.tables, joined.places))
        made = _with_records(again, tables)
        assert isinstance(made, LinkedRelease)
        linked = made
    return linked  # its judge says what is wrong


def _part(release: TableRelease, found: Together) -> TableRelease:
    """Return a table's own part of a protection together with earlier releases."""
    done = found.protected
    if len(done.table) == found.own:
        return dataclasses.replace(release, protected=done)
    whole = TableRelease(done, release.method, release.rules, release.randomness)
    (part,) = _split(whole, [release.table], [np.arange(found.own)])
    return part


def _with_defaults(
    rules: Sequence[Rule], tables: Sequence[Table], method: TableMethod
) -> Sequence[Rule]:
    """Add the rule against group disclosure where something that tables show is confidential."""
    given = any(isinstance(rule, GroupDisclosure) for rule in rules)
    if given or method.acting.risk == "noise" or not any(map(discloses_groups, tables)):
        return rules
    return (*rules, GroupDisclosure())


def require_rules(rules: Sequence[Rule], method: TableMethod | None) -> None:
    """Refuse a method that protects sensitive cells where nothing says which cells are sensitive."""
    if not rules and (method is None or method.needs_rules):
        raise InputError(
            "nothing says which cells are sensitive; without a rule nothing would be protected",
            code="no-rules",
            hint="name a rule, such as minimum-frequency: 3 in a policy or --rule "
            "minimum-frequency=3; or give a table with a column of statuses",
            parameter="rules",
        )


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
    table: Table,
    rules: Sequence[Rule],
    method: TableMethod,
    rng: Randomness,
    progress: Progress,
    withheld: npt.NDArray[np.bool_] | None = None,
) -> TableRelease:
    # Whether there are records at all is one of the things that noise hides.
    if not len(table) and method.acting.risk != "noise":
        raise InputError("the table has no cells", code="empty-table")
    table.require_additive()
    marked = method.prepare(table, rules)
    _require_protectable(marked, method)
    if withheld is not None and isinstance(method, Suppression):
        protected = method.hide(marked, rng=rng, progress=progress, withheld=withheld)
    else:
        protected = method.hide(marked, rng=rng, progress=progress)
    return TableRelease(
        protected=protected,
        method=method,
        rules=tuple(rules),
        randomness=rng.kind if method.acting.is_random else "none",
        before=max(len(table), len(protected.table)),
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
    if method.across_measures and len({(t.statistic, t.measure) for t in tables}) > 1:
        return _protect_measures(tables, rules, method, rng, progress)
    # Each table knows best what its own cells hold; what is shared gets the greater need.
    linked = LinkedTables.of(told_apart([method.mark(table, rules) for table in tables]))
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
    return LinkedRelease(joint, _split(joint, linked.tables, linked.places))


def _split(
    joint: TableRelease, tables: Sequence[Table], places: Sequence[npt.NDArray[np.int64]]
) -> tuple[TableRelease, ...]:
    """Return the release of each table from that of all their cells."""
    parts = []
    for table, place in zip(tables, places, strict=True):
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
            None if done.spread is None else done.spread[place],
            done.facts,
            done.confidential,
        )
        parts.append(
            TableRelease(
                part,
                joint.method,
                joint.rules,
                joint.randomness,
                len(table),
                within=(joint, place),
            )
        )
    return tuple(parts)


def _protect_measures(
    tables: Sequence[Table],
    rules: Sequence[Rule],
    method: TableMethod,
    rng: Randomness,
    progress: Progress,
) -> LinkedRelease:
    """Protect count, sum and mean of the same records together."""
    key = rng.bytes(32)  # one draw for all measures
    groups = grouped(tables, rules, method)
    hidden: set[Identity] = set()
    for group in groups:
        if group.together:
            assert group.joint.status is not None
            hidden |= group.chosen(np.asarray(group.joint.status == Status.PRIMARY))
    joints: list[TableRelease] = []
    for group in groups:
        same = Randomness(key, secure=rng.is_secure)
        given = group.mask(hidden) if group.together else np.zeros(len(group.joint), dtype=bool)
        _require_protectable(group.joint, method)
        done = method.hide(group.joint, rng=same, progress=progress, withheld=given)  # type: ignore[call-arg]
        if group.together:
            hidden |= group.chosen(done.withheld)
        joints.append(TableRelease(done, method, tuple(rules), rng.kind, before=len(group.joint)))
    parts: dict[int, TableRelease] = {}
    for number, group in enumerate(groups):
        if group.together:
            joints[number] = _widened(joints[number], group.mask(hidden))
        _require_safe(joints[number])
        split = _split(joints[number], group.tables, group.linked.places[: len(group.tables)])
        parts.update(zip(group.places, split, strict=True))
    releases = tuple(parts[place] for place in range(len(tables)))
    return LinkedRelease(joints[0], releases, tuple(joints[1:]))


def _widened(release: TableRelease, withheld: npt.NDArray[np.bool_]) -> TableRelease:
    """Return a release with more cells withheld; it is audited again."""
    done = release.protected
    more = withheld & ~done.withheld
    if not more.any():
        return release
    changed = Protected(
        done.table,
        np.where(withheld, np.nan, done.value),
        np.where(more, np.int8(Status.SECONDARY), done.status),
        facts=done.facts,
    )
    return dataclasses.replace(release, protected=changed)


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
    spread: Floats | None = None
    every = []
    for table, place in zip(linked.tables, linked.places, strict=True):
        same = Randomness(key, secure=rng.is_secure)
        done = method.hide(table, rng=same, progress=progress)
        value[place], status[place] = done.value, done.status
        if done.lower is not None and done.upper is not None:
            np.maximum.at(lower, place, done.lower)
            np.minimum.at(upper, place, done.upper)
        if done.spread is not None:
            spread = np.full(size, np.inf) if spread is None else spread
            np.minimum.at(spread, place, done.spread)
        every.append(done)
    whole = Protected(
        linked.joint, value, status, lower, upper, spread=spread, facts=every[0].facts
    )
    joint = TableRelease(whole, method, tuple(rules), rng.kind)
    parts = (
        TableRelease(done, method, tuple(rules), rng.kind, len(table), within=(joint, place))
        for done, table, place in zip(every, linked.tables, linked.places, strict=True)
    )
    return LinkedRelease(joint, tuple(parts))
