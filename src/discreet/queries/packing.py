"""Rows of an answer as the ledger keeps them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["packed", "unpacked"]


def packed(rows: pa.Table) -> bytes:
    """Return a table as an Arrow stream.

    >>> import pyarrow as pa
    >>> unpacked(packed(pa.table({"n": [5]}))).to_pylist()
    [{'n': 5}]
    """
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue())


def unpacked(data: bytes) -> pa.Table:
    """Return the table again."""
    import pyarrow as pa

    with pa.ipc.open_stream(data) as reader:
        return reader.read_all()
