"""Protecting a table with everything that was released before it."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.audit.intervals import audit_table
from discreet.data.facts import LinearFacts
from discreet.data.table import Status, Table
from discreet.errors import InfeasibleError, InputError, RefusedError
from discreet.ledger.memory import Memory
from discreet.progress import OutOfTimeError, Progress, limited
from discreet.randomness import Randomness
from discreet.tables.memory import JointJudgement, facts_of, state_facts
from discreet.tables.methods import Protected, TableMethod
from discreet.tables.methods.suppression import Suppression
from discreet.tables.protected_table import ProtectedTable

__all__ = [
    "Together", "dataset_of", "patient", "preferring", "protect_together", "require_safe_together", "titled",
]  # fmt: skip

Bools = npt.NDArray[np.bool_]

#: How often cells that would tell too much together are withheld and the rest protected again.
_ROUNDS = 5
#: The same where each round is quick.
_QUICK_ROUNDS = 12
#: CPU seconds that a judgement with earlier releases may take in any case.
_LEAST_SECONDS = 60.0
#: Linear programs look at no more atoms than this where alternatives did not show enough.
_MOST = 30_000


@dataclasses.dataclass(frozen=True, eq=False)
class Together:
    """A table protected together with earlier ones: all cells, and how many of them are its own."""

    protected: Protected
    own: int


@contextlib.contextmanager
def patient(patience: float, alone: float) -> Iterator[None]:
    """Refuse what is not decided in so many times the CPU seconds of protecting a table alone.

    >>> with patient(10.0, 0.5):
    ...     print("decided")
    decided
    """
    seconds = max(patience * alone, _LEAST_SECONDS if patience >= 1 else 0.0)
    try:
        with limited(seconds):
            yield
    except OutOfTimeError:
        raise InfeasibleError(
            f"whether the table is safe together with earlier releases was not decided within "
            f"{seconds:,.0f} CPU seconds, so it is not released",
            code="not-decided",
            hint=f"allow more than patience={patience:g} times the time of the table alone, tabulate "
            "by fewer or coarser attributes, or release with differential privacy",
            seconds=seconds,
            patience=patience,
        ) from None


def require_safe_together(release: ProtectedTable, memory: Memory) -> None:
    """Refuse a protected table that tells too much together with earlier releases."""
    for fact in state_facts(release, memory):
        if not isinstance(fact, LinearFacts):
            continue
        joint = JointJudgement(memory, fact)
        if joint.is_alone:
            continue
        found = _wrong(joint, release.table, fact)
        if found:
            raise RefusedError(
                f"together with {found} the table tells too much",
                code="unsafe-together",
                hint="protect it with ledger=, so that it is protected together with what was "
                "released before",
            )


def _wrong(joint: JointJudgement, table: Table, fact: LinearFacts) -> str:
    """Return the name of an earlier release beside which something is told; empty if nothing is."""
    rng = np.random.default_rng(len(table))
    if joint.is_large and _open(joint, table, fact.exact, rng) == []:
        return ""
    refused, beside = joint.isolating(fact.exact)
    if refused.any():
        return beside
    return "" if _keeps_intervals(joint, table, ~fact.withheld) else _beside(joint)


def _keeps_intervals(joint: JointJudgement, table: Table, shown: Bools) -> bool:
    """Whether linear programs find every sensitive cell of all tables protected."""
    stacked = joint.joint(table)
    if stacked is None or table.status is None:
        return True
    whole, withheld = stacked
    told = ~withheld
    told[: len(table)] = shown
    return audit_table(whole, published=told, attacker=joint.facts.attacker).safe


def _open(
    joint: JointJudgement, table: Table, shown: Bools, rng: np.random.Generator
) -> list[int] | None:
    """Return atoms that may be told too closely if so much of a table is shown; none is safe.

    Alternative databases show it, which randomness chooses, and where these are not enough and
    there are not too many atoms, linear programs. None where neither can tell.
    """
    exposed = joint.exposed(shown, rng)
    if exposed is None or len(exposed):
        return None if exposed is None else list(map(int, exposed))
    found = None if table.status is None else joint.unprotected(table, shown, rng)
    if found is not None and not len(found):
        return []
    if joint.size <= _MOST and _keeps_intervals(joint, table, shown):
        return []
    return None if found is None else list(map(int, found))


def _loosened(joint: JointJudgement, table: Table, hidden: Bools) -> Bools | None:
    """Withhold a few more cells until nothing is told too closely; None if it does not come to that.

    What is withheld besides never narrows an interval, so the rest stays as safe as it was.
    """
    rng = np.random.default_rng(len(hidden))
    hidden = hidden.copy()
    for _ in range(_QUICK_ROUNDS):
        found = _open(joint, table, ~hidden, rng)
        if not found:
            return None if found is None else hidden
        cells = joint.cells_of(np.array(found, dtype=np.int64))
        more = _smallest_beside(table, cells, hidden) & ~hidden
        if not more.any():
            return None
        hidden |= more
    return None


def _smallest_beside(table: Table, cells: Bools, hidden: Bools) -> Bools:
    """Return the cells themselves, and in each equation with any of them the smallest told part."""
    found = cells.copy()
    parts = (table.equations < 0).tocsr()
    counted = table.count if table.count is not None else np.ones(len(table))
    for row in np.flatnonzero(parts @ cells.astype(np.int64)):
        inside = parts.indices[parts.indptr[row] : parts.indptr[row + 1]]
        free = inside[~hidden[inside] & ~cells[inside] & (counted[inside] > 0)]
        if len(free):
            found[free[np.argmin(counted[free])]] = True
    return found


def _beside(joint: JointJudgement) -> str:
    return ", ".join(dict.fromkeys(earlier.name for earlier, _ in (*joint.alike, *joint.kindred)))


def protect_together(
    release: ProtectedTable, memory: Memory, *, rng: Randomness, progress: Progress
) -> Together | None:
    """Return the table protected together with earlier releases; None where it is safe as it is."""
    table, method = release.table, release.method
    fact = _told(release, memory, ~release.protected.withheld)
    joint = JointJudgement(memory, fact)
    if joint.is_alone:
        return None
    if joint.is_large and isinstance(method, Suppression) and table.status is not None:
        hidden = release.protected.withheld
        more = _loosened(joint, table, hidden)
        if more is not None:
            if np.array_equal(more, hidden):
                return None
            hiding = method.hide(table, rng=rng, progress=progress, withheld=more)
            return Together(hiding, len(table))
    if not _wrong(joint, table, fact):
        return None
    if not isinstance(method.acting, Suppression) or method.acting is not method:
        raise InfeasibleError(
            f"together with {_beside(joint) or 'earlier answers'} the table tells too much, and "
            f"{method.name} does not protect tables together with earlier ones",
            code="unsafe-together",
            hint="use suppression, or a method with differential privacy",
        )
    refused, beside = joint.isolating(np.ones(len(table), dtype=bool))
    for _ in range(_ROUNDS):
        done = _hidden(joint, table, method, refused, rng=rng, progress=progress)
        shown = ~done.protected.withheld[: len(table)]
        more, named = joint.isolating(shown)
        if not more.any():
            return done
        refused, beside = refused | more, named
    raise InfeasibleError(
        f"no pattern is safe together with {beside}",
        code="unsafe-together",
        hint="merge categories, or release with differential privacy",
        cells=[" × ".join(table.labels(int(cell))) for cell in np.flatnonzero(refused)[:5]],
    )


def _hidden(
    joint: JointJudgement,
    table: Table,
    method: Suppression,
    refused: Bools,
    *,
    rng: Randomness,
    progress: Progress,
) -> Together:
    """Withhold cells of a table so that all sensitive cells of all tables are protected."""
    stacked = joint.joint(table)
    if stacked is None:  # nothing but answers, or other snapshots: sets of records alone
        done = method.hide(table, rng=rng, progress=progress, withheld=refused)
        return Together(done, len(table))
    whole, withheld = stacked
    withheld[: len(table)] |= refused
    free = dataclasses.replace(method, never=(), prefer=())
    try:
        done = free.hide(whole, rng=rng, progress=progress, withheld=withheld)
    except InfeasibleError as error:
        cells = [str(name).removesuffix(" × Total") for name in error.facts.get("cells", ())]
        raise InfeasibleError(
            f"no pattern is safe together with {_beside(joint)}: {len(cells)} sensitive cells "
            f"clash with what it tells{': ' + '; '.join(cells[:5]) if cells else ''}",
            code="unsafe-together",
            hint="merge categories, leave out an attribute, or release with differential privacy",
            cells=cells,
        ) from None
    audit = audit_table(whole, published=~done.withheld, attacker=method.attacker)
    if not audit.safe:
        own = [cell for cell in audit.cells[~audit._safe].tolist() if cell < len(table)]
        names = [" × ".join(table.labels(cell)) for cell in own[:5]]
        raise InfeasibleError(
            f"no pattern is safe together with {_beside(joint)}: {audit.unsafe} sensitive cells "
            "would be told too closely" + (f", such as {'; '.join(names)}" if names else ""),
            code="unsafe-together",
            hint="merge categories, leave out an attribute, or release with differential privacy",
            cells=names,
        )
    return Together(done, len(table))


def _told(release: ProtectedTable, memory: Memory, shown: Bools) -> LinearFacts:
    value = np.where(shown, release.protected.value, np.nan)
    return facts_of(
        release.table, release.rules, value, value.copy(), memory, attacker=release.attacker
    )


def preferring(table: Table, like: str | int, memory: Memory) -> Table:
    """Return the table with the cells marked that an earlier release withheld: best withheld again."""
    chosen = [
        fact
        for earlier, fact in memory.linear()
        if str(like) in (str(earlier.number), memory.snapshot_name(earlier.snapshot))
        and fact.by == table.by
    ]
    if not chosen:
        raise InputError(
            f"the ledger holds no table by {' × '.join(table.by)} under {like!r}",
            code="unknown-release",
            hint="write the number of a release, as `discreet ledger releases` shows it, or the "
            "name of its snapshot",
            parameter="like",
        )
    fact = chosen[-1]
    words = [dimension.codes for dimension in fact.dimensions]
    hidden = {
        tuple(word[code] for word, code in zip(words, row, strict=True))
        for row in fact.codes[fact.withheld].tolist()
    }
    status = np.zeros(len(table), np.int8) if table.status is None else table.status.copy()
    for cell in range(len(table)):
        if status[cell] == Status.SAFE and table.labels(cell) in hidden:
            status[cell] = Status.SECONDARY
    return table.replace(status=status)


def titled(tables: Sequence[Table], method: TableMethod) -> str:
    """Return what a charge is for."""
    return f"{method.name}: " + "; ".join(" × ".join(table.by) for table in tables)


def dataset_of(tables: Sequence[Any]) -> Any:
    """Return the records behind tables. Any: tables that remember them, or not."""
    source = getattr(tables[0], "source", None)
    if source is None:
        raise InputError(
            "a ready-made table has no records to know it again by in a ledger",
            code="no-records",
            hint="tabulate the records, or leave out ledger",
        )
    return source.dataset
