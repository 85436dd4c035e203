"""The columns that an answer will have, known before it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from discreet.data.sql import Query
from discreet.data.sql.finishing import computed_type

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["schema_of"]


def schema_of(query: Query, answers: str, confidential: frozenset[str]) -> pa.Schema:
    """Return the columns of an answer that is exact, an interval or noisy."""
    import pyarrow as pa

    ranged = _ranged(query, confidential) if answers == "interval" else set()
    types = {"integer": pa.int64(), "number": pa.float64(), "date": pa.date32()}
    types |= {"boolean": pa.bool_(), "timestamp": pa.timestamp("us")}
    fields = []
    for output in query.outputs:
        used = {column.name for column in output.expression.find_all(exp.Column)}
        if output.reference in ranged or (output.reference is None and used & ranged):
            fields += [(f"{output.label}_{end}", pa.float64()) for end in ("lower", "upper")]
        elif output.reference is None:
            fields.append((output.label, computed_type(output.kind)))
        else:
            fields.append((output.label, types.get(output.kind, pa.string())))
    return pa.schema(fields)


def _ranged(query: Query, confidential: frozenset[str]) -> set[str]:
    """Return the measures that guards with intervals answer by one: those that could tell."""
    chosen = bool(query.predicate_columns & confidential)
    return {
        f"m{number}"
        for number, measure in enumerate(query.measures)
        if chosen or (measure.columns & confidential and measure.function != "count")
    }
