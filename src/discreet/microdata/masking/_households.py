"""Record swapping of records that stay in their engine: households are summed up and moved there.

A household comes out as a few numbers: its first record, its size, keyed marks of where it lives and of
what its members are like, and whether it stands out. Pairs of households go in.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from discreet.data.engines import sql
from discreet.data.engines.base import ROW, Relation
from discreet.data.engines.changes import joined
from discreet.data.snapshot import written_key

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.randomness import Randomness

__all__ = ["Households", "households", "moved"]

Places = npt.NDArray[np.int64]

#: Hexadecimal digits of a mark: sums of them over a household stay within 64 bits.
_DIGITS = 10


@dataclasses.dataclass(frozen=True, eq=False)
class Households:
    """Households in the order of their first records."""

    #: The number of the first record of each.
    first: Places
    #: Equal for households of the same size and with the same matching values.
    profile: Places
    #: For each level of regions, equal for households that live in the same one.
    levels: tuple[Places, ...]
    #: For each level, whether the household stands out there.
    at_risk: tuple[npt.NDArray[np.bool_], ...]


def households(
    relation: Relation,
    regions: Sequence[str],
    household: str,
    *,
    keys: Sequence[str],
    match: Sequence[str],
    k: int,
    rng: Randomness,
) -> Households:
    """Return the households of a numbered relation, as numbers."""
    engine = relation.engine
    depths = range(len(regions))
    # Two sums of marks tell lists of members apart: 80 bits, keyed anew each time.
    values = [sql.alias(sql.column(household), "__home"), sql.column(ROW)]
    values += [
        sql.alias(_mark(relation, match, rng), f"__like{place}") for place in range(2 * bool(match))
    ]
    for depth in depths:
        values.append(sql.alias(_mark(relation, regions[: depth + 1], rng), f"__level{depth}"))
        if keys:
            alike = [sql.column(name) for name in (*regions[: depth + 1], *keys)]
            count = exp.Window(this=exp.Count(this=exp.Star()), partition_by=alike)
            values.append(sql.alias(count, f"__alike{depth}"))
    marked = engine.materialize(
        engine.relation(sql.select(sql.subquery(relation.query, "t"), values))
    )
    summed = [
        sql.alias(exp.Min(this=sql.column(ROW)), ROW),
        sql.alias(sql.bigint(exp.Count(this=exp.Star())), "__size"),
        *(
            sql.alias(sql.bigint(exp.Sum(this=sql.column(f"__like{place}"))), f"__like{place}")
            for place in range(2 * bool(match))
        ),
        *(
            sql.alias(sql.bigint(exp.Min(this=sql.column(f"__alike{depth}"))), f"__alike{depth}")
            for depth in (depths if keys else ())
        ),
    ]  # fmt: skip
    homes = engine.relation(
        sql.select(sql.subquery(marked.query, "t"), summed).group_by(sql.column("__home"))
    )
    where = engine.project(marked, [ROW, *(f"__level{depth}" for depth in depths)])
    found = engine.fetch(joined(homes, where)).sort_by(ROW)
    engine.drop(marked)
    return _numbered(found, len(regions), k)


def _numbered(found: pa.Table, depths: int, k: int) -> Households:
    def column(name: str) -> Places:
        return np.asarray(found.column(name).to_numpy(), dtype=np.int64)

    names = found.column_names
    profile = column("__size")
    for name in ("__like0", "__like1"):
        if name in names:
            own = np.unique(column(name), return_inverse=True)[1].ravel()
            profile = profile * (int(own.max(initial=0)) + 1) + own
            profile = np.unique(profile, return_inverse=True)[1].ravel()
    levels = tuple(
        np.unique(column(f"__level{depth}"), return_inverse=True)[1].ravel()
        for depth in range(depths)
    )
    risk = tuple(
        column(f"__alike{depth}") < k
        if f"__alike{depth}" in names
        else np.zeros(found.num_rows, bool)
        for depth in range(depths)
    )
    return Households(column(ROW), profile, levels, risk)


def moved(relation: Relation, regions: Sequence[str], household: str, pairs: pa.Table) -> Relation:
    """Return rows with the regions of their household, or of the one it changed places with.

    `pairs` has the first record of each household that moved, `one`, and of its partner, `two`.
    """
    engine = relation.engine
    loaded = engine.load(pairs)
    first = exp.Window(this=exp.Min(this=sql.column(ROW)), partition_by=[sql.column(household)])
    homes = sql.select(
        sql.subquery(relation.query, "t"), [sql.column(ROW), sql.alias(first, "__first")]
    )
    source = exp.Coalesce(this=sql.column("two", "p"), expressions=[sql.column("__first", "h")])
    placed = sql.select(
        sql.subquery(homes, "h"), [sql.column(ROW, "h"), sql.alias(source, "__source")]
    ).join(
        sql.subquery(loaded.query, "p"),
        on=exp.EQ(this=sql.column("__first", "h"), expression=sql.column("one", "p")),
        join_type="left",
    )
    there = engine.project(relation, [*regions, ROW])
    taken = sql.select(
        sql.subquery(placed, "s"),
        [sql.column(ROW, "s"), *(sql.column(name, "r") for name in regions)],
    ).join(
        sql.subquery(there.query, "r"),
        on=exp.EQ(this=sql.column("__source", "s"), expression=sql.column(ROW, "r")),
    )
    return joined(relation, engine.materialize(engine.relation(taken)))


def _mark(relation: Relation, names: Sequence[str], rng: Randomness) -> exp.Expr:
    """Return a keyed number that is equal for equal values of some columns."""
    engine = relation.engine
    digest = engine.digest(written_key(relation, names, start=rng.bytes(32).hex()))
    digits = sql.call("substr", digest, exp.Literal.number(1), exp.Literal.number(_DIGITS))
    padded = exp.DPipe(this=sql.text("0" * 5), expression=digits)
    return sql.bigint(engine.from_hexadecimal(padded))
