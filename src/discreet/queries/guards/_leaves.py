"""Cells added up by leaf: what sums need of records that no question tells apart, taken once.

Conditions and keys on public columns hold all records of a leaf with the same public values, or
none. A sum is then added up over these, which are far fewer than the records.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from discreet.data.engines.base import Relation
from discreet.data.sql.query import Key, Measure, Query, from_clause, raw_query
from discreet.data.sql.total import DOUBLE

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["added_by_leaf", "by_leaf", "is_plain"]

#: Fewer records are read as fast as they are.
_WORTH = 1000
#: Share of the records beyond which adding up spares too little.
_FEW = 0.5
LEAF = "__leaf"
_SUMS = ("__lower", "__upper", "__known", "__all")


def added_by_leaf(rows: Relation, public: Sequence[str], count: int) -> Relation | None:
    """Return cells added up by public values and leaf, kept in the engine; None if it spares little."""
    import pyarrow as pa

    if count < _WORTH:
        return None
    keys = [exp.column(name, quoted=True) for name in (*public, LEAF)]
    lower, upper = (exp.column(name, quoted=True) for name in _SUMS[:2])
    sums = {
        "__lower": exp.cast(exp.Sum(this=lower), DOUBLE),
        "__upper": exp.cast(exp.Sum(this=upper), DOUBLE),
        "__known": exp.cast(exp.Count(this=lower.copy()), "bigint"),
        "__all": exp.cast(exp.Count(this=exp.Star()), "bigint"),
    }
    named = [exp.alias_(tree, name, quoted=True) for name, tree in sums.items()]
    query = exp.select(*keys, *named).from_(from_clause(rows.query, "t"))
    query = query.group_by(*(key.copy() for key in keys))
    kinds = (pa.float64(), pa.float64(), pa.int64(), pa.int64())
    fields = [rows.schema.field(name) for name in (*public, LEAF)]
    fields += [pa.field(name, kind) for name, kind in zip(_SUMS, kinds, strict=True)]
    made = rows.engine.materialize(Relation(rows.engine, query, pa.schema(fields)))
    star = exp.alias_(exp.cast(exp.Count(this=exp.Star()), "bigint"), "n")
    number = rows.engine.fetch(exp.select(star).from_(from_clause(made.query, "t")))
    if number.column(0)[0].as_py() > _FEW * count:
        rows.engine.drop(made)
        return None
    return made


def is_plain(measure: Measure, secret: str) -> bool:
    """Whether a measure needs the sums of cells, or numbers of records, alone."""
    if measure.function == "count":
        return measure.argument is None or measure.column == secret
    return measure.function in ("sum", "avg") and measure.column == secret


def by_leaf(query: Query, rows: Relation, *, added: bool) -> pa.Table:
    """Return sums of cells with the keys of their group and, as the last key, their leaf.

    Of single cells (`added` is False) one sum of each group and leaf; of those added up before, all
    that the question holds.
    """
    leaf = Key(exp.column(LEAF, quoted=True), "number", frozenset(), "leaf")
    asked = dataclasses.replace(query, keys=(*query.keys, leaf))
    lower, upper, known, everybody = (exp.column(name, quoted=True) for name in _SUMS)
    ends: dict[str, exp.Expression] = {"low": lower, "high": upper, "n": known, "all": everybody}
    if not added:
        ends = {
            "low": exp.Sum(this=lower),
            "high": exp.Sum(this=upper),
            "n": exp.Count(this=lower.copy()),
            "all": exp.Count(this=exp.Star()),
        }
    return rows.engine.fetch(raw_query(asked, rows.query, ends, grouped=not added))
