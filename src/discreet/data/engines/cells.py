"""Cells of a cross of hierarchical attributes, from any engine.

The engine reduces the records to the cells of single values; totals are added here, one
attribute at a time, from cells alone. Only contributors that appear in several of those cells need
more: their contributions to a total add up before they are compared, so the engine sums them
again at every level. Most data has few such units, so the long way is walked for those alone.
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
    equal,
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
    return _tabulated(
        Demand(
            relation, dict(by), measure, unit, weight, largest, identify, margins, missing, total
        )
    )


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
    several = units_of_several_cells(held.query)
    if engine.count(engine.relation(several)) == 0:
        leaves = read_cells(demand, rows, places, numbers)
        return finished(demand, dimensions, with_totals(demand, dimensions, leaves))
    # What adds up comes from all units; contributors are compared apart: those of one cell by
    # merging, those of several by summing again at every level.
    everybody = read_cells(demand, rows, places, numbers)
    nobody = np.zeros_like(everybody.amounts)
    additive = dataclasses.replace(
        everybody,
        added=everybody.added | {"units": np.zeros_like(everybody.added["units"])},
        amounts=nobody,
        units=np.full_like(everybody.units, -1),
    )
    roaming = engine.materialize(engine.relation(several))
    try:
        rows = engine.fetch(leaf_query(demand, settled_query(held.query, roaming.query)))
        settled = read_cells(demand, rows, places_of(demand, dimensions, rows), numbers)
        rolled = with_totals(demand, dimensions, joined(additive, contributors_only(settled)))
        found = _roaming(demand, dimensions, held.query, roaming.query, numbers)
    finally:
        engine.drop(roaming)
    merged = grouped(dimensions, joined(rolled, contributors_only(found)), demand.tops)
    return finished(demand, dimensions, merged)


def _roaming(
    demand: Demand,
    dimensions: Sequence[Dimension],
    held: exp.Query,
    roaming: exp.Query,
    numbers: Numbers,
) -> Cells:
    """Return every cell of the units that appear in several, contributions summed per unit.

    Each contribution is joined to all the cells it counts into, a cell being one number, so that
    the engine groups by two numbers and nothing else.
    """
    import pyarrow as pa

    engine, loaded = demand.engine, []
    try:
        query = sql.select(
            sql.subquery(held, "p"),
            [
                sql.column(name, "p")
                for name in [*demand.keys, "u", *(["c"] if demand.tops else [])]
            ],
        ).join(sql.subquery(roaming, "m"), on=equal("u", "p", "u", "m"))
        codes, climbs = [], []
        for place, dimension in enumerate(dimensions):
            codes.append(engine.load(codes_of(demand, dimension)))
            climbs.append(engine.load(climbs_of(dimension, radix(dimensions, place))))
        loaded = [*codes, *climbs]
        query = climbed(demand, coded(demand, dimensions, query, codes), climbs)
        units: list[exp.Expr] = [sql.alias(sql.call("count", exp.Star()), "units")]
        rows = engine.fetch(listed(demand, [sql.column("cell")], units, query, "c"))
    finally:
        for table in loaded:
            engine.drop(table)
    cells = rows.column("cell").cast(pa.int64()).to_numpy()
    places = [
        cells // radix(dimensions, place) % len(dimension.codes)
        for place, dimension in enumerate(dimensions)
    ]
    return read_cells(demand, rows, np.stack(places, axis=1), numbers)
