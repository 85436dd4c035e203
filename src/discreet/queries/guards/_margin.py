"""What everybody knows of a column, and whether its values lie inside that by a margin."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pyarrow as pa
from sqlglot import exp

from discreet.data.sql.query import from_clause
from discreet.errors import InputError
from discreet.queries.guards._base import Protected

__all__ = ["known_bounds"]


def known_bounds(
    data: Protected, declared: Mapping[str, tuple[float, float]], inside: float
) -> dict[str, tuple[float, float]]:
    """Return the bounds of confidential columns, and see that values keep their margin.

    A column without declared bounds and without negative values counts as known not to be
    negative; if it has some, nothing is known of it, and what is not determined has no ends.
    """
    found = {}
    schema = data.relation.schema
    others = [
        name
        for name in sorted(data.confidential - set(declared))
        if pa.types.is_integer(kind := schema.field(name).type)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
    ]
    for column in (*declared, *others):
        data.relation.require(column)
        named = exp.column(column, quoted=True)
        ends = [exp.alias_(kind(this=named.copy()), kind.key) for kind in (exp.Min, exp.Max)]
        select = exp.select(*ends).from_(from_clause(data.relation.query, "t"))
        least, most = data.engine.fetch(select).to_pylist()[0].values()
        if least is None or (column not in declared and least < 0):
            continue
        low, high = found[column] = declared.get(column, (0.0, math.inf))
        if float(least) < low + inside or float(most) > high - inside:
            raise InputError(
                f"some values of {column!r} lie less than {inside:g} inside their bounds",
                code="no-margin",
                column=column,
                hint="declare bounds as wide as what an outsider really knows, or lower the "
                "interval; values at the ends of what everybody knows cannot be kept apart from "
                "them",
            )
    return found
