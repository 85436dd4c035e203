"""Grouping of records that stay in their engine: sorted into blocks there, grouped block by block.

The engine cuts the records into blocks along one column after the other, as a k-d tree does, so that a
block holds records that are alike. Each block is fetched, grouped in memory and handed back, so Python
holds a few blocks at a time. Groups cannot cross the border of a block; the manual says what that costs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from sqlglot import exp

from discreet.data.engines import sql
from discreet.data.engines.base import ROW, Relation

__all__ = ["BLOCK", "in_blocks"]

#: Records in a block, about. Larger ones lose less at their borders and take longer.
BLOCK = 20_000
#: Groups of k that a block holds at least.
_GROUPS = 20
#: Records that are fetched at a time, about.
_PIECE = 200_000

Aggregate = Callable[[pa.Table], Mapping[str, pa.Array]]


def in_blocks(
    relation: Relation,
    types: Mapping[str, pa.DataType],
    axes: Sequence[str],
    aggregate: Aggregate,
    *,
    k: int,
    block: int = BLOCK,
) -> Relation:
    """Return `__row` and the aggregated columns of a numbered relation.

    Records are grouped with those that miss the same columns. Where fewer than k do, and where
    nothing is known, a record is left out. `axes` are the columns to sort by, `types` those of the
    results.
    """
    engine = relation.engine
    size = max(block, _GROUPS * k)
    found: list[Relation] = []
    for known, records in _patterns(relation, list(types)):
        if known and records >= k:
            along = [name for name in axes if name in known] or known[:1]
            here = engine.filter(engine.project(relation, [*types, ROW]), _has(known, types))
            cut, blocks = _cut(here, along, records, size)
            held = engine.materialize(_ordered(cut, [*known, ROW, "__block"]))
            found += _pieces(held, known, blocks, max(_PIECE // size, 1), types, aggregate)
            engine.drop(held)
    if not found:
        return engine.load(pa.table({**{n: pa.nulls(0, t) for n, t in types.items()}, ROW: pa.array([], pa.int64())}))  # fmt: skip
    query: exp.Query = found[0].query
    for part in found[1:]:
        query = exp.union(query, part.query, distinct=False, copy=False)
    return Relation(engine, query, found[0].schema)


def _patterns(relation: Relation, names: Sequence[str]) -> Iterator[tuple[list[str], int]]:
    """Yield which columns are known together, and of how many records."""
    engine = relation.engine
    marks = [
        sql.alias(
            exp.Case(default=sql.number(0)).when(sql.is_known(sql.column(name)), sql.number(1)),
            f"__known{place}",
        )
        for place, name in enumerate(names)
    ]
    marked = engine.relation(sql.select(sql.subquery(relation.query, "t"), marks))
    counted = engine.frequencies(marked, list(marked.columns)).to_pylist()
    for row in sorted(counted, key=lambda row: list(row.values())):
        known = [name for place, name in enumerate(names) if row[f"__known{place}"] == 1]
        yield known, int(row["count"])


def _has(known: Sequence[str], names: Mapping[str, pa.DataType]) -> exp.Expr:
    """Return the condition that just these columns are known."""
    parts = []
    for name in names:
        is_known = sql.is_known(sql.column(name))
        parts.append(is_known if name in known else exp.Not(this=is_known))
    return exp.and_(*parts)


def _cut(relation: Relation, axes: Sequence[str], records: int, size: int) -> tuple[Relation, int]:
    """Return the records with the number of their `__block`, and how many blocks there are."""
    engine = relation.engine
    wanted = max(records // size, 1)
    parts = _parts(wanted, len(axes))
    # The first cut sorts all records, which an engine does in its own way.
    cut = engine.rank(relation, axes[0], into="__place")
    place = _share(sql.column("__place"), parts[0], sql.double(sql.number(records)))
    cut = _with_block(cut, [*relation.columns], place)
    for axis, number in zip(axes[1:], parts[1:], strict=True):
        if number == 1:
            continue
        by = [sql.column("__block")]
        order = [exp.Ordered(this=sql.column(n), nulls_first=False) for n in (axis, ROW)]
        rank = exp.Window(
            this=sql.call("row_number"), partition_by=by, order=exp.Order(expressions=order)
        )
        inside = exp.Window(this=exp.Count(this=exp.Star()), partition_by=[by[0].copy()])
        placed = engine.relation(
            sql.select(
                sql.subquery(cut.query, "t"),
                [*map(sql.column, cut.columns), sql.alias(rank, "__place"), sql.alias(inside, "__all")],
            )
        )  # fmt: skip
        share = _share(sql.column("__place"), number, sql.double(sql.column("__all")))
        before = exp.Mul(this=sql.column("__block"), expression=sql.number(number))
        cut = _with_block(
            placed, [*relation.columns], exp.Add(this=exp.Paren(this=before), expression=share)
        )
    return cut, math.prod(parts)


def _parts(blocks: int, axes: int) -> list[int]:
    """Return into how many parts each axis is cut, so that there are about so many blocks.

    >>> _parts(100, 2), _parts(7, 3), _parts(1, 2)
    ([10, 10], [2, 2, 2], [1, 1])
    """
    found, left = [], float(blocks)
    for place in range(axes):
        number = max(round(left ** (1 / (axes - place))), 1)
        found.append(number)
        left = max(left / number, 1.0)
    return found


def _share(place: exp.Expr, parts: int, records: exp.Expr) -> exp.Expr:
    """Return in which of so many equal parts a place from 1 to the number of records lies."""
    before = exp.Paren(this=exp.Sub(this=place, expression=sql.number(1)))
    whole = exp.Mul(this=sql.double(before), expression=sql.number(parts))
    return sql.bigint(sql.call("floor", exp.Div(this=whole, expression=records)))


def _with_block(relation: Relation, names: Sequence[str], block: exp.Expr) -> Relation:
    query = sql.select(
        sql.subquery(relation.query, "t"), [*map(sql.column, names), sql.alias(block, "__block")]
    )
    return relation.engine.relation(query)


def _ordered(relation: Relation, names: Sequence[str]) -> Relation:
    """Return some columns in the order of the blocks, so that a block is found without a scan."""
    kept = relation.engine.project(relation, names)
    query = kept.query.order_by(exp.Ordered(this=sql.column("__block"), nulls_first=False))
    return Relation(relation.engine, query, kept.schema)


def _pieces(
    held: Relation,
    known: Sequence[str],
    blocks: int,
    together: int,
    types: Mapping[str, pa.DataType],
    aggregate: Aggregate,
) -> Iterator[Relation]:
    """Yield the results of a few blocks at a time, kept by the engine."""
    engine = held.engine
    for start in range(0, blocks, together):
        column = sql.column("__block")
        few = exp.And(
            this=exp.GTE(this=column, expression=sql.number(start)),
            expression=exp.LT(this=column.copy(), expression=sql.number(start + together)),
        )
        rows = engine.fetch(engine.filter(held, few)).sort_by([("__block", "ascending"), (ROW, "ascending")])  # fmt: skip
        ends = np.flatnonzero(np.diff(rows.column("__block").to_numpy())) + 1
        done = []
        for first, last in zip([0, *ends], [*ends, rows.num_rows], strict=True):
            part = rows.slice(first, last - first)
            made = aggregate(part.select(list(known)))
            columns = {
                name: made[name].cast(kind) if name in made else pa.nulls(part.num_rows, kind)
                for name, kind in types.items()
            }
            done.append(pa.table({**columns, ROW: part.column(ROW)}))
        loaded = engine.load(pa.concat_tables(done))
        yield engine.materialize(loaded)
        engine.drop(loaded)
