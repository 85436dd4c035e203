"""Sums of hidden vectors, added up from profiles instead of read from all records."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlglot import exp

from discreet.data.sql.query import Query
from discreet.queries.guards._base import aggregate

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.engines.base import Relation
    from discreet.queries.guards._grouping import Parts
    from discreet.queries.guards._profiles import Profiles

__all__ = ["Sums", "are_additive"]

#: Sums of products by name, made when they are needed.
Moments = Callable[[], Mapping[str, exp.Expression]]
_ADDITIVE = ("count", "sum", "avg", "var_samp", "var_pop", "stddev_samp", "stddev_pop")


def are_additive(query: Query, secret: str | None) -> bool:
    """Whether all measures are made of sums and counts of one column, or of records."""
    return all(
        (measure.column == secret and measure.function in _ADDITIVE)
        or (measure.function == "count" and measure.argument is None)
        for measure in query.measures
    )


@dataclasses.dataclass(frozen=True, eq=False)
class Sums:
    """The sums of one question's groups."""

    profiles: Profiles
    keys: pa.Table
    parts: Parts
    secret: str | None
    #: The records with their hidden vectors.
    rows: Relation

    def total(self, name: str, tree: Callable[[], exp.Expression]) -> Any:
        """Return a sum of each group. Any: whole numbers or floats."""

        def known() -> exp.Expression:
            found = tree()
            if isinstance(found, exp.Sum):  # a profile without a value adds nothing
                found = exp.Coalesce(this=found, expressions=[exp.Literal.number(0)])
            return found

        return self.profiles.sums(f"{self.secret} {name}", known, self.parts, self.rows)

    def table(self, query: Query, vectors: int, moments: Moments) -> pa.Table:
        """Return the aggregates under the names that the engine would give them."""
        import pyarrow as pa

        columns: dict[str, Any] = {name: self.keys.column(name) for name in self.keys.column_names}
        for number, measure in enumerate(query.measures):
            if measure.function == "count":
                found = self.total(measure.text, functools.partial(aggregate, measure))
                columns[f"m{number}"] = pa.array(found)
            elif measure.function in ("sum", "avg"):
                columns |= self._linear(f"m{number}", vectors, mean=measure.function == "avg")
            else:
                columns |= self._moments(f"m{number}", moments)
        return pa.table(columns)

    def _count(self) -> Any:
        return self.total("n", lambda: exp.Count(this=exp.column("__v0", quoted=True)))

    def _linear(self, name: str, vectors: int, *, mean: bool) -> dict[str, Any]:
        import pyarrow as pa

        count = self._count()
        found = {}
        with np.errstate(divide="ignore", invalid="ignore"):
            for j in range(vectors):
                column = f"__v{j}"
                sums = self.total(column, functools.partial(_sum, column))
                values = np.where(count > 0, sums / count if mean else sums, np.nan)
                found[f"{name}_{j}"] = pa.array(values)
        return found

    def _moments(self, name: str, moments: Moments) -> dict[str, Any]:
        import pyarrow as pa

        count = self._count()
        found = {
            f"{name}{what}": pa.array(
                np.where(count > 0, self.total(what, functools.partial(_given, tree)), np.nan)
            )
            for what, tree in moments().items()
        }
        return found | {f"{name}_n": pa.array(count)}


def _sum(column: str) -> exp.Expression:
    return exp.Sum(this=exp.column(column, quoted=True))


def _given(tree: exp.Expression) -> exp.Expression:
    return tree
