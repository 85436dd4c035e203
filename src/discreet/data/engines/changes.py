"""Changes to rows by join: recodes, masks and samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from sqlglot import exp

from discreet.data.engines import sql
from discreet.data.engines.base import ROW, Relation
from discreet.data.engines.results import code_text
from discreet.errors import InputError
from discreet.randomness import Randomness

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["attach", "joined", "recode", "sample"]


def recode(relation: Relation, maps: Mapping[str, pa.Table]) -> Relation:
    """Replace values by join: each map has the columns `from` and `to`.

    A value that is not in the map stays as it is, as the type of `to`; a null in `from` stands for
    missing values.
    """
    import pyarrow as pa

    engine = relation.engine
    relation.require(*maps)
    query = exp.Select(from_=exp.From(this=sql.subquery(relation.query, "t")))
    fields = {field.name: field for field in relation.schema}
    replaced: dict[str, exp.Expr] = {}
    for place, (name, given) in enumerate(maps.items()):
        pairs, for_missing = _pairs(name, given, fields[name].type)
        if _spelt_differently(fields[name].type, pairs.schema.field("to").type):
            pairs = _with_the_rest(relation, name, pairs)
        map_name = f"m{place}"
        loaded = engine.load(pairs)
        same = exp.EQ(this=sql.column(name, "t"), expression=sql.column("from", map_name))
        query = query.join(sql.subquery(loaded.query, map_name), on=same, join_type="left")
        kept = sql.column(name, "t")
        kind = pairs.schema.field("to").type
        stays: exp.Expr = kept if kind == fields[name].type else exp.Cast(this=kept, to=_type(kind))
        cases = exp.Case().when(sql.column("hit", map_name), sql.column("to", map_name))
        if for_missing is not None:
            stands = exp.Cast(this=sql.literal(for_missing[0].as_py()), to=_type(kind))
            cases = cases.when(exp.Is(this=kept.copy(), expression=exp.Null()), stands)
        replaced[name] = sql.alias(cases.else_(stays), name)
        fields[name] = pa.field(name, kind)
    values = [replaced.get(name, sql.column(name, "t")) for name in relation.columns]
    query.set("expressions", values)
    return Relation(engine, query, pa.schema(list(fields.values())), relation.rows, relation.most)


def _pairs(
    name: str, given: pa.Table, kind: pa.DataType
) -> tuple[pa.Table, pa.ChunkedArray | None]:
    """Return a map ready to be joined, and what stands for missing values, if the map says so."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if given.column_names != ["from", "to"]:
        raise InputError(
            f"the map of column {name!r} has the columns {', '.join(given.column_names)}",
            code="bad-recode",
            hint="give it the columns from and to",
            column=name,
        )
    source, target = given.column("from"), given.column("to")
    if pa.types.is_dictionary(target.type):
        target = target.cast(target.type.value_type)
    try:
        source = source.cast(pa.string() if pa.types.is_dictionary(kind) else kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise InputError(
            f"the map of column {name!r} has values of another type than the column ({kind})",
            code="bad-recode",
            column=name,
        ) from None
    if pc.count_distinct(source, mode="all").as_py() != len(source):
        raise InputError(
            f"the map of column {name!r} has a value twice", code="bad-recode", column=name
        )
    missing = source.is_null()
    for_missing = target.filter(missing) if pc.any(missing).as_py() else None
    pairs = pa.table({"from": source, "to": target}).filter(pc.invert(missing))
    return pairs.append_column("hit", pa.array([True] * len(pairs), pa.bool_())), for_missing


def _spelt_differently(kind: pa.DataType, target: pa.DataType) -> bool:
    """Whether engines differ in how they write such values as text."""
    import pyarrow as pa

    return bool(
        pa.types.is_string(target)
        and (
            pa.types.is_floating(kind)
            or pa.types.is_decimal(kind)
            or pa.types.is_boolean(kind)
            or pa.types.is_timestamp(kind)
        )
    )


def _with_the_rest(relation: Relation, name: str, pairs: pa.Table) -> pa.Table:
    """Return a map that also names the values that stay, by the codes that tables call them by."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = relation.engine.frequencies(relation, [name]).column(0).drop_null()
    found = found.cast(pairs.schema.field("from").type)
    rest = found.filter(pc.invert(pc.is_in(found, value_set=pairs.column("from"))))
    codes = pa.array([code_text(value) for value in rest.to_pylist()], pa.string())
    added = pa.table({"from": rest, "to": codes, "hit": pa.array([True] * len(rest), pa.bool_())})
    return pa.concat_tables([pairs, added.cast(pairs.schema)])


def _type(kind: pa.DataType) -> exp.DataType:
    import pyarrow as pa

    checks = {
        pa.types.is_boolean: "boolean",
        pa.types.is_integer: "bigint",
        pa.types.is_floating: "double",
        pa.types.is_decimal: "double",
        pa.types.is_timestamp: "timestamp",
        pa.types.is_date: "date",
    }
    for check, word in checks.items():
        if check(kind):
            return exp.DataType.build(word)
    return exp.DataType.build("text")


def attach(relation: Relation, rows: pa.Table) -> Relation:
    """Replace or add columns by join on `__row`."""
    import pyarrow as pa

    engine = relation.engine
    relation.require(ROW)
    if ROW not in rows.column_names:
        raise InputError(f"the columns to attach have no {ROW}", code="bad-attach")
    rows = rows.set_column(rows.column_names.index(ROW), ROW, rows.column(ROW).cast(pa.int64()))
    numbers = rows.column(ROW)
    if numbers.null_count or len(np.unique(numbers.to_numpy())) != len(numbers):
        raise InputError(
            f"{ROW} of the columns to attach is missing or repeated in places",
            code="bad-attach",
            hint="give each row at most once",
        )
    return joined(relation, engine.load(rows))


def joined(relation: Relation, found: Relation) -> Relation:
    """Replace or add columns by those of another relation with the same numbers `__row`.

    A row that the other relation lacks has missing values there.
    """
    import pyarrow as pa

    relation.require(ROW)
    found.require(ROW)
    new = [name for name in found.columns if name != ROW]
    order = [*relation.columns, *(name for name in new if name not in relation.columns)]
    values = [sql.column(name, "a" if name in new else "t") for name in order]
    same = exp.EQ(this=sql.column(ROW, "t"), expression=sql.column(ROW, "a"))
    query = sql.select(sql.subquery(relation.query, "t"), values).join(
        sql.subquery(found.query, "a"), on=same, join_type="left"
    )
    fields = [(found if name in new else relation).schema.field(name) for name in order]
    return Relation(relation.engine, query, pa.schema(fields), relation.rows, relation.most)


def sample(
    relation: Relation, *, size: int, rng: Randomness, strata: Sequence[str] = ()
) -> Relation:
    """Return a simple or (proportionally) stratified random sample without replacement."""
    import pyarrow as pa

    engine = relation.engine
    relation.require(*strata)
    rows = engine.number(relation)
    if not strata:
        total = engine.count(rows)
        _require_size(size, total)
        picked = pa.table({ROW: np.sort(rng.sample(total, size))})
        return engine.project(_matching(rows, picked, {ROW: ROW}), relation.columns)
    names = list(rows.columns)
    counted = engine.relation(
        sql.select(
            sql.subquery(rows.query, "t"),
            [
                *map(sql.column, names),
                sql.alias(_stratum(strata), "__stratum"),
            ],
        )
    )
    found = engine.frequencies(counted, ["__stratum"]).sort_by("__stratum")
    sizes = found.column("count").to_numpy()
    _require_size(size, int(sizes.sum()))
    drawn = _proportional(sizes, size, rng)
    picks = [np.sort(rng.sample(int(n), int(k))) for n, k in zip(sizes, drawn, strict=True)]
    chosen = pa.table(
        {
            "__stratum": np.repeat(found.column("__stratum").to_numpy(), drawn).astype(np.int64),
            "__place": np.concatenate(picks) if picks else np.zeros(0, np.int64),
        }
    )
    within = exp.Sub(
        this=exp.Window(
            this=sql.call("row_number"),
            partition_by=[sql.column("__stratum")],
            order=exp.Order(expressions=[exp.Ordered(this=sql.column(ROW), nulls_first=False)]),
        ),
        expression=exp.Literal.number(1),
    )
    placed = sql.select(
        sql.subquery(counted.query, "t"),
        [*map(sql.column, counted.columns), sql.alias(within, "__place")],
    )
    keys = {"__stratum": "__stratum", "__place": "__place"}
    return engine.project(_matching(engine.relation(placed), chosen, keys), relation.columns)


def _require_size(size: int, total: int) -> None:
    if not 0 <= size <= total:
        raise InputError(
            f"cannot draw {size} rows from {total}",
            code="sample-too-large",
            hint=f"ask for at most {total}",
        )


def _matching(rows: Relation, chosen: pa.Table, keys: Mapping[str, str]) -> Relation:
    """Return the rows whose keys are among the chosen ones."""
    loaded = rows.engine.load(chosen)
    same = [
        exp.EQ(this=sql.column(mine, "s"), expression=sql.column(theirs, "c"))
        for mine, theirs in keys.items()
    ]
    kept = [sql.column(name, "s") for name in rows.columns]
    query = sql.select(sql.subquery(rows.query, "s"), kept).join(
        sql.subquery(loaded.query, "c"), on=exp.and_(*same)
    )
    return Relation(rows.engine, query, rows.schema)


def _stratum(strata: Sequence[str]) -> exp.Expr:
    order = [exp.Ordered(this=sql.column(name), nulls_first=False) for name in strata]
    return sql.bigint(exp.Window(this=sql.call("dense_rank"), order=exp.Order(expressions=order)))


def _proportional(sizes: np.ndarray, size: int, rng: Randomness) -> np.ndarray:
    """Return how many rows each stratum gives: its share, the rest by largest remainder."""
    total = int(sizes.sum())
    if total == 0:
        return np.zeros(len(sizes), dtype=np.int64)
    exact = [int(n) * size for n in sizes]
    drawn = np.array([share // total for share in exact], dtype=np.int64)
    rest = np.array([share % total for share in exact], dtype=np.float64)
    # Equal remainders are settled by lot, not by the order of the strata.
    order = np.lexsort((rng.permutation(len(sizes)), -rest))
    drawn[order[: size - int(drawn.sum())]] += 1
    return drawn
