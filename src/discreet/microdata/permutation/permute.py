"""`permute`: make a (k, e)-anonymous release by permuting a sensitive column inside groups."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from discreet.data.frames import Library
from discreet.errors import InputError
from discreet.ledger.memory import Memory
from discreet.microdata.masking._base import IN_MEMORY
from discreet.microdata.memory import earlier_classes
from discreet.microdata.permutation.owners import people_in, shared_by
from discreet.microdata.permutation.partitions import Demand, Partition, Problem
from discreet.progress import Progress, silent
from discreet.randomness import Randomness
from discreet.registry import build

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from discreet.data.dataset import Dataset
    from discreet.ledger.store import Ledger
    from discreet.microdata.ordering import Ordering, Released
    from discreet.microdata.permutation.amounts import Amounts
    from discreet.microdata.permutation.groups import Groups
    from discreet.microdata.permutation.release import Permuted
    from discreet.microdata.permutation.risk import PermutationRisk

__all__ = ["permute", "released_columns", "require_permutable"]

_CODES = 16


def permute(
    dataset: Any,
    *,
    sensitive: str,
    k: int,
    e: float = 0.0,
    partition: str | Partition | dict[str, Any] = "weighted",
    cap: bool = False,
    rng: Randomness | None = None,
    attack: bool = True,
    vouch: Sequence[str] = (),
    ledger: str | Path | Ledger | None = None,
    snapshot: str | None = None,
    progress: Progress = silent,
) -> Permuted:
    """Permute a sensitive column inside groups of k distinct values that span at least e.

    Quasi-identifiers stay as they are; identifiers, the unit and other confidential columns are
    not released; records without a sensitive value are left out and counted.

    Parameters
    ----------
    dataset
        A dataset, or anything `read` takes. Any: every library has its own frame.
    sensitive
        The column to protect. Text is taken as categories: no e, and only counts are answered.
    k
        Distinct values in every group, at least 2.
    e
        Least range of the values in a group.
    partition
        "weighted" (the default), "min-sum", "min-max", "min-max-exact", "local", "sequential", or
        a member with its parameters, such as `Local(columns=("age",))`.
    cap
        Let no value make up more than 1/k of a group, so that k bounds a probability.
    rng
        Secure by default; a seeded one is for tests, and its release is not written.
    attack
        Measure what a learning attack and insiders would gain.
    vouch
        Columns that may leave although their values look as if they named people, or whoever orders
        the groups by them finds many exact values; those vouched for when the data was read count.
    ledger
        The memory of earlier releases: groups then lie inside the joint classes of earlier files.
    snapshot
        The name of this state of the records, for the ledger; a new one when they have changed.
    progress
        Told what is being done.

    Examples
    --------
    >>> import pandas as pd
    >>> import discreet as dc
    >>> frame = pd.DataFrame({"age": [21, 25, 33, 38, 46, 54], "pay": [10, 30, 11, 31, 12, 35]})
    >>> people = dc.read(frame, roles={"age": "quasi", "pay": "confidential"})
    >>> safe = permute(people, sensitive="pay", k=3)
    >>> safe.facts.groups, safe.facts.k_reached, safe.facts.e_reached
    (2, 3, 2.0)
    >>> print(safe.ask("SELECT SUM(pay) FROM data WHERE age < 30"))
    sum_pay_lower  sum_pay_upper  sum_pay_estimate
               40             47                43
    (estimates are model-based: ...)
    """
    from discreet.data.dataset import read
    from discreet.microdata.permutation.remembering import Remembered

    data = read(dataset).replace(vouch=vouch)
    demand = Demand(k, e, cap)
    method: Partition = build(Partition, partition)
    rng = rng or Randomness.secure()
    if ledger is None:
        if len(data) > IN_MEMORY:
            large = _permuted_in_engine(data, sensitive, demand, method, rng, attack, progress)
            if large is not None:
                return large
        made = _Grouped.of(data, sensitive, demand, method, rng, progress)
        return _released_in(data, made, sensitive, demand, method, rng, progress, attack)
    held = data.numbered()  # rows stand still, so that it is known who is in which group
    with Memory(ledger, held, snapshot=snapshot) as memory:
        within = earlier_classes(memory)
        made = _Grouped.of(held, sensitive, demand, method, rng, progress, within)
        release = _released_in(held, made, sensitive, demand, method, rng, progress, attack)
        release.remember(
            Remembered(held, made.placed, sensitive, tuple(made.released), demand), memory
        )
    return release


def _released_in(
    data: Dataset,
    made: _Grouped,
    sensitive: str,
    demand: Demand,
    method: Partition,
    rng: Randomness,
    progress: Progress,
    attack: bool,
) -> Permuted:
    """Permute inside groups that were made, attack, and return the release."""
    from discreet.microdata.permutation.release import Permuted, facts_of

    k, e, cap = demand.k, demand.e, demand.cap
    groups, owners = made.groups, made.owners
    progress("permuting", 2, 4)
    permuted = _permuted(made.rows, made.released, groups, sensitive, rng)
    facts = facts_of(
        groups,
        k=k,
        e=float(e),
        cap=cap,
        partition=method.settings(),
        missing=made.missing,
        dropped=made.dropped,
        people_reached=None if owners is None else int(people_in(made.labels, owners).min()),
    )
    assert facts.is_valid, "a partition broke its promise"
    progress("attacking", 3, 4)
    columns, chosen, ordered = made.attacked(data, sensitive, rng)
    risk = _risk(groups, columns, chosen, facts.worst_share, k, ordered) if attack else None
    engine = data.engine
    return Permuted(
        engine.load(permuted),
        engine.load(groups.help_table()),
        name=data.name,
        sensitive=sensitive,
        library=Library.for_release(data.library),
        facts=facts,
        risk=risk,
        randomness=rng.kind,
        owners=None if owners is None else owners[groups.order],
    )


def _permuted_in_engine(
    data: Dataset,
    sensitive: str,
    demand: Demand,
    method: Partition,
    rng: Randomness,
    attack: bool,
    progress: Progress,
) -> Permuted | None:
    """Return a release whose records never left their engine; nothing if it is made in memory."""
    from discreet.data.schema import Type
    from discreet.microdata.frequency_set import owner
    from discreet.microdata.ordering import Released
    from discreet.microdata.permutation import in_engine
    from discreet.microdata.permutation.ordering import require_unpredicted
    from discreet.microdata.permutation.release import Permuted, facts_of
    from discreet.microdata.permutation.risk import insiders, sampled

    released, dropped = released_columns(data, sensitive)
    if owner(data) is not None or data.schema[sensitive].type == Type.NOMINAL:
        return None
    progress("grouping", 1, 4)
    runs = in_engine.runs_of(data, released, sensitive, demand, method, rng)
    if runs is None:
        return None
    facts = facts_of(
        runs.groups,
        k=demand.k,
        e=float(demand.e),
        cap=demand.cap,
        partition=method.settings(),
        missing=runs.missing,
        dropped=dropped,
    )
    assert facts.is_valid, "a partition broke its promise"
    progress("attacking", 2, 4)
    some, rows = in_engine.some_groups(runs, sampled(runs.groups, rng), released)
    chosen = np.arange(len(some))
    columns = {name: Released.of(rows.column(name)) for name in released}
    ordered = require_unpredicted(
        some, columns, chosen, sensitive=sensitive, vouched=data.schema.vouched
    )
    risk = None
    if attack:
        risk = _risk(some, columns, chosen, facts.worst_share, demand.k, ordered)
        # Insiders are counted in all groups, the others are tried on some.
        risk = dataclasses.replace(risk, insiders=insiders(runs.groups, demand.k))
    progress("permuting", 3, 4)
    return Permuted(
        in_engine.permuted_table(runs, released, rng),
        in_engine.help_table(runs),
        name=data.name,
        sensitive=sensitive,
        library=Library.for_release(data.library),
        facts=facts,
        risk=risk,
        randomness=rng.kind,
    )


def require_permutable(
    data: Dataset,
    *,
    sensitive: str,
    k: int,
    e: float = 0.0,
    partition: str | Partition = "weighted",
    cap: bool = False,
) -> None:
    """Raise the error that `permute` would end in: records are grouped, and nothing is released."""
    rng, method = Randomness.secure(), build(Partition, partition)
    made = _Grouped.of(data, sensitive, Demand(k, e, cap), method, rng, silent)
    made.attacked(data, sensitive, rng)


@dataclasses.dataclass(frozen=True, eq=False)
class _Grouped:
    """The records that have a sensitive value, in their groups."""

    rows: pa.Table
    released: list[str]
    dropped: tuple[str, ...]
    missing: int
    owners: npt.NDArray[np.int64] | None
    labels: npt.NDArray[np.int64]
    groups: Groups
    #: For each record of the data its group; −1 where it has no sensitive value.
    placed: npt.NDArray[np.int64]

    @classmethod
    def of(
        cls,
        data: Dataset,
        sensitive: str,
        demand: Demand,
        method: Partition,
        rng: Randomness,
        progress: Progress,
        earlier: npt.NDArray[np.int64] | None = None,
    ) -> _Grouped:
        from discreet.data.schema import Type
        from discreet.microdata.permutation.amounts import Amounts
        from discreet.microdata.permutation.groups import Groups
        from discreet.microdata.permutation.remembering import grouped_within

        released, dropped = released_columns(data, sensitive)
        progress("reading", 0, 4)
        rows, owners, known = _known(data, [*released, sensitive])
        category = data.schema[sensitive].type == Type.NOMINAL
        amounts = Amounts.of(rows.column(sensitive), name=sensitive, category=category)
        if not amounts.is_number and demand.e > 0:
            raise InputError(
                f"column {sensitive!r} has categories, which span no range",
                code="no-range",
                hint="leave out e",
                column=sensitive,
            )
        progress("grouping", 1, 4)
        problem = _problem(data, rows, amounts, demand, method)
        if earlier is None:
            labels = method.groups(problem, rng=rng)
            if owners is not None:
                labels = shared_by(labels, owners, demand.k)
        else:
            labels = grouped_within(problem, method, earlier[known], owners, rng=rng)
        placed = np.full(len(known), -1, dtype=np.int64)
        placed[known] = labels
        groups = Groups.of(amounts, labels)
        missing = int((~known).sum())
        return cls(rows, released, dropped, missing, owners, labels, groups, placed)

    def attacked(
        self, data: Dataset, sensitive: str, rng: Randomness
    ) -> tuple[dict[str, Released], npt.NDArray[np.int64], Ordering]:
        """Order the groups by every released column; refuse those that find far too much."""
        from discreet.microdata.ordering import Released
        from discreet.microdata.permutation.ordering import require_unpredicted
        from discreet.microdata.permutation.risk import sampled

        chosen = sampled(self.groups, rng)
        columns = {name: Released.of(self.rows.column(name)) for name in self.released}
        ordered = require_unpredicted(
            self.groups,
            columns,
            chosen,
            sensitive=sensitive,
            vouched=data.schema.vouched,
            owners=self.owners,
        )
        return columns, chosen, ordered


def released_columns(data: Dataset, sensitive: str) -> tuple[list[str], tuple[str, ...]]:
    """Return what is released beside the sensitive column, and what is not."""
    from discreet.data.decisions import require_decided, require_harmless
    from discreet.data.schema import Role
    from discreet.microdata.frequency_set import require_countable
    from discreet.microdata.permutation.groups import GROUP

    data.schema[sensitive]  # says what to write instead if there is none
    if GROUP in data.columns:
        raise InputError(
            f"the data has a column {GROUP!r}, which the release needs for itself",
            code="name-taken",
            hint="rename it",
            column=GROUP,
        )
    if sensitive in data.schema.identifiers:
        raise InputError(
            f"{sensitive!r} identifies people, so it cannot be released in any form",
            code="wrong-role",
            hint='give it the role "confidential"',
            column=sensitive,
        )
    hidden = {
        name
        for name in data.columns
        if data.schema[name].role in (Role.IDENTIFIER, Role.CONFIDENTIAL) or name == data.unit
    } - {sensitive}
    kept = [name for name in data.columns if name not in hidden and name != sensitive]
    require_countable(data, [*kept, sensitive])
    require_decided(data, kept)  # the sensitive column is decided on by being named
    require_countable(data, [*kept, sensitive])
    require_harmless(data, kept, changed=[sensitive])
    return kept, tuple(name for name in data.columns if name in hidden)


def _known(
    data: Dataset, columns: list[str]
) -> tuple[pa.Table, npt.NDArray[np.int64] | None, npt.NDArray[np.bool_]]:
    """Return the records with a sensitive value, the last column; their owners; which have one.

    Owners are None where nobody owns several records.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    from discreet.microdata.columns import codes
    from discreet.microdata.frequency_set import owner

    unit, sensitive = owner(data), columns[-1]
    wanted = columns if unit is None or unit in columns else [*columns, unit]
    rows = data.arrow(wanted)
    column = rows.column(sensitive)
    null = pc.is_null(column, nan_is_null=pa.types.is_floating(column.type))
    known = ~np.asarray(null.to_numpy(), dtype=bool)
    if not known.all():
        rows = rows.filter(pc.invert(null))
    if rows.num_rows == 0:
        raise InputError(f"column {sensitive!r} has no values", code="no-records", column=sensitive)
    owners = None if unit is None else codes(rows.column(unit))[0] + 1
    return rows.select(columns), owners, known


def _problem(
    data: Dataset, rows: pa.Table, amounts: Amounts, demand: Demand, method: Partition
) -> Problem:
    if not method.looks_at_quasi:
        return Problem(amounts.distinct, amounts.classes, demand)
    wanted = tuple(getattr(method, "columns", ()))
    names = wanted or tuple(name for name in data.schema.quasi if name in rows.column_names)
    unknown = [name for name in names if name not in rows.column_names]
    if unknown:
        raise InputError(
            f"there is no released column {unknown[0]!r}",
            code="unknown-column",
            hint="choose from " + ", ".join(rows.column_names[:-1]),
            column=unknown[0],
        )
    from discreet.microdata.ordering import places_of

    places = [places_of(rows.column(name)) for name in names]
    quasi = np.column_stack(places) if places else np.empty((rows.num_rows, 0))
    return Problem(amounts.distinct, amounts.classes, demand, quasi, names)


def _permuted(
    rows: pa.Table, released: list[str], groups: Groups, sensitive: str, rng: Randomness
) -> pa.Table:
    """Return the released table: by group, the sensitive column last."""
    import pyarrow as pa

    from discreet.microdata.permutation.groups import GROUP

    # The order of the input could be that of the values, and inside a group it would tell them.
    order = pa.array(groups.shuffled(rng))
    columns = {name: rows.column(name).take(order) for name in released}
    return pa.table({**columns, GROUP: groups.ids, sensitive: groups.permuted(rng)})


def _risk(
    groups: Groups,
    columns: Mapping[str, Released],
    chosen: npt.NDArray[np.int64],
    worst_share: float,
    k: int,
    ordered: Ordering,
) -> PermutationRisk:
    from discreet.microdata.permutation.risk import PermutationRisk, definetti, insiders

    learned = None
    if columns:
        codes = np.column_stack([_coarse(column.places) for column in columns.values()])
        learned = definetti(groups, codes, chosen)
    return PermutationRisk(worst_share, insiders(groups, k), learned, ordered)


def _coarse(places: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return at most a few codes, each for a range of places."""
    edges = np.unique(np.quantile(places, np.linspace(0, 1, _CODES + 1)[1:-1]))
    return np.searchsorted(edges, places, side="right").astype(np.int64)
