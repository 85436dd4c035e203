"""Cells added up by leaf: what sums need of records that no question tells apart, taken once.

Conditions and keys on public columns hold all records of a leaf with the same public values, or
none. A sum is then added up over these, which are far fewer than the records.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from discreet.data.engines.base import Relation
from discreet.data.sql.query import Catalog, Key, Measure, Query, from_clause, raw_query
from discreet.data.sql.total import DOUBLE
from discreet.queries.guards._cells import Tree
from discreet.queries.guards._profiles import MOST_PROFILES, Profiles

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["LeafSums", "added_by_leaf", "by_leaf", "is_plain"]

#: Fewer records are read as fast as they are.
_WORTH = 1000
#: Share of the records beyond which adding up spares too little.
_FEW = 0.5
LEAF = "__leaf"

Floats = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True, eq=False)
class Told:
    """What is told of each group of a question."""

    keys: pa.Table
    #: The range of the sum; ends of no meaning where nobody has a value.
    low: Floats
    high: Floats
    #: Records that have a value, and all of them.
    known: Ids
    everybody: Ids


@dataclasses.dataclass(frozen=True, eq=False)
class LeafSums:
    """Cells added up by leaf and public values, in memory and in the order of leaves."""

    profiles: Profiles
    #: The leaf of each sum, −1 for records without a value.
    leaf: Ids
    low: Floats
    high: Floats
    #: Records that have a value, and all of them.
    known: Ids
    everybody: Ids

    def told(self, query: Query, tree: Tree) -> Told:
        """Return the range of each group's sum, and how many records it has."""
        keys, places, group, groups = self.profiles.marking(query)
        low, high = tree.narrowed(places, group, groups, self.leaf, self.low, self.high)
        known, everybody = (
            np.bincount(group, weights=counts[places], minlength=groups).astype(np.int64)
            for counts in (self.known, self.everybody)
        )
        return Told(keys, low, high, known, everybody)


def added_by_leaf(
    rows: Relation, public: Sequence[str], count: int, catalog: Catalog
) -> LeafSums | None:
    """Return cells added up by public values and leaf; None if it spares little."""
    if count < _WORTH:
        return None
    keys = [exp.column(name, quoted=True) for name in (*public, LEAF)]
    distinct = exp.select(*keys).distinct().from_(from_clause(rows.query, "t"))
    star = exp.alias_(exp.cast(exp.Count(this=exp.Star()), "bigint"), "n")
    number = rows.engine.fetch(exp.select(star).from_(from_clause(distinct, "d")))
    if number.column(0)[0].as_py() > min(_FEW * count, MOST_PROFILES):
        return None
    lower, upper = (exp.column(name, quoted=True) for name in ("__lower", "__upper"))
    sums = {
        "__low": exp.cast(exp.Sum(this=lower), DOUBLE),
        "__high": exp.cast(exp.Sum(this=upper), DOUBLE),
        "__known": exp.cast(exp.Count(this=lower.copy()), "bigint"),
        "__all": exp.cast(exp.Count(this=exp.Star()), "bigint"),
    }
    named = [exp.alias_(tree, name, quoted=True) for name, tree in sums.items()]
    query = exp.select(*(key.copy() for key in keys), *named).from_(from_clause(rows.query, "t"))
    table = rows.engine.fetch(query.group_by(*(key.copy() for key in keys)))
    table = table.sort_by(LEAF)
    whole = [table.column(name).fill_null(-1).to_numpy() for name in (LEAF, "__known", "__all")]
    ends = [table.column(name).fill_null(0.0).to_numpy() for name in ("__low", "__high")]
    leaf, known, everybody = (np.asarray(column, np.int64) for column in whole)
    low, high = (np.asarray(column, np.float64) for column in ends)
    shown = table.select(list(public))
    profiles = Profiles.held(shown, everybody, {}, catalog, [], rows)
    return LeafSums(profiles, leaf, low, high, known, everybody)


def is_plain(measure: Measure, secret: str) -> bool:
    """Whether a measure needs the sums of cells, or numbers of records, alone."""
    if measure.function == "count":
        return measure.argument is None or measure.column == secret
    return measure.function in ("sum", "avg") and measure.column == secret


def by_leaf(query: Query, rows: Relation) -> pa.Table:
    """Return the sum of cells of each group and leaf; the leaf is the last key."""
    leaf = Key(exp.column(LEAF, quoted=True), "number", frozenset(), "leaf")
    asked = dataclasses.replace(query, keys=(*query.keys, leaf))
    lower, upper = (exp.column(name, quoted=True) for name in ("__lower", "__upper"))
    ends: dict[str, exp.Expression] = {
        "low": exp.Sum(this=lower),
        "high": exp.Sum(this=upper),
        "n": exp.Count(this=lower.copy()),
    }
    return rows.engine.fetch(raw_query(asked, rows.query, ends))
