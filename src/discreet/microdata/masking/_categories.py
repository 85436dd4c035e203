"""Categories drawn by an engine: what each may become is looked up, one row for each draw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from sqlglot import exp

from discreet.data.engines import keyed, sql
from discreet.data.engines.base import Relation
from discreet.data.snapshot import written_key
from discreet.microdata.columns import Numbers, Places
from discreet.randomness import Randomness

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["AliasTables", "drawn_by", "grouped"]

#: Odds that are loaded into an engine at most, for one column.
_ODDS = 4_000_000


class AliasTables:
    """What every category of every group may become, as two tables that rows are joined with."""

    def __init__(self, values: pa.Array) -> None:
        self._values = values
        self._odds = 0
        #: Of each group: its name, its categories, where they begin among the odds.
        self._groups: list[tuple[str, Places, int]] = []
        self._parts: list[tuple[Numbers, Places, Places]] = []

    def holds(self, categories: int) -> bool:
        """Whether the odds of a further group still fit."""
        return self._odds + categories**2 <= _ODDS

    def add(self, group: str, categories: Places, odds: Numbers) -> None:
        """Add the odds of a group's categories."""
        from discreet.microdata.masking._alias import alias_table

        threshold, other = alias_table(np.ascontiguousarray(odds, np.float64))
        keep = np.tile(categories, len(categories))
        self._groups.append((group, categories, self._odds))
        self._parts.append((threshold.ravel(), keep, categories[other.ravel()]))
        self._odds += threshold.size

    def classes(self) -> pa.Table:
        """Return for each category of each group where its odds begin, and how many they are."""
        import pyarrow as pa

        names = [name for name, own, _ in self._groups for _ in own]
        places = np.concatenate([own for _, own, _ in self._groups] or [np.zeros(0, np.int64)])
        starts = [start + np.arange(len(own)) * len(own) for _, own, start in self._groups]
        sizes = [np.full(len(own), len(own)) for _, own, _ in self._groups]
        return pa.table(
            {
                "group": pa.array(names, pa.string()),
                "from": self._values.take(pa.array(places)),
                "start": np.concatenate(starts or [np.zeros(0, np.int64)]),
                "size": np.concatenate(sizes or [np.zeros(0, np.int64)]),
            }
        )

    def odds(self) -> pa.Table:
        """Return the thresholds and what is taken below and above them."""
        import pyarrow as pa

        odds, keep, other = (
            np.concatenate(parts) if parts else np.zeros(0, np.int64)
            for parts in (zip(*self._parts, strict=True) if self._parts else ((), (), ()))
        )
        return pa.table(
            {
                "slot": np.arange(len(odds)),
                "odds": odds.astype(np.float64),
                "keep": self._values.take(pa.array(keep)),
                "other": self._values.take(pa.array(other)),
            }
        )


def _group(relation: Relation, within: Sequence[str]) -> exp.Expr:
    return written_key(relation, within) if within else sql.text("")


def grouped(relation: Relation, column: str, within: Sequence[str]) -> pa.Table:
    """Return each known value with its `count`, by the `group` of the columns to respect."""
    engine = relation.engine
    known = engine.filter(relation, sql.is_known(sql.column(column)))
    query = sql.select(
        sql.subquery(known.query, "t"),
        [
            sql.alias(_group(relation, within), "group"),
            sql.alias(sql.column(column), "value"),
        ],
    )
    return engine.frequencies(engine.relation(query), ["group", "value"])


def drawn_by(
    relation: Relation, column: str, within: Sequence[str], tables: AliasTables, rng: Randomness
) -> Relation:
    """Return numbered rows with one column drawn anew; a missing value stays missing."""
    engine = relation.engine
    names = list(relation.columns)
    rows = keyed.drawn(relation, names, rng)
    classes, odds = engine.load(tables.classes()), engine.load(tables.odds())
    text = sql.column("__drawn0", "t")
    same = exp.EQ(this=sql.column(column, "t"), expression=sql.column("from", "c"))
    on: exp.Expr = same
    if within:
        key = exp.EQ(this=sql.column("__group", "t"), expression=sql.column("group", "c"))
        on = exp.And(this=key, expression=same)
        rows = engine.relation(
            sql.select(
                sql.subquery(rows.query, "t"),
                [
                    *map(sql.column, rows.columns),
                    sql.alias(_group(relation, within), "__group"),
                ],
            )
        )
    share = exp.Mul(
        this=keyed.uniform(engine, text.copy()), expression=sql.double(sql.column("size", "c"))
    )
    slot = exp.Add(this=sql.column("start", "c"), expression=sql.bigint(sql.call("floor", share)))
    placed = sql.select(
        sql.subquery(rows.query, "t"),
        [
            *(sql.column(name, "t") for name in names),
            sql.alias(sql.bigint(slot), "__slot"),
            sql.alias(keyed.uniform(engine, text.copy(), 1), "__unit"),
        ],
    ).join(sql.subquery(classes.query, "c"), on=on, join_type="left")
    below = exp.LT(this=sql.column("__unit", "p"), expression=sql.column("odds", "o"))
    taken = exp.Case(default=sql.column("other", "o")).when(below, sql.column("keep", "o"))
    query = sql.select(
        sql.subquery(placed, "p"),
        [sql.alias(taken, n) if n == column else sql.column(n, "p") for n in names],
    ).join(
        sql.subquery(odds.query, "o"),
        on=exp.EQ(this=sql.column("__slot", "p"), expression=sql.column("slot", "o")),
        join_type="left",
    )
    return Relation(engine, query, relation.schema)
