"""Records that change places inside an engine: rows are chosen, paired and joined where they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from sqlglot import exp

from discreet.data.engines import keyed, sql
from discreet.data.engines.base import ROW, Relation

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.randomness import Randomness

__all__ = ["exchanged", "put_back", "ranked", "swapped"]

#: Hexadecimal digits by which marks are counted before the last of them are looked at.
_DIGITS = 4


def put_back(relation: Relation, moved: Relation, columns: Sequence[str]) -> Relation:
    """Return numbered rows with the columns of those that moved in place of their own.

    `moved` has each row at most once, `__row` and `__moved`, true; other rows stay as they are.
    """
    engine = relation.engine
    new = {
        name: exp.Case(default=sql.column(name, "t")).when(
            sql.column("__moved", "m"), sql.column(name, "m")
        )
        for name in columns
    }
    values = [
        sql.alias(new[name], name) if name in new else sql.column(name, "t")
        for name in relation.columns
    ]
    query = sql.select(sql.subquery(relation.query, "t"), values).join(
        sql.subquery(moved.query, "m"),
        on=exp.EQ(this=sql.column(ROW, "t"), expression=sql.column(ROW, "m")),
        join_type="left",
    )
    return Relation(engine, query, relation.schema)


def _chosen(rows: Relation, size: int) -> Relation:
    """Return so many of the rows with the smallest marks, with their `__mark`.

    Marks are counted by their first digits; then those with the digits in question are looked at.
    """
    engine = rows.engine
    text = sql.column("__drawn0")
    marked = engine.relation(
        sql.select(
            sql.subquery(rows.query, "t"),
            [
                *(sql.column(name) for name in rows.columns if name != "__drawn0"),
                sql.alias(keyed.mark(engine, text), "__mark"),
                sql.alias(
                    sql.call(
                        "substr", text.copy(), exp.Literal.number(1), exp.Literal.number(_DIGITS)
                    ),
                    "__digits",
                ),
            ],
        )
    )
    counted = engine.frequencies(marked, ["__digits"])
    digits = np.array(counted.column(0).to_pylist(), dtype=object)
    order = np.argsort(digits)
    before = np.cumsum(counted.column("count").to_numpy()[order])
    place = int(np.searchsorted(before, size))
    word = str(digits[order][place])
    rest = size - (int(before[place - 1]) if place else 0)
    here = engine.filter(marked, exp.EQ(this=sql.column("__digits"), expression=sql.text(word)))
    marks = np.sort(engine.fetch(engine.project(here, ["__mark"])).column(0).to_numpy())
    last = sql.number(int(marks[rest - 1]))
    kept = engine.filter(marked, exp.LTE(this=sql.column("__mark"), expression=last))
    return engine.project(kept, [name for name in kept.columns if name != "__digits"])


def exchanged(
    relation: Relation,
    columns: Sequence[str],
    within: Sequence[str],
    *,
    size: int,
    rng: Randomness,
) -> Relation:
    """Return rows of which `size` exchanged columns with a drawn partner that agrees on `within`."""
    engine = relation.engine
    names = list(dict.fromkeys([*columns, *within]))
    chosen = _chosen(keyed.drawn(relation, names, rng), size)
    order = exp.Order(expressions=[exp.Ordered(this=sql.column("__mark"), nulls_first=False)])

    def over(function: exp.Expr) -> exp.Window:
        return exp.Window(
            this=function,
            partition_by=[sql.column(name) for name in within],
            order=order.copy(),
        )

    # Two neighbours in the drawn order are a pair: an odd place and the one after it.
    paired = sql.select(
        sql.subquery(chosen.query, "t"),
        [
            sql.column(ROW),
            sql.alias(over(sql.call("row_number")), "__place"),
            sql.alias(over(sql.call("lead", sql.column(ROW))), "__next"),
            *(
                sql.alias(over(sql.call("lead", sql.column(n))), f"__after{p}")
                for p, n in enumerate(columns)
            ),
            *(
                sql.alias(over(sql.call("lag", sql.column(n))), f"__before{p}")
                for p, n in enumerate(columns)
            ),
        ],
    )
    odd = exp.EQ(
        this=exp.Mod(this=sql.column("__place"), expression=exp.Literal.number(2)),
        expression=exp.Literal.number(1),
    )
    alone = exp.And(
        this=odd.copy(), expression=exp.Is(this=sql.column("__next"), expression=exp.Null())
    )
    taken = [
        sql.alias(
            exp.Case(default=sql.column(f"__before{place}")).when(
                odd.copy(), sql.column(f"__after{place}")
            ),
            name,
        )
        for place, name in enumerate(columns)
    ]
    query = sql.select(
        sql.subquery(paired, "t"),
        [sql.column(ROW), *taken, sql.alias(exp.Boolean(this=True), "__moved")],
    ).where(exp.Not(this=exp.Paren(this=alone)), copy=False)
    return put_back(relation, engine.relation(query), columns)


def ranked(relation: Relation, column: str) -> Relation:
    """Return the rows that have a value, `__row`, the column and its `__rank` from 1."""
    import pyarrow as pa

    engine = relation.engine
    known = engine.filter(engine.project(relation, [column, ROW]), sql.is_known(sql.column(column)))
    kind = relation.schema.field(column).type
    if not pa.types.is_string(kind):
        return engine.rank(known, column, into="__rank")
    # Texts are ordered by their bytes, whatever language the engine speaks.
    spelt = engine.relation(
        sql.select(
            sql.subquery(known.query, "t"),
            [
                sql.column(column),
                sql.column(ROW),
                sql.alias(engine.bytewise(sql.column(column)), "__order"),
            ],
        )
    )
    found = engine.rank(spelt, "__order", into="__rank")
    return engine.project(found, [column, ROW, "__rank"])


def swapped(relation: Relation, column: str, ranks: Relation, pairs: pa.Table) -> Relation:
    """Return rows whose values at the ranks `one` and `two` of each pair changed places."""
    engine = relation.engine
    loaded = engine.load(pairs)

    def taken(here: str, there: str) -> exp.Select:
        """Return the rows at one end of the pairs with the values at the other."""
        return (
            sql.select(
                sql.subquery(loaded.query, "p"),
                [
                    sql.column(ROW, "a"),
                    sql.column(column, "b"),
                    sql.alias(exp.Boolean(this=True), "__moved"),
                ],
            )
            .join(
                sql.subquery(ranks.query, "a"),
                on=exp.EQ(this=sql.column(here, "p"), expression=sql.column("__rank", "a")),
            )
            .join(
                sql.subquery(ranks.query, "b"),
                on=exp.EQ(this=sql.column(there, "p"), expression=sql.column("__rank", "b")),
            )
        )

    both = exp.union(taken("one", "two"), taken("two", "one"), distinct=False)
    return put_back(relation, engine.materialize(engine.relation(both)), [column])
