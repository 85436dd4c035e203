"""What an engine is asked for the cells of a cross of attributes: trees of SQL."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from discreet.data.engines import sql
from discreet.data.hierarchy import Hierarchy
from discreet.data.table import Dimension
from discreet.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.engines.base import Engine, Relation

__all__ = [
    "Demand",
    "climbed",
    "coded",
    "contributions",
    "contributions_of",
    "leaf_query",
    "listed",
    "settled_query",
    "units_of_several_cells",
]


@dataclasses.dataclass(frozen=True, eq=False)
class Demand:
    """What is asked for: see `cells_of`."""

    relation: Relation
    by: Mapping[str, Sequence[Hierarchy]]
    measure: str | None = None
    unit: str | None = None
    weight: str | None = None
    largest: int = 2
    identify: bool = False
    margins: bool = True
    missing: str | None = None
    total: str = "Total"

    def __post_init__(self) -> None:
        special = [name for name in (self.measure, self.unit, self.weight) if name is not None]
        self.relation.require(*self.by, *special)
        if self.largest < 0:
            raise InputError("the number of largest contributions is negative", code="out-of-range")
        import pyarrow as pa

        for name in (self.measure, self.weight):
            if name is None:
                continue
            kind = self.relation.schema.field(name).type
            if not (
                pa.types.is_integer(kind)
                or pa.types.is_floating(kind)
                or pa.types.is_decimal(kind)
                or pa.types.is_boolean(kind)
                or pa.types.is_null(kind)
            ):
                raise InputError(
                    f"column {name!r} is {kind}, where numbers are needed",
                    code="not-numeric",
                    hint="choose a numeric column, or say how its numbers are written when reading",
                    column=name,
                )

    @property
    def engine(self) -> Engine:
        """Where the records live."""
        return self.relation.engine

    @property
    def keys(self) -> list[str]:
        """Names of the attributes inside the queries."""
        return [f"k{place}" for place in range(len(self.by))]

    @property
    def tops(self) -> int:
        """How many largest contributions are wanted."""
        return self.largest if self.measure is not None or self.identify else 0

    @property
    def listed(self) -> list[str]:
        """What is known of each of the largest contributions: amount and, if asked for, unit."""
        return ["c", "u"] if self.identify and self.unit is not None else ["c"]


def _records(demand: Demand) -> exp.Select:
    """Return the records with the columns that matter, under names of our own."""
    values = [
        sql.alias(sql.column(name), key) for name, key in zip(demand.by, demand.keys, strict=True)
    ]
    if demand.unit is not None:
        unit: exp.Expr = sql.column(demand.unit)
        if _is_text(demand.relation.schema.field(demand.unit).type):
            unit = demand.engine.bytewise(unit)
        values.append(sql.alias(unit, "u"))
    if demand.measure is not None:
        values.append(sql.alias(sql.double(sql.column(demand.measure)), "x"))
    elif demand.identify:
        values.append(sql.alias(sql.double(sql.number(1)), "x"))
    if demand.weight is not None:
        values.append(sql.alias(sql.double(sql.column(demand.weight)), "w"))
    if not values:
        values.append(sql.alias(sql.number(1), "one"))
    return sql.select(sql.subquery(demand.relation.query, "t"), values)


def _is_text(kind: pa.DataType) -> bool:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def contributions(demand: Demand) -> exp.Select:
    """Return each unit's contribution to each cell of single values; without unit, the records."""
    if demand.unit is None:
        return _records(demand)
    keys = [sql.column(key) for key in [*demand.keys, "u"]]
    values: list[exp.Expr] = [*keys, sql.alias(sql.call("count", exp.Star()), "n")]
    if demand.tops or demand.measure is not None:
        values.append(sql.alias(sql.call("sum", sql.column("x")), "c"))
    # Without weights the sum is the contribution itself: one column less to keep.
    values += [value for value in _sums(demand) if demand.weight is not None or value.alias != "s"]
    query = sql.select(sql.subquery(_records(demand), "r"), values)
    return query.group_by(*(key.copy() for key in keys))


def _sums(demand: Demand) -> list[exp.Expr]:
    """Return weight, sum and sum of squares over records, as far as they are asked for."""
    found: list[exp.Expr] = []
    weight, value = sql.column("w"), sql.column("x")
    if demand.weight is not None:
        found.append(sql.alias(sql.call("sum", weight), "w"))
    if demand.measure is not None:
        once = value if demand.weight is None else exp.Mul(this=value, expression=weight)
        twice = exp.Mul(this=once.copy(), expression=value.copy())
        found.append(sql.alias(sql.call("sum", once.copy()), "s"))
        found.append(sql.alias(sql.call("sum", twice), "q"))
    return found


def leaf_query(demand: Demand, contributions: exp.Query) -> exp.Select:
    """Return the cells of single values, with what adds up and the largest contributions."""
    keys: list[exp.Expr] = [sql.column(key) for key in demand.keys]
    if demand.unit is None:
        added: list[exp.Expr] = [sql.alias(sql.call("count", exp.Star()), "n")]
        added += _sums(demand)
        amount = "x"
    else:
        total = sql.bigint(sql.call("sum", sql.column("n")))
        added = [sql.alias(total, "n"), sql.alias(sql.call("count", exp.Star()), "units")]
        # A null unit would pass as one contributor with everything of everybody unknown.
        known = sql.call("count", sql.column("u"))
        added.append(sql.alias(known, "known"))
        for name in (value.alias for value in _sums(demand)):
            source = "c" if name == "s" and demand.weight is None else name
            added.append(sql.alias(sql.call("sum", sql.column(source)), name))
        amount = "c"
    return listed(demand, keys, added, contributions, amount)


def listed(
    demand: Demand,
    keys: list[exp.Expr],
    added: list[exp.Expr],
    contributions: exp.Query,
    amount: str,
) -> exp.Select:
    """Return an aggregate whose largest contributions stand in columns of their own: `c1`, `u1`."""
    engine = demand.engine
    inner = [*keys, *added]
    if demand.tops:
        fields = {"c": sql.column(amount)} | {
            name: sql.column(name) for name in demand.listed if name != "c"
        }
        order = sql.call("abs", sql.column(amount))
        inner += engine.largest(fields, order, demand.tops)
    query = sql.select(sql.subquery(contributions, "p"), inner)
    if keys:
        query = query.group_by(*(key.copy() for key in keys))
    outer: list[exp.Expr] = [sql.column(value.alias_or_name) for value in [*keys, *added]]
    for rank in range(1, demand.tops + 1):
        outer += [
            sql.alias(engine.element(name, rank, demand.listed), f"{name}{rank}")
            for name in demand.listed
        ]
    return sql.select(sql.subquery(query, "g"), outer)


def units_of_several_cells(held: exp.Query) -> exp.Select:
    """Return the units that contribute to more than one cell of single values, and to how many."""
    values = [sql.column("u"), sql.alias(sql.call("count", exp.Star()), "cells")]
    query = sql.select(sql.subquery(held, "p"), values).group_by(sql.column("u"))
    return query.having(
        exp.GT(this=sql.call("count", exp.Star()), expression=exp.Literal.number(1))
    )


def contributions_of(
    demand: Demand, held: exp.Query, roaming: exp.Query, piece: tuple[int, int] | None = None
) -> exp.Select:
    """Return the contributions of some units; of a piece of them, a number of how many."""
    named = [*demand.keys, "u", *(["c"] if demand.tops else [])]
    query = sql.select(sql.subquery(held, "p"), [sql.column(name, "p") for name in named])
    query = query.join(sql.subquery(roaming, "m"), on=equal("u", "p", "u", "m"))
    for table in "pm" if piece is not None else "":  # both sides of the join are a piece
        number, pieces = piece or (0, 1)
        place = demand.engine.piece(sql.column("u", table), pieces)
        assert place is not None
        query = query.where(exp.EQ(this=place, expression=sql.number(number)))
    return query


def settled_query(held: exp.Query, roaming: exp.Query) -> exp.Select:
    """Return the contributions of units that appear in one cell only."""
    query = sql.select(
        sql.subquery(held, "p"), [exp.Column(this=exp.Star(), table=exp.to_identifier("p"))]
    )
    return query.join(
        sql.subquery(roaming, "m"),
        on=exp.EQ(this=sql.column("u", "p"), expression=sql.column("u", "m")),
        join_type="left",
    ).where(exp.Is(this=sql.column("u", "m"), expression=exp.Null()))


def equal(mine: str, table: str, theirs: str, other: str) -> exp.EQ:
    """Return that a column of one table equals a column of another."""
    return exp.EQ(this=sql.column(mine, table), expression=sql.column(theirs, other))


def coded(
    demand: Demand, dimensions: Sequence[Dimension], query: exp.Select, codes: Sequence[Relation]
) -> exp.Select:
    """Return contributions with places instead of values; missing has a place of its own."""
    values: list[exp.Expr] = [sql.column("u", "p")]
    values += [sql.column("c", "p")] if demand.tops else []
    joined = sql.select(sql.subquery(query, "p"), [])
    for key, dimension, code in zip(demand.keys, dimensions, codes, strict=True):
        place: exp.Expr = sql.column("place", f"h{key}")
        if demand.missing is not None:
            absent = dimension.index.get(demand.missing, 0)
            place = exp.Coalesce(this=place, expressions=[sql.bigint(sql.number(absent))])
        values.append(sql.alias(place, key))
        on = equal(key, "p", "value", f"h{key}")
        joined = joined.join(sql.subquery(code.query, f"h{key}"), on=on, join_type="left")
    joined.set("expressions", values)
    return joined


def climbed(demand: Demand, query: exp.Select, climbs: Sequence[Relation]) -> exp.Select:
    """Return each unit's contribution to every cell it counts into."""
    steps: list[exp.Expr] = [sql.column("step", f"h{key}") for key in demand.keys]
    cell = functools.reduce(lambda x, y: exp.Add(this=x, expression=y), steps)
    values: list[exp.Expr] = [sql.alias(cell, "cell"), sql.column("u", "p")]
    if demand.tops:
        values.append(sql.column("c", "p"))
    joined = sql.select(sql.subquery(query, "p"), values)
    for key, climb in zip(demand.keys, climbs, strict=True):
        on = equal(key, "p", "place", f"h{key}")
        joined = joined.join(sql.subquery(climb.query, f"h{key}"), on=on)
    keys: list[exp.Expr] = [sql.column("cell"), sql.column("u")]
    summed = [sql.alias(sql.call("sum", sql.column("c")), "c")] if demand.tops else []
    grouped = sql.select(sql.subquery(joined, "e"), [*keys, *summed])
    return grouped.group_by(*(key.copy() for key in keys))
