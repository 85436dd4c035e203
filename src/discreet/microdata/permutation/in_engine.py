"""Permutation of records that stay in their engine.

The partition is found on the counts of the sensitive values alone; then the engine ranks the records,
gives each its group, and lets the values change hands by two orders drawn by lot. Only partitions
into runs of neighbouring values of numbers can be made so, for files in which everybody owns one
record; others are made in memory.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from sqlglot import exp

from discreet.data.engines import keyed, sql
from discreet.data.engines.base import ROW, Relation
from discreet.microdata.permutation.amounts import Amounts
from discreet.microdata.permutation.groups import GROUP, Groups, Integers
from discreet.microdata.permutation.partitions import Demand, Partition, Problem
from discreet.randomness import Randomness

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.dataset import Dataset

__all__ = ["Runs", "help_table", "permuted_table", "runs_of", "some_groups"]


@dataclasses.dataclass(frozen=True, eq=False)
class Runs:
    """A partition into runs of neighbouring values, and the records that it is of."""

    #: The values in ascending order, in their groups.
    groups: Groups
    missing: int
    #: The records with a value: released columns, the sensitive one, `__row`, `__rank` from 1, and
    #: the group's id.
    records: Relation
    sensitive: str


def runs_of(
    data: Dataset,
    released: Sequence[str],
    sensitive: str,
    demand: Demand,
    method: Partition,
    rng: Randomness,
) -> Runs | None:
    """Return the records in their groups, or nothing where the partition is made in memory."""
    import pyarrow as pa

    kind = data.relation.schema.field(sensitive).type
    if method.looks_at_quasi or not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return None
    counted = data.frequencies([sensitive])
    counted = counted.sort_by(sensitive)
    known = counted.filter(counted.column(0).is_valid())
    missing = len(data) - int(known.column("count").to_numpy().sum())
    if not known.num_rows:
        return None
    values = np.repeat(known.column(0).to_numpy(), known.column("count").to_numpy())
    amounts = Amounts.of(pa.array(values), name=sensitive)
    labels = method.groups(Problem(amounts.distinct, amounts.classes, demand), rng=rng)
    if (labels[1:] < labels[:-1]).any():
        return None
    ends = np.flatnonzero(labels[1:] != labels[:-1]) + 1
    del labels
    starts = np.concatenate(([0], ends, [len(values)])).astype(np.int64)
    same = np.arange(len(values))
    groups = Groups(amounts, same, starts, same)
    return Runs(groups, missing, _grouped(data, released, sensitive, starts[:-1]), sensitive)


def _grouped(data: Dataset, released: Sequence[str], sensitive: str, starts: Integers) -> Relation:
    """Return the records with the id of their group: the last start at or below their rank."""
    import pyarrow as pa

    held = data.numbered()
    engine = held.engine
    kept = engine.project(held.relation, [*released, sensitive, ROW])
    known = engine.filter(kept, sql.is_known(sql.column(sensitive)))
    ranked = engine.rank(known, sensitive, into="__rank")
    begins = engine.load(pa.table({"rank": starts + 1, "start": starts}))
    names = list(ranked.columns)
    joined = sql.select(
        sql.subquery(ranked.query, "t"),
        [*(sql.column(name, "t") for name in names), sql.column("start", "s")],
    ).join(
        sql.subquery(begins.query, "s"),
        on=exp.EQ(this=sql.column("__rank", "t"), expression=sql.column("rank", "s")),
        join_type="left",
    )
    last = exp.Window(this=exp.Max(this=sql.column("start")), order=_by(sql.column("__rank")))
    query = sql.select(
        sql.subquery(joined, "j"),
        [*map(sql.column, names), sql.alias(sql.bigint(last), GROUP)],
    )
    return engine.materialize(engine.relation(query))


def _by(*columns: exp.Expr, down: bool = False) -> exp.Order:
    return exp.Order(
        expressions=[exp.Ordered(this=one, desc=down, nulls_first=False) for one in columns]
    )


def _over(function: exp.Expr, order: exp.Expr | None = None, *, down: bool = False) -> exp.Window:
    """Return a function over the records of a group, or over those up to a record's place."""
    return exp.Window(
        this=function,
        partition_by=[sql.column(GROUP)],
        order=None if order is None else _by(order, down=down),
    )


def _place(order: exp.Expr, *, down: bool = False) -> exp.Expr:
    """Return the place of a record in the release: its group's id and its place there."""
    number = _over(sql.call("row_number"), order, down=down)
    return sql.bigint(exp.Add(this=sql.column(GROUP), expression=number))


def permuted_table(runs: Runs, released: Sequence[str], rng: Randomness) -> Relation:
    """Return the released records by group, the sensitive values in an order of their own."""
    engine, names = runs.records.engine, [*released, runs.sensitive, GROUP]
    drawn = keyed.drawn(runs.records, names, rng, times=2)
    marks = [keyed.mark(engine, sql.column(f"__drawn{place}")) for place in (0, 1)]
    people = sql.select(
        sql.subquery(drawn.query, "t"),
        [*map(sql.column, [*released, GROUP]), sql.alias(_place(marks[0]), "__place")],
    )
    values = sql.select(
        sql.subquery(drawn.query, "t"),
        [sql.column(runs.sensitive), sql.alias(_place(marks[1]), "__place")],
    )
    joined = sql.select(
        sql.subquery(people, "p"),
        [
            *(sql.column(name, "p") for name in [*released, GROUP]),
            sql.column(runs.sensitive, "v"),
            sql.column("__place", "p"),
        ],
    ).join(
        sql.subquery(values, "v"),
        on=exp.EQ(this=sql.column("__place", "p"), expression=sql.column("__place", "v")),
    )
    return _in_order(engine.materialize(engine.relation(joined)), "__place", keep=False)


def help_table(runs: Runs) -> Relation:
    """Return what any number of hits in each group can contribute: see `Groups.help_table`."""
    engine, amounts = runs.records.engine, runs.groups.amounts
    value, rank = sql.column(runs.sensitive), sql.column("__rank")
    low, high = _units(amounts, value)
    rising = sql.select(
        sql.subquery(runs.records.query, "t"),
        [
            sql.alias(rank.copy(), "row_id"),
            sql.column(GROUP),
            sql.alias(value.copy(), "lb_max"),
            sql.alias(sql.bigint(_over(exp.Sum(this=low.copy()), rank.copy())), "low"),
            sql.alias(sql.bigint(_over(exp.Sum(this=low.copy()))), "all_low"),
            sql.alias(sql.bigint(_over(exp.Sum(this=high.copy()))), "all_high"),
            sql.alias(_over(exp.Min(this=value.copy())), "lb_min"),
            sql.alias(_over(exp.Max(this=value.copy())), "ub_max"),
            sql.alias(_over(exp.Count(this=exp.Star())), "size"),
        ],
    )
    falling = sql.select(
        sql.subquery(runs.records.query, "t"),
        [
            sql.alias(_place(rank.copy(), down=True), "row_id"),
            sql.alias(value.copy(), "ub_min"),
            sql.alias(sql.bigint(_over(exp.Sum(this=high.copy()), rank.copy(), down=True)), "high"),
        ],
    )
    both = exp.Add(this=sql.column("all_low", "r"), expression=sql.column("all_high", "r"))
    middle = exp.Mul(
        this=sql.double(exp.Paren(this=both)),
        expression=sql.double(sql.number(float(amounts.step) / 2)),
    )
    hits = exp.Sub(this=sql.column("row_id", "r"), expression=sql.column(GROUP, "r"))
    query = sql.select(
        sql.subquery(rising, "r"),
        [
            sql.column("row_id", "r"),
            sql.column(GROUP, "r"),
            sql.alias(hits, "hits"),
            sql.alias(_sum(amounts, sql.column("low", "r")), "lb_sum"),
            sql.alias(_sum(amounts, sql.column("high", "f")), "ub_sum"),
            sql.column("lb_min", "r"),
            sql.column("ub_min", "f"),
            sql.column("lb_max", "r"),
            sql.column("ub_max", "r"),
            sql.alias(exp.Div(this=middle, expression=sql.double(sql.column("size", "r"))), "mean"),
        ],
    ).join(
        sql.subquery(falling, "f"),
        on=exp.EQ(this=sql.column("row_id", "r"), expression=sql.column("row_id", "f")),
    )
    return _in_order(engine.materialize(engine.relation(query)), "row_id")


def _units(amounts: Amounts, value: exp.Expr) -> tuple[exp.Expr, exp.Expr]:
    """Return the whole units below and above a value, as `Amounts` counts them."""
    if amounts.kind == "integer":
        return sql.bigint(value.copy()), sql.bigint(value.copy())
    step, many = float(amounts.step), float(1 / amounts.step)  # powers of two: nothing is rounded
    scaled = exp.Mul(this=sql.double(value.copy()), expression=sql.double(sql.number(many)))
    found = []
    for word, wrong, more in (("floor", exp.GT, -1), ("ceil", exp.LT, 1)):
        whole = sql.call(word, scaled.copy())
        back = exp.Mul(this=whole.copy(), expression=sql.double(sql.number(step)))
        # A value far smaller than a step vanishes when scaled: put it back on its side.
        missed = wrong(this=back, expression=sql.double(value.copy()))
        moved = exp.Case(default=sql.number(0)).when(missed, sql.number(more))
        found.append(exp.Add(this=sql.bigint(whole), expression=moved))
    return found[0], found[1]


def _sum(amounts: Amounts, units: exp.Expr) -> exp.Expr:
    if amounts.kind == "integer":
        return units
    return exp.Mul(this=sql.double(units), expression=sql.double(sql.number(float(amounts.step))))


def _in_order(rows: Relation, column: str, *, keep: bool = True) -> Relation:
    """Return rows kept in the engine, in the order of a column."""
    names = [name for name in rows.columns if keep or name != column]
    query = sql.select(sql.subquery(rows.query, "t"), map(sql.column, names))
    ordered = query.order_by(exp.Ordered(this=sql.column(column), nulls_first=False))
    return rows.engine.relation(ordered)


def some_groups(runs: Runs, chosen: Integers, released: Sequence[str]) -> tuple[Groups, pa.Table]:
    """Return some of the groups by themselves, and the released columns of their records."""
    import pyarrow as pa

    groups = runs.groups
    places = np.concatenate([np.arange(groups.starts[g], groups.starts[g + 1]) for g in chosen])
    amounts = Amounts.of(groups.amounts.column.take(pa.array(places)), name=runs.sensitive)
    labels = np.repeat(np.arange(len(chosen)), groups.sizes[chosen])
    engine = runs.records.engine
    wanted = engine.load(pa.table({"id": groups.starts[chosen]}))
    query = sql.select(
        sql.subquery(runs.records.query, "t"),
        [sql.column(name, "t") for name in [*released, "__rank"]],
    ).join(
        sql.subquery(wanted.query, "w"),
        on=exp.EQ(this=sql.column(GROUP, "t"), expression=sql.column("id", "w")),
    )
    rows = engine.fetch(query).sort_by("__rank")
    engine.drop(wanted)
    return Groups.of(amounts, labels), rows.select(list(released))
