"""Profiles: the public side of the records, on which query sets are decided.

A question may name only public columns in its conditions, so records with the same public values
are never told apart. Their combinations are counted once and kept in memory; which of them a
question holds is decided here, without touching a confidential value.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from discreet.data.engines.base import Engine, Relation, connect
from discreet.data.schema import Role
from discreet.data.sql.expression import operands
from discreet.data.sql.query import Query, from_clause, raw_query, spelled
from discreet.queries.guards._base import Protected

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Profiles"]

_ID, _COUNT = "__profile", "__count"
#: Memory for what single conditions hold.
REMEMBERED_BYTES = 100_000_000


@dataclasses.dataclass(eq=False)
class Profiles:
    """Distinct combinations of public values, with their numbers of records."""

    engine: Engine
    relation: Relation
    counts: npt.NDArray[np.int64]
    #: Per column that has nulls: which profiles have a value.
    known: dict[str, npt.NDArray[np.bool_]]
    public: frozenset[str]
    _remembered: dict[str, npt.NDArray[np.uint8]] = dataclasses.field(default_factory=dict)
    _numbers: dict[str, list[float]] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(cls, data: Protected) -> Profiles:
        """Count the profiles where the data lives, and keep them here."""
        import pyarrow as pa

        catalog = data.catalog
        hidden = data.confidential | catalog.with_role(Role.IDENTIFIER) | {catalog.unit}
        public = [name for name in data.relation.columns if name not in hidden]
        nullable = _nullable(data)
        named: list[Any] = [exp.column(name, quoted=True) for name in public]
        missing = [
            exp.Is(this=exp.column(name, quoted=True), expression=exp.Null()) for name in nullable
        ]
        flags: list[Any] = [
            exp.alias_(tree, f"__null_{place}") for place, tree in enumerate(missing)
        ]
        count = exp.alias_(exp.cast(exp.Count(this=exp.Star()), "bigint"), _COUNT)
        query = exp.select(*named, *flags, count).from_(from_clause(data.relation.query, "t"))
        if named or flags:
            query = query.group_by(*(n.copy() for n in named), *(m.copy() for m in missing))
        rows = data.engine.fetch(query)
        counts = rows.column(_COUNT).to_numpy().astype(np.int64)
        known = {
            name: ~rows.column(f"__null_{place}").to_numpy(zero_copy_only=False).astype(bool)
            for place, name in enumerate(nullable)
        }
        table = rows.select(public).append_column(_ID, pa.array(np.arange(counts.size, dtype="i4")))
        engine = connect("duckdb://")
        relation = engine.materialize(engine.load(table))
        return cls(engine, relation, counts, known, frozenset(public))

    def inside(self, query: Query) -> npt.NDArray[np.int64]:
        """Return the profiles a question without keys holds.

        A conjunction is true where each of its conditions is; conditions come back again and
        again, so what each holds is remembered as one bit per profile.
        """
        if query.predicate is None:
            return np.arange(self.counts.size)
        conditions = (
            operands(query.predicate) if isinstance(query.predicate, exp.And) else [query.predicate]
        )
        bits = self._bits(conditions[0], query)
        for condition in conditions[1:]:
            bits = bits & self._bits(condition, query)
        return np.flatnonzero(np.unpackbits(bits, count=self.counts.size))

    def _bits(self, condition: exp.Expression, query: Query) -> npt.NDArray[np.uint8]:
        text = spelled(condition)
        found = self._remembered.pop(text, None)
        if found is None:
            alone = dataclasses.replace(query, predicate=condition)
            tree = raw_query(
                alone, self.relation.query, {_ID: exp.column(_ID, quoted=True)}, keys=False
            )
            held = np.zeros(self.counts.size, bool)
            held[self.engine.fetch(tree).column(0).to_numpy()] = True
            found = np.packbits(held)
            while len(self._remembered) * found.nbytes > REMEMBERED_BYTES:
                self._remembered.pop(next(iter(self._remembered)))
        self._remembered[text] = found  # last used, last dropped
        return found

    def groups(self, query: Query) -> tuple[pa.Table, list[npt.NDArray[np.int64]]]:
        """Return the keys of each group, and the profiles in it."""
        collected = exp.ArrayAgg(this=exp.column(_ID, quoted=True))
        rows = self.engine.fetch(raw_query(query, self.relation.query, {"ids": collected}))
        ids = rows.column("ids").combine_chunks()
        flat = ids.flatten().to_numpy(zero_copy_only=False).astype(np.int64)
        ends = np.cumsum([0, *ids.value_lengths().to_numpy(zero_copy_only=False)])
        parts = [flat[a:b] for a, b in itertools.pairwise(ends)]
        return rows.drop_columns(["ids"]), parts

    def numbers(self, column: str) -> list[float]:
        """Return the numbers that occur in a public column, in order; none where it has others."""
        if column not in self._numbers:
            distinct = exp.select(exp.column(column, quoted=True)).distinct()
            select = distinct.from_(from_clause(self.relation.query, "t"))
            values = self.engine.fetch(select).column(0).to_pylist()
            known = [v for v in values if v is not None and v == v]
            plain = all(isinstance(v, int | float) and not isinstance(v, bool) for v in known)
            self._numbers[column] = sorted(float(v) for v in known) if plain else []
        return self._numbers[column]

    def rows(self) -> dict[str, npt.NDArray[Any]]:
        """Return the public values of each profile, by column. Any: of any type."""
        rows = self.engine.fetch(self.relation)
        order = np.argsort(rows.column(_ID).to_numpy())
        return {
            name: np.array(rows.column(name).to_pylist(), object)[order]
            for name in rows.column_names
            if name != _ID
        }

    def records(self, inside: npt.NDArray[np.int64]) -> int:
        """Return the number of records in some profiles."""
        return int(self.counts[inside].sum())

    def close(self) -> None:
        """Let go of the memory."""
        self.engine.close()


def _nullable(data: Protected) -> list[str]:
    """Return the columns that have nulls and can be counted or summed."""
    unit = data.catalog.unit
    names = [n for n in data.relation.columns if n != unit and data.catalog[n].is_number]
    confidential = [n for n in data.confidential if n not in names and n != unit]
    names += confidential
    if not names:
        return []
    counts = [
        exp.alias_(exp.Count(this=exp.column(name, quoted=True)), f"n{place}")
        for place, name in enumerate(names)
    ]
    select = exp.select(*counts).from_(from_clause(data.relation.query, "t"))
    row = data.engine.fetch(select).to_pylist()[0]
    return [name for place, name in enumerate(names) if row[f"n{place}"] < data.count]
