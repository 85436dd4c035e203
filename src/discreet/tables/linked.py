"""Protecting linked tables: cells that several tables share are protected alike in all of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from discreet.audit.rules import Rule
from discreet.data.linked import LinkedTables
from discreet.data.table import Floats, Status, Table
from discreet.errors import InputError
from discreet.progress import Progress
from discreet.randomness import Randomness
from discreet.tables.measures import Identity, grouped, require_unrelated, told_apart
from discreet.tables.methods import Protected, TableMethod
from discreet.tables.release import LinkedRelease, TableRelease
from discreet.tables.single import protect_one, require_protectable, require_safe

__all__ = ["protect_linked", "require_linkable", "split"]


def require_linkable(method: TableMethod) -> None:
    """Raise an InputError if a method promises nothing for several tables at once."""
    if method.acting.linked == "refused":
        raise InputError(
            f"{method.name} cannot promise for several linked tables at once",
            code="linked-method",
            hint="cross all their attributes in one table, or release each with its share of the "
            "budget",
        )


def protect_linked(
    tables: Sequence[Table],
    rules: Sequence[Rule],
    method: TableMethod,
    rng: Randomness,
    progress: Progress,
) -> LinkedRelease:
    """Protect tables that share cells, or several measures of the same records, as one."""
    for table in tables:
        table.require_additive()
    if method.across_measures and len({(t.statistic, t.measure) for t in tables}) > 1:
        return _protect_measures(tables, rules, method, rng, progress)
    # Each table knows best what its own cells hold; what is shared gets the greater need.
    linked = LinkedTables.of(told_apart([method.mark(table, rules) for table in tables]))
    if method.linked == "apart":
        return _protect_apart(linked, rules, method, rng, progress)
    joint = protect_one(linked.joint, (), method, rng, progress)
    joint = dataclasses.replace(joint, rules=tuple(rules))
    if len(joint.table) != len(linked.joint):
        raise InputError(
            f"the method {method.name} changes the cells of a table, so it cannot be used on "
            "linked tables",
            code="linked-method",
            hint="recode the records first, or protect the tables with suppression",
        )
    return LinkedRelease(joint, split(joint, linked.tables, linked.places))


def split(
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
    require_unrelated(tables)
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
        require_protectable(group.joint, method)
        done = method.hide(group.joint, rng=same, progress=progress, withheld=given)  # type: ignore[call-arg]
        if group.together:
            hidden |= group.chosen(done.withheld)
        joints.append(TableRelease(done, method, tuple(rules), rng.kind, before=len(group.joint)))
    parts: dict[int, TableRelease] = {}
    for number, group in enumerate(groups):
        if group.together:
            joints[number] = _widened(joints[number], group.mask(hidden))
        require_safe(joints[number])
        own = split(joints[number], group.tables, group.linked.places[: len(group.tables)])
        parts.update(zip(group.places, own, strict=True))
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
