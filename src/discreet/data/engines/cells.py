"""Cells of a cross of hierarchical attributes, from any engine.

The engine reduces the records to the cells of single values; totals are added here, one
attribute at a time, from cells alone. Only contributors that appear in several of those cells need
more: their contributions to a total add up before they are compared, so the engine sums them
again at every level. Most data has few such units, so the long way is walked for those alone, in
pieces where there are many: a unit's contributions all lie in one piece, so pieces merge like cells.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from sqlglot import exp

from discreet.data.engines import sql
from discreet.data.engines.cell_arithmetic import (
    Cells,
    Numbers,
    contributors_only,
    finished,
    grouped,
    joined,
    read_cells,
    with_totals,
)
from discreet.data.engines.cell_codes import climbs_of, codes_of, dimensions_of, places_of, radix
from discreet.data.engines.cell_queries import (
    Demand,
    climbed,
    coded,
    contributions,
    contributions_of,
    leaf_query,
    listed,
    settled_query,
    units_of_several_cells,
)
from discreet.data.hierarchy import Hierarchy
from discreet.data.table import Dimension

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.engines.base import Relation

__all__ = ["cells_of"]

#: So many contributions, each to every cell above it, are summed at a time: under a gigabyte.
AT_ONCE = 8_000_000


def cells_of(
    relation: Relation,
    by: Mapping[str, Sequence[Hierarchy]],
    *,
    measure: str | None = None,
    unit: str | None = None,
    weight: str | None = None,
    largest: int = 2,
    identify: bool = False,
    margins: bool = True,
    missing: str | None = None,
    total: str = "Total",
) -> pa.Table:
    """Return the non-empty cells of the cross of the attributes, totals at every level included.

    With a measure only records that have a value of it count.

    Columns: the attributes (as text codes), `count` (rows), `units` (distinct contributors, if
    `unit`), and with a measure `sum`, `sum_squares` (of the records' values), `top_1` …
    `top_n` (the contributions largest in absolute value, with their sign, summed per unit when
    a unit is given; 0 where there are fewer), and with `identify` `unit_1` … `unit_n`: numbers
    that tell contributors apart within this result and mean nothing outside it, −1 for
    nobody. With a weight: also `weight` (its sum), and `sum` and `sum_squares` are weighted;
    the contributions are not.

    Parameters
    ----------
    by
        The attributes and the hierarchies of each; none means flat below `total`.
    missing
        The code that stands for a missing value of an attribute; None refuses missing values.
    margins
        Whether totals are wanted, or only the cells of single values.
    """
    if measure is not None:
        relation = _with_values(relation, measure)
    return _tabulated(
        Demand(
            relation, dict(by), measure, unit, weight, largest, identify, margins, missing, total
        )
    )


def _with_values(relation: Relation, measure: str) -> Relation:
    """Return the records that have a value: others contribute nothing, and must not hide who does."""
    relation.require(measure)
    names: list[exp.Expr] = [sql.column(name) for name in relation.schema.names]
    query = sql.select(sql.subquery(relation.query, "t"), names)
    is_missing = exp.Is(this=sql.column(measure), expression=exp.Null())
    return relation.engine.relation(query.where(exp.Not(this=is_missing)))


def _tabulated(demand: Demand) -> pa.Table:
    """Return the cells that are asked for."""
    engine = demand.engine
    if demand.unit is None or not demand.margins:
        rows = engine.fetch(leaf_query(demand, contributions(demand)))
        numbers = Numbers()
        dimensions, places = dimensions_of(demand, rows)
        return finished(
            demand,
            dimensions,
            with_totals(demand, dimensions, read_cells(demand, rows, places, numbers)),
        )
    held = engine.materialize(engine.relation(contributions(demand)))
    try:
        return _with_units(demand, held)
    finally:
        engine.drop(held)


def _with_units(demand: Demand, held: Relation) -> pa.Table:
    """Return cells with totals where contributions are summed per unit."""
    engine, numbers = demand.engine, Numbers()
    rows = engine.fetch(leaf_query(demand, held.query))
    dimensions, places = dimensions_of(demand, rows)
    roaming = engine.materialize(engine.relation(units_of_several_cells(held.query)))
    try:
        return _compared(
            demand, dimensions, read_cells(demand, rows, places, numbers), held, roaming, numbers
        )
    finally:
        engine.drop(roaming)


def _compared(
    demand: Demand,
    dimensions: Sequence[Dimension],
    everybody: Cells,
    held: Relation,
    roaming: Relation,
    numbers: Numbers,
) -> pa.Table:
    """Return cells with totals, of all units and those that roam through several cells."""
    engine = demand.engine
    many = _sum_of(roaming, "cells")
    if many == 0:
        return finished(demand, dimensions, with_totals(demand, dimensions, everybody))
    # What adds up comes from all units; contributors are compared apart: those of one cell by
    # merging, those of several by summing again at every level.
    nobody = np.zeros_like(everybody.amounts)
    additive = dataclasses.replace(
        everybody,
        added=everybody.added | {"units": np.zeros_like(everybody.added["units"])},
        amounts=nobody,
        units=np.full_like(everybody.units, -1),
    )
    rows = engine.fetch(leaf_query(demand, settled_query(held.query, roaming.query)))
    settled = read_cells(demand, rows, places_of(demand, dimensions, rows), numbers)
    rolled = with_totals(demand, dimensions, joined(additive, contributors_only(settled)))
    found = _roaming(demand, dimensions, held.query, roaming.query, numbers, many)
    merged = grouped(dimensions, joined(rolled, contributors_only(found)), demand.tops)
    return finished(demand, dimensions, merged)


def _sum_of(relation: Relation, column: str) -> int:
    total = sql.alias(sql.call("sum", sql.column(column)), "n")
    query = sql.select(sql.subquery(relation.query, "t"), [total])
    return int(relation.engine.fetch(query).column(0)[0].as_py() or 0)


def _roaming(
    demand: Demand,
    dimensions: Sequence[Dimension],
    held: exp.Query,
    roaming: exp.Query,
    numbers: Numbers,
    many: int,
) -> Cells:
    """Return every cell of the units that appear in several, contributions summed per unit.

    Each contribution is joined to all the cells it counts into, a cell being one number, so that
    the engine groups by two numbers and nothing else. There are many contributions.
    """
    engine, loaded = demand.engine, []
    try:
        codes, climbs, above = [], [], 1
        for place, dimension in enumerate(dimensions):
            codes.append(engine.load(codes_of(demand, dimension)))
            climb = climbs_of(dimension, radix(dimensions, place))
            climbs.append(engine.load(climb))
            above *= -(-climb.num_rows // max(1, len(dimension.codes)))
        loaded = [*codes, *climbs]
        pieces = -(-many * above // AT_ONCE)
        if engine.piece(sql.column("u"), pieces) is None:
            pieces = 1
        found: Cells | None = None
        for piece in range(pieces):
            part = contributions_of(demand, held, roaming, (piece, pieces) if pieces > 1 else None)
            query = climbed(demand, coded(demand, dimensions, part, codes), climbs)
            more = _read_roaming(demand, dimensions, query, numbers)
            both = more if found is None else joined(found, more)
            found = grouped(dimensions, both, demand.tops)
        assert found is not None
        return found
    finally:
        for table in loaded:
            engine.drop(table)


def _read_roaming(
    demand: Demand, dimensions: Sequence[Dimension], query: exp.Select, numbers: Numbers
) -> Cells:
    import pyarrow as pa

    units: list[exp.Expr] = [sql.alias(sql.call("count", exp.Star()), "units")]
    rows = demand.engine.fetch(listed(demand, [sql.column("cell")], units, query, "c"))
    cells = rows.column("cell").cast(pa.int64()).to_numpy()
    places = [
        cells // radix(dimensions, place) % len(dimension.codes)
        for place, dimension in enumerate(dimensions)
    ]
    return read_cells(demand, rows, np.stack(places, axis=1), numbers)
