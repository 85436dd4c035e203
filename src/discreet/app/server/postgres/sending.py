"""Rows on their way to a client: described, encoded in its formats, and sent piece by piece."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from discreet.app.server.desk import Reply
from discreet.app.server.postgres import messages as m
from discreet.app.server.postgres import types
from discreet.errors import EngineError, InputError

__all__ = ["as_promised", "columns_of", "fields_of", "send_rows", "spread"]

#: Rows that are encoded and sent before the client must have taken some.
_BATCH = 500


async def send_rows(
    reply: Reply,
    formats: Sequence[int],
    write: Callable[[bytes], None],
    drain: Callable[[], Awaitable[None]],
    *,
    start: int = 0,
    most: int = 0,
) -> int:
    """Send rows from `start` on, at most `most` if given; return how many are out."""
    columns = columns_of(reply)
    size = int(reply.table.num_rows)
    stop = size if most <= 0 else min(start + most, size)
    for first in range(start, stop, _BATCH):
        piece = reply.table.slice(first, min(_BATCH, stop - first))
        for row in zip(*(c.to_pylist() for c in piece.columns), strict=True):
            cells = [
                types.encode(v, c.oid, f) for v, c, f in zip(row, columns, formats, strict=True)
            ]
            write(m.data_row(cells))
        await drain()
    if stop < size:
        write(m.message(b"s"))
        return stop
    for notice in reply.notices:
        write(m.report(severity="NOTICE", sqlstate="00000", summary=notice, notice=True))
    rows = f" {stop - start}" if reply.tag == "SELECT" else ""
    write(m.command_complete(reply.tag + rows))
    return stop


def columns_of(reply: Reply) -> list[m.Column]:
    """Return the columns of an answer as the protocol names them."""
    return fields_of(reply.table.schema)


def fields_of(schema: Any) -> list[m.Column]:
    """Return the columns of a schema as the protocol names them. Any: an Arrow schema."""
    return [m.Column(field.name, *types.oid_of(field.type)) for field in schema]


def as_promised(table: Any, promised: Any) -> Any:
    """Return the rows with the columns the client was told of. Any: Arrow."""
    if table.schema.names != promised.names:
        raise EngineError("the answer has other columns than were told", code="other-columns")
    return table.cast(promised, safe=False)


def spread(formats: tuple[int, ...], count: int) -> tuple[int, ...]:
    """One format goes for all, none means text."""
    if len(formats) == count:
        return formats
    if len(formats) > 1:
        raise InputError("formats and values differ in number", code="wrong-parameters")
    return (formats[0] if formats else 0,) * count
