"""Answers as the asker sees them: of a ledger's entry, of a refusal, of an explanation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from discreet.data.dataset import to_library
from discreet.data.sql import Query, finish
from discreet.errors import RefusedError
from discreet.ledger.entry import Entry
from discreet.queries.answer import Answer, Explanation, ResultColumn
from discreet.queries.guards._base import Guard
from discreet.queries.packing import unpacked

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["explained", "in_digits", "labelled", "refused", "released"]


def released(
    query: Query,
    entry: Entry,
    guard: Guard,
    left: Mapping[str, float],
    *,
    repeated: bool,
    library: str | None,
) -> Answer:
    """Return a recorded answer; its rows as a frame of the library, if one is named."""
    rows = unpacked(entry.answer)
    table = finish(query, in_digits(query, rows, entry.details["error_95"]))
    return Answer(
        kind=entry.kind,
        frame=None if library is None else to_library(table, library),
        columns=_columns(query, table, entry.kind),
        spent={} if repeated else entry.details["spent"],
        left=dict(left),
        error_95=labelled(query, entry.details["error_95"]),
        withheld=entry.details["withheld"],
        question=query.question,
        guard=guard.name,
        number=entry.number,
        repeated=repeated,
        aggregates=0 if repeated else len(query.measures) * rows.num_rows,
        table=table,
    )


def refused(
    error: RefusedError,
    *,
    query: Query | None = None,
    guard: Guard | None = None,
    left: Mapping[str, float] | None = None,
) -> Answer:
    """Return the answer that says why there is none."""
    return Answer(
        kind="refused",
        frame=None,
        reason=error.message,
        hint=error.hint or "",
        code=error.code,
        left=dict(left or {}),
        question="" if query is None else query.question,
        guard="" if guard is None else guard.name,
    )


def explained(told: Explanation, library: str) -> Answer:
    """Return an explanation as rows of text."""
    import pyarrow as pa

    header, body = told.rows()
    table = pa.table({name: [str(row[place]) for row in body] for place, name in enumerate(header)})
    return Answer(
        kind="explanation",
        frame=to_library(table, library),
        columns=tuple(ResultColumn(name, "text", "exact") for name in header),
        reason=told.reason,
        question=told.question,
        guard=told.guard,
        table=table,
    )


def in_digits(query: Query, rows: pa.Table, errors: Mapping[str, float]) -> pa.Table:
    """Round averages to the digits that the noise leaves: two of those of their error."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for number, measure in enumerate(query.measures):
        name = f"m{number}"
        error = errors.get(name)
        if measure.function != "avg" or not error or name not in rows.column_names:
            continue
        if not math.isfinite(error) or not pa.types.is_floating(rows.schema.field(name).type):
            continue
        digits = 1 - math.floor(math.log10(error))
        rounded = pc.round(rows.column(name), ndigits=digits)
        rows = rows.set_column(rows.column_names.index(name), name, rounded)
    return rows


_TYPES = {"integer": "bigint", "number": "double"}


def _columns(query: Query, table: pa.Table, kind: str) -> tuple[ResultColumn, ...]:
    found = []
    for output in query.outputs:
        reference = output.reference or ""
        part = "key" if reference.startswith("k") else kind
        for end in ("", "_lower", "_upper"):
            if (name := output.label + end) in table.column_names:
                type_ = _TYPES.get(output.kind, output.kind)
                arrow = str(table.schema.field(name).type)
                type_ = "double" if arrow == "double" else type_
                shown = "exact" if part == "interval" else part
                found.append(ResultColumn(name, type_, end.strip("_") or shown))
    return tuple(found)


def labelled(query: Query, errors: Mapping[str, float]) -> dict[str, float]:
    """Return errors by the names that columns have in the answer."""
    return {
        output.label: errors[output.reference]
        for output in query.outputs
        if output.reference in errors
    }
