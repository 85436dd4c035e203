"""Protecting a table: mark what is sensitive, hide it, audit the result."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, overload

import numpy as np

from discreet.audit.rules import Rule
from discreet.audit.rules.group_disclosure import GroupDisclosure, discloses_groups
from discreet.data.linked import LinkedTables
from discreet.data.table import Table
from discreet.dp.grant import charge
from discreet.errors import InputError
from discreet.progress import Progress, silent
from discreet.randomness import Randomness
from discreet.tables.linked import protect_linked, require_linkable, split
from discreet.tables.measures import told_apart
from discreet.tables.methods import FAMILY, TableMethod
from discreet.tables.methods.suppression import Suppression
from discreet.tables.published import OWN
from discreet.tables.release import LinkedRelease, TableRelease
from discreet.tables.single import protect_one, require_safe

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
    patience: float = ...,
    charged: int | None = ...,
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
    patience: float = ...,
    charged: int | None = ...,
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
    patience: float = 10.0,
    charged: int | None = None,
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
    patience
        How many times the time of protecting it alone the judgement with earlier releases may take,
        in CPU seconds and at least a minute. What is not decided by then is refused.
    charged
        The ledger's entry of the charge, where it was made before the records were counted.

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
    if not isinstance(table, Table):
        require_linkable(method)  # before anything is charged
    if all(one.status is None for one in tables):
        require_rules(rules, method)
    rules = _with_defaults(rules, tables, method)
    if ledger is not None:
        from discreet.ledger.memory import Memory
        from discreet.tables.remembering import dataset_of

        with Memory(ledger, dataset_of(tables), snapshot=snapshot) as memory:
            return _remembered(
                table, rules, method, rng, memory, like, charged, unsafe, patience, progress
            )
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
    for one in [table] if isinstance(table, Table) else table:
        one.require_margins()
    if not isinstance(table, Table):
        linked = protect_linked(table, rules, method, rng, progress)
        if not unsafe:
            require_safe(linked.joint)
            return linked
        accepted = linked.joint.kept_as(accepts_unsafe=True)
        parts = tuple(
            one.kept_as(within=(accepted, one.within[1]))
            if one.within is not None and one.within[0] is linked.joint
            else one
            for one in linked.releases
        )
        return dataclasses.replace(linked, joint=accepted, releases=parts)
    release = protect_one(table, rules, method, rng, progress)
    if unsafe:
        return release.kept_as(accepts_unsafe=True)
    require_safe(release)
    return release


def _remembered(
    table: Table | Sequence[Table],
    rules: Sequence[Rule],
    method: TableMethod,
    rng: Randomness,
    memory: Memory,
    like: str | int | None,
    charged: int | None,
    unsafe: bool,
    patience: float,
    progress: Progress,
) -> TableRelease | LinkedRelease:
    """Charge, protect, and judge together with what a ledger remembers."""
    from discreet.ledger.recording import standing_in
    from discreet.tables.remembering import patient, preferring, protect_together, titled

    tables = [table] if isinstance(table, Table) else list(table)
    events = method.acting.events(tables[0])
    if events and charged is None:
        what = titled(tables, method)
        charged = charge(memory.ledger, memory.dataset.name, events, what=what)
    started = time.process_time()
    if not isinstance(table, Table):
        made = _protected(table, rules, method, rng, unsafe, progress)
        linked = _with_records(made, tables)
        assert isinstance(linked, LinkedRelease)
        with patient(patience, time.process_time() - started):
            if _is_searched(method) and (memory.earlier or memory.answers):
                linked = _linked_together(linked, tables, rules, method, rng, memory, progress)
            linked.judge(memory)
        return dataclasses.replace(linked, standing=standing_in(memory, charged))
    if like is not None:
        table = preferring(table, like, memory)
    release = _protected(table, rules, method, rng, unsafe, progress)
    assert isinstance(release, TableRelease)
    with patient(patience, time.process_time() - started):
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
        joint = protect_one(joined.joint, (), method, rng, progress, withheld=withheld)
        joint = dataclasses.replace(joint, rules=tuple(rules))
        require_safe(joint)
        again = LinkedRelease(joint, split(joint, joined.tables, joined.places))
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
    (part,) = split(whole, [release.table], [np.arange(found.own)])
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
