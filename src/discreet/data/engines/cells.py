"""Cells of a cross of hierarchical attributes, from any engine.

The engine reduces the records to the cells of single values; totals are added here, one
attribute at a time, from cells alone. Only contributors that appear in several of those cells need
more: their contributions to a total add up before they are compared, so the engine sums them
again at every level. Most data has few such units, so the long way is walked for those alone.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from discreet.data.engines import sql
from discreet.data.engines.results import code_text
from discreet.data.hierarchy import Hierarchy
from discreet.data.table import Dimension
from discreet.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.engines.base import Engine, Relation

__all__ = ["Demand", "tabulate"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True, eq=False)
class Demand:
    """What is asked for: see `Engine.cells`."""

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


@dataclasses.dataclass(frozen=True, eq=False)
class _Cells:
    """Cells as arrays: places of the codes, what adds up, and the largest contributions."""

    places: Ints
    #: Columns that add up over cells: count, and where asked for units, weight, sum, squares.
    added: dict[str, npt.NDArray[Any]]
    amounts: Floats
    units: Ints

    def take(self, index: Ints) -> _Cells:
        """Return some of the cells, possibly several times."""
        added = {name: values[index] for name, values in self.added.items()}
        return _Cells(self.places[index], added, self.amounts[index], self.units[index])


def tabulate(demand: Demand) -> pa.Table:
    """Return the cells that are asked for."""
    engine = demand.engine
    if demand.unit is None or not demand.margins:
        rows = engine.fetch(_leaves(demand, _contributions(demand)))
        numbers = _Numbers()
        dimensions, places = _dimensions(demand, rows)
        return _finish(
            demand, dimensions, _rolled(demand, dimensions, _read(demand, rows, places, numbers))
        )
    held = engine.materialize(engine.relation(_contributions(demand)))
    try:
        return _with_units(demand, held)
    finally:
        engine.drop(held)


def _with_units(demand: Demand, held: Relation) -> pa.Table:
    """Return cells with totals where contributions are summed per unit."""
    engine, numbers = demand.engine, _Numbers()
    rows = engine.fetch(_leaves(demand, held.query))
    dimensions, places = _dimensions(demand, rows)
    several = _units_of_several_cells(held.query)
    if engine.count(engine.relation(several)) == 0:
        leaves = _read(demand, rows, places, numbers)
        return _finish(demand, dimensions, _rolled(demand, dimensions, leaves))
    # What adds up comes from all units; contributors are compared apart: those of one cell by
    # merging, those of several by summing again at every level.
    everybody = _read(demand, rows, places, numbers)
    nobody = np.zeros_like(everybody.amounts)
    additive = dataclasses.replace(
        everybody,
        added=everybody.added | {"units": np.zeros_like(everybody.added["units"])},
        amounts=nobody,
        units=np.full_like(everybody.units, -1),
    )
    roaming = engine.materialize(engine.relation(several))
    try:
        rows = engine.fetch(_leaves(demand, _settled(held.query, roaming.query)))
        settled = _read(demand, rows, _places(demand, dimensions, rows), numbers)
        rolled = _rolled(demand, dimensions, _joined(additive, _contributors_only(settled)))
        found = _roaming(demand, dimensions, held.query, roaming.query, numbers)
    finally:
        engine.drop(roaming)
    merged = _grouped(dimensions, _joined(rolled, _contributors_only(found)), demand.tops)
    return _finish(demand, dimensions, merged)


# -- what the engine is asked ---------------------------------------------------------------------
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


def _contributions(demand: Demand) -> exp.Select:
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


def _leaves(demand: Demand, contributions: exp.Query) -> exp.Select:
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
    return _listed(demand, keys, added, contributions, amount)


def _listed(
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


def _units_of_several_cells(held: exp.Query) -> exp.Select:
    query = sql.select(sql.subquery(held, "p"), [sql.column("u")]).group_by(sql.column("u"))
    return query.having(
        exp.GT(this=sql.call("count", exp.Star()), expression=exp.Literal.number(1))
    )


def _settled(held: exp.Query, roaming: exp.Query) -> exp.Select:
    """Return the contributions of units that appear in one cell only."""
    query = sql.select(
        sql.subquery(held, "p"), [exp.Column(this=exp.Star(), table=exp.to_identifier("p"))]
    )
    return query.join(
        sql.subquery(roaming, "m"),
        on=exp.EQ(this=sql.column("u", "p"), expression=sql.column("u", "m")),
        join_type="left",
    ).where(exp.Is(this=sql.column("u", "m"), expression=exp.Null()))


def _roaming(
    demand: Demand,
    dimensions: Sequence[Dimension],
    held: exp.Query,
    roaming: exp.Query,
    numbers: _Numbers,
) -> _Cells:
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
        ).join(sql.subquery(roaming, "m"), on=_equal("u", "p", "u", "m"))
        codes, climbs = [], []
        for place, dimension in enumerate(dimensions):
            codes.append(engine.load(_codes(demand, dimension)))
            climbs.append(engine.load(_climbs(dimension, _radix(dimensions, place))))
        loaded = [*codes, *climbs]
        query = _climbed(demand, _coded(demand, dimensions, query, codes), climbs)
        units: list[exp.Expr] = [sql.alias(sql.call("count", exp.Star()), "units")]
        rows = engine.fetch(_listed(demand, [sql.column("cell")], units, query, "c"))
    finally:
        for table in loaded:
            engine.drop(table)
    cells = rows.column("cell").cast(pa.int64()).to_numpy()
    places = [
        cells // _radix(dimensions, place) % len(dimension.codes)
        for place, dimension in enumerate(dimensions)
    ]
    return _read(demand, rows, np.stack(places, axis=1), numbers)


def _radix(dimensions: Sequence[Dimension], place: int) -> int:
    """Return what one step in an attribute adds to the number of a cell."""
    return math.prod(len(dimension.codes) for dimension in dimensions[place + 1 :])


def _equal(mine: str, table: str, theirs: str, other: str) -> exp.EQ:
    return exp.EQ(this=sql.column(mine, table), expression=sql.column(theirs, other))


def _codes(demand: Demand, dimension: Dimension) -> pa.Table:
    """Return the values of an attribute that the data has, with the places of their codes."""
    import pyarrow as pa

    found = demand.engine.frequencies(demand.relation, [dimension.name]).column(0).drop_null()
    places = [dimension.index[code_text(value)] for value in found.to_pylist()]
    return pa.table({"value": found, "place": pa.array(places, pa.int64())})


def _climbs(dimension: Dimension, radix: int) -> pa.Table:
    """Return for each code what it adds to the numbers of the cells that it counts into."""
    import pyarrow as pa

    start, above = _ancestors(dimension)
    place = np.repeat(np.arange(len(dimension.codes), dtype=np.int64), np.diff(start))
    return pa.table({"place": place, "step": above * radix})


def _coded(
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
        on = _equal(key, "p", "value", f"h{key}")
        joined = joined.join(sql.subquery(code.query, f"h{key}"), on=on, join_type="left")
    joined.set("expressions", values)
    return joined


def _climbed(demand: Demand, query: exp.Select, climbs: Sequence[Relation]) -> exp.Select:
    """Return each unit's contribution to every cell it counts into."""
    steps: list[exp.Expr] = [sql.column("step", f"h{key}") for key in demand.keys]
    cell = functools.reduce(lambda x, y: exp.Add(this=x, expression=y), steps)
    values: list[exp.Expr] = [sql.alias(cell, "cell"), sql.column("u", "p")]
    if demand.tops:
        values.append(sql.column("c", "p"))
    joined = sql.select(sql.subquery(query, "p"), values)
    for key, climb in zip(demand.keys, climbs, strict=True):
        on = _equal(key, "p", "place", f"h{key}")
        joined = joined.join(sql.subquery(climb.query, f"h{key}"), on=on)
    keys: list[exp.Expr] = [sql.column("cell"), sql.column("u")]
    summed = [sql.alias(sql.call("sum", sql.column("c")), "c")] if demand.tops else []
    grouped = sql.select(sql.subquery(joined, "e"), [*keys, *summed])
    return grouped.group_by(*(key.copy() for key in keys))


# -- codes ------------------------------------------------------------------------------------------
def _dimensions(demand: Demand, rows: pa.Table) -> tuple[list[Dimension], Ints]:
    """Return the attributes with all their codes, and the places of the cells' codes in them."""
    dimensions = []
    for key, (name, hierarchies) in zip(demand.keys, demand.by.items(), strict=True):
        found = sorted(
            {_code(demand, name, value) for value in rows.column(key).unique().to_pylist()}
        )
        if hierarchies:
            dimension = Dimension.of(name, list(hierarchies))
            _require_covered(dimension, found)
        else:
            if demand.total in found:
                raise InputError(
                    f"column {name!r} holds the value {demand.total!r}, which stands for the total",
                    code="code-is-total",
                    hint="give the total another name",
                    column=name,
                )
            dimension = Dimension.of(name, Hierarchy.flat(found, total=demand.total))
        dimensions.append(dimension)
    return dimensions, _places(demand, dimensions, rows)


def _code(demand: Demand, name: str, value: Any) -> str:
    if value is not None:
        text = code_text(value)
        if text == "":
            raise InputError(
                f"column {name!r} holds an empty text, which cannot be a code",
                code="empty-code",
                hint="recode it, or read empty texts as missing",
                column=name,
            )
        return text
    if demand.missing is None:
        raise InputError(
            f"column {name!r} has missing values",
            code="missing-code",
            hint="pass missing='NA' to make them a code of their own",
            column=name,
        )
    return demand.missing


def _places(demand: Demand, dimensions: Sequence[Dimension], rows: pa.Table) -> Ints:
    places = np.zeros((rows.num_rows, len(dimensions)), dtype=np.int64)
    for place, (key, dimension) in enumerate(zip(demand.keys, dimensions, strict=True)):
        encoded = rows.column(key).combine_chunks().dictionary_encode(null_encoding="encode")
        index = [
            dimension.index[_code(demand, dimension.name, value)]
            for value in encoded.dictionary.to_pylist()
        ]
        places[:, place] = np.array(index, dtype=np.int64)[encoded.indices.to_numpy()]
    return places


def _require_covered(dimension: Dimension, found: Sequence[str]) -> None:
    for hierarchy in dimension.hierarchies:
        hierarchy.require_covers(found, column=dimension.name)
    inner = [code for code in found if not dimension.is_leaf[dimension.index[code]]]
    if inner:
        raise InputError(
            f"column {dimension.name!r} has {len(inner)} values that stand for others in its "
            "hierarchy, such as " + ", ".join(repr(code) for code in inner[:3]),
            code="hierarchy-inner-value",
            hint="give them a value of their own below that code",
            column=dimension.name,
            values=inner[:100],
        )


def _ancestors(dimension: Dimension) -> tuple[Ints, Ints]:
    """Return for each code all the codes it counts into, itself included, as (start, codes)."""
    lists: list[list[int]] = []
    for code in range(len(dimension.codes)):
        found = {code}
        for parents in dimension.parents:
            place = int(parents[code])
            while place >= 0:
                found.add(place)
                place = int(parents[place])
        lists.append(sorted(found))
    start = np.concatenate([[0], np.cumsum([len(found) for found in lists])]).astype(np.int64)
    return start, np.array([place for found in lists for place in found], dtype=np.int64)


# -- arithmetic on cells ------------------------------------------------------------------------------
class _Numbers:
    """Numbers for units: the same unit gets the same number, and the number says nothing else."""

    def __init__(self) -> None:
        self.of: dict[Any, int] = {}

    def __call__(self, values: pa.ChunkedArray) -> Ints:
        """Return a number for each value, in the order in which they are first met."""
        of, encoded = self.of, values.combine_chunks().dictionary_encode()
        known = [of.setdefault(unit, len(of)) for unit in encoded.dictionary.to_pylist()]
        numbers: Ints = np.array(known, dtype=np.int64)[encoded.indices.to_numpy()]
        return numbers


def _read(demand: Demand, rows: pa.Table, places: Ints, numbers: _Numbers) -> _Cells:
    """Return the engine's rows as arrays."""
    import pyarrow as pa

    # Engines give cells in any order; numbers for units follow the order of the codes.
    order = np.lexsort(places.T[::-1]) if places.shape[1] else np.arange(len(places))
    rows, places = rows.take(pa.array(order)), places[order]
    added: dict[str, npt.NDArray[Any]] = {}
    wanted = {"n": "count", "units": "units", "w": "weight", "s": "sum", "q": "sum_squares"}
    for column, name in wanted.items():
        if column in rows.column_names:
            kind = pa.int64() if name in ("count", "units") else pa.float64()
            added[name] = rows.column(column).cast(kind).fill_null(0).to_numpy()
    if "known" in rows.column_names:
        known = rows.column("known").cast(pa.int64()).to_numpy()
        if (known < added["units"]).any():
            raise InputError(
                f"column {demand.unit!r} has missing values, so contributors cannot be told apart",
                code="missing-unit",
                column=demand.unit,
            )
    for name, owner in (
        ("sum", demand.measure),
        ("sum_squares", demand.measure),
        ("weight", demand.weight),
    ):
        if name in added and not np.isfinite(added[name]).all():
            raise InputError(
                f"column {owner!r} holds infinite values or not-a-number",
                code="not-finite",
                hint="correct the data or make them missing",
                column=owner,
            )
    size = rows.num_rows
    amounts, units = np.zeros((size, demand.tops)), np.full((size, demand.tops), -1, np.int64)
    for rank in range(demand.tops):
        column = rows.column(f"c{rank + 1}").cast(pa.float64())
        there = column.is_valid().to_numpy()
        amounts[:, rank] = column.fill_null(0.0).to_numpy()
        if "u" in demand.listed:
            found = rows.column(f"u{rank + 1}").filter(pa.array(there))
            units[there, rank] = numbers(found)
        elif demand.identify:  # every record is a unit of its own and lies in one cell
            units[there, rank] = np.flatnonzero(there) * demand.tops + rank
    return _Cells(places, added, amounts, units)


def _contributors_only(cells: _Cells) -> _Cells:
    """Return the cells with what adds up set to nothing, except the number of units."""
    added = {
        name: values if name == "units" else np.zeros_like(values)
        for name, values in cells.added.items()
    }
    return dataclasses.replace(cells, added=added)


def _joined(first: _Cells, second: _Cells) -> _Cells:
    def both(name: str) -> npt.NDArray[Any]:
        there = first.added[name]
        other = second.added.get(name)
        if other is None:
            other = np.zeros(len(second.places), dtype=there.dtype)
        return np.concatenate([there, other])

    return _Cells(
        np.concatenate([first.places, second.places]),
        {name: both(name) for name in first.added},
        np.concatenate([first.amounts, second.amounts]),
        np.concatenate([first.units, second.units]),
    )


def _rolled(demand: Demand, dimensions: Sequence[Dimension], cells: _Cells) -> _Cells:
    """Return the cells with all their totals, one attribute after the other."""
    cells = _grouped(dimensions, cells, demand.tops)
    if not demand.margins:
        return cells
    for place, dimension in enumerate(dimensions):
        start, above = _ancestors(dimension)
        codes = cells.places[:, place]
        counts = (start[1:] - start[:-1])[codes]
        repeat = np.repeat(np.arange(len(codes)), counts)
        # Position within each run of repeats: 0, 1, … counts−1.
        within = np.arange(len(repeat)) - np.repeat(np.cumsum(counts) - counts, counts)
        grown = cells.take(repeat)
        grown.places[:, place] = above[start[codes][repeat] + within]
        cells = _grouped(dimensions, grown, demand.tops)
    return cells


def _grouped(dimensions: Sequence[Dimension], cells: _Cells, tops: int) -> _Cells:
    """Return one cell per combination of codes: sums added, largest contributions merged."""
    sizes = [len(dimension.codes) for dimension in dimensions]
    if float(np.prod(np.array(sizes, dtype=np.float64))) >= 2.0**62:
        raise InputError(
            "the table has more than 2**62 combinations of codes",
            code="table-too-large",
            hint="cross fewer attributes",
        )
    key = np.zeros(len(cells.places), dtype=np.int64)
    for place in range(len(sizes)):
        key += cells.places[:, place] * _radix(dimensions, place)
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    first = (
        np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])) if len(key) else order
    )
    if len(first) == len(key):
        return cells.take(order)
    added = {name: np.add.reduceat(values[order], first) for name, values in cells.added.items()}
    group = np.empty(len(key), dtype=np.int64)
    group[order] = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(key))))
    amounts, units = _merged(cells, group, len(first), tops)
    return _Cells(cells.places[order[first]], added, amounts, units)


def _merged(cells: _Cells, group: Ints, size: int, tops: int) -> tuple[Floats, Ints]:
    """Return the largest of the largest contributions in each group."""
    amounts, units = np.zeros((size, tops)), np.full((size, tops), -1, dtype=np.int64)
    if tops == 0:
        return amounts, units
    amount, unit = cells.amounts.ravel(), cells.units.ravel()
    owner = np.repeat(group, tops)
    there = np.flatnonzero((amount != 0) | (unit >= 0))
    # Ties go to the positive amount, then to the unit's number, so that a run repeats itself.
    held = amount[there]
    order = there[np.lexsort((unit[there], -held, -np.abs(held), owner[there]))]
    owner = owner[order]
    begins = (
        np.flatnonzero(np.concatenate([[True], owner[1:] != owner[:-1]])) if len(owner) else order
    )
    lengths = np.diff(np.append(begins, len(owner)))
    rank = np.arange(len(owner)) - np.repeat(begins, lengths)
    kept = rank < tops
    amounts[owner[kept], rank[kept]] = amount[order[kept]]
    units[owner[kept], rank[kept]] = unit[order[kept]]
    return amounts, units


def _finish(demand: Demand, dimensions: Sequence[Dimension], cells: _Cells) -> pa.Table:
    """Return the cells as an Arrow table, in the order of the codes."""
    import pyarrow as pa

    columns: dict[str, Any] = {}
    for place, dimension in enumerate(dimensions):
        codes = pa.DictionaryArray.from_arrays(
            pa.array(cells.places[:, place], pa.int32()), pa.array(dimension.codes, pa.string())
        )
        columns[dimension.name] = codes.cast(pa.string())
    added = cells.added
    if demand.measure is None:
        added = {name: v for name, v in added.items() if name in ("count", "units", "weight")}
    arrays = [*columns.values(), *(pa.array(values) for values in added.values())]
    names = [*columns, *added]
    for rank in range(demand.tops):
        arrays.append(pa.array(cells.amounts[:, rank]))
        names.append(f"top_{rank + 1}")
        if demand.identify:
            arrays.append(pa.array(cells.units[:, rank]))
            names.append(f"unit_{rank + 1}")
    return pa.Table.from_arrays(arrays, names=names)
