"""Exact values of groups: added up from profiles of records, or asked of the engine."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlglot import exp

from discreet.data.sql.query import Measure, Query
from discreet.queries.guards._base import Protected, addable, aggregate, whole_sum
from discreet.queries.guards._profiles import Profiles

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.queries.guards._grouping import Parts

__all__ = ["ExactValues", "typed"]


@dataclasses.dataclass(frozen=True, eq=False)
class ExactValues:
    """Computes the measures of all groups of a question."""

    _data: Protected
    _profiles: Profiles

    def of(self, query: Query, keys: pa.Table, parts: Parts) -> pa.Table:
        """Return the values of all groups, from the sums of their profiles where there are some."""
        import pyarrow as pa

        found = [self._added(measure, parts) for measure in query.measures]
        if any(column is None for column in found):
            engine = self._data.engine.name
            columns = {f"m{n}": typed(m, engine) for n, m in enumerate(query.measures)}
            return _matched(self._data.fetch(query, columns), keys)
        named = {name: keys.column(name) for name in keys.column_names}
        return pa.table(named | {f"m{number}": column for number, column in enumerate(found)})

    def _added(self, measure: Measure, parts: Parts) -> Any:
        """Return a measure of each group as an Arrow array, or None if only the engine can."""
        import pyarrow as pa

        from discreet.queries.guards._grouping import summed

        profiles, column = self._profiles, measure.column
        counts = profiles.counts
        if column in profiles.known and measure.function != "units":
            counts = np.where(profiles.known[column], counts, 0)
        number = summed(counts, parts[0], parts[1])
        if measure.function in ("count", "units"):
            return pa.array(number)
        assert column is not None
        whole = self._data.catalog[column].kind == "integer"
        if not whole and not pa.types.is_floating(self._data.relation.schema.field(column).type):
            return None  # decimals are added up as they are

        def tree() -> exp.Expression:
            argument = exp.column(column, quoted=True)
            engine = self._data.engine.name
            total = (
                whole_sum(argument, engine) if whole else exp.Sum(this=addable(argument, engine))
            )
            known = exp.Coalesce(this=total, expressions=[exp.Literal.number(0)])
            return exp.cast(known, "bigint" if whole else "double")

        sums = profiles.sums(column, tree, parts)
        if sums is None:
            return None
        if measure.function == "avg":
            with np.errstate(divide="ignore", invalid="ignore"):
                sums = sums / number
        return pa.array(sums, mask=number == 0)


def typed(measure: Measure, engine: str) -> exp.Expression:
    """Return the aggregate of a measure in the type in which it is told."""
    if measure.function == "sum" and measure.kind == "integer":
        return whole_sum(measure.total(), engine)
    if measure.function in ("sum", "avg"):
        added = exp.Sum if measure.function == "sum" else exp.Avg
        return exp.cast(added(this=addable(measure.total(), engine)), "double")
    tree = aggregate(measure)
    if measure.kind == "integer":
        return exp.cast(tree, "bigint")
    return exp.cast(tree, "double")


def _matched(rows: pa.Table, keys: pa.Table) -> pa.Table:
    """Return the rows of groups in the order of their keys here."""
    import pyarrow as pa

    names = keys.column_names
    if not names:
        return rows
    place = {tuple(row.values()): n for n, row in enumerate(rows.select(names).to_pylist())}
    wanted = [place[tuple(row.values())] for row in keys.to_pylist()]
    return rows.take(pa.array(wanted, type=pa.int64()))
