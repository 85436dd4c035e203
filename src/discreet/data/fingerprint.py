"""A digest of records or tables: two that differ in anything have different ones."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.data.dataset import Dataset
    from discreet.data.table import Table

__all__ = ["fingerprint"]


def fingerprint(data: Dataset | Table | Sequence[Table]) -> bytes:
    """Return the digest of records with their schema, in their order, or of tables.

    Two texts cannot run together: every part is preceded by its length.

    >>> import pandas as pd
    >>> from discreet.data.dataset import read
    >>> one, other = (read(pd.DataFrame({"a": column})) for column in ([1, 2], [1, 3]))
    >>> fingerprint(one) == fingerprint(one) != fingerprint(other)
    True
    """
    from discreet.data.table import Table

    digest = hashlib.sha256()
    if isinstance(data, Table):
        data = (data,)
    if isinstance(data, Sequence):
        for table in data:
            _add_table(digest, table)
        return digest.digest()
    for column in data.schema.columns:
        _add(digest, column.name, column.role.value, column.type.value)
        for hierarchy in column.hierarchies:
            _add(digest, *(code for pair in hierarchy.pairs() for code in pair))
    _add(digest, repr((data.schema.unit, data.schema.weight)))
    rows = data.arrow()
    for name in rows.column_names:
        _add_column(digest, name, rows.column(name))
    return digest.digest()


def _add(digest: Any, *texts: str | bytes) -> None:
    # Any: hashlib's objects have no public type.
    for text in texts:
        part = text if isinstance(text, bytes) else text.encode()
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)


def _add_column(digest: Any, name: str, column: pa.ChunkedArray) -> None:
    """Add values and which of them are missing; what lies under a missing one is not looked at."""
    import pyarrow as pa

    known = column.drop_null()
    _add(digest, name, str(column.type), np.packbits(column.is_valid().to_numpy()).tobytes())
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        _add(digest, np.ascontiguousarray(known.to_numpy()).tobytes())
        return
    texts = [str(value) for value in known.to_pylist()]
    _add(digest, np.array([len(text) for text in texts], dtype="<i8").tobytes(), "".join(texts))


def _add_table(digest: Any, table: Table) -> None:
    for dimension in table.dimensions:
        _add(digest, dimension.name)
        for hierarchy in dimension.hierarchies:
            _add(digest, *(code for pair in hierarchy.pairs() for code in pair))
    arrays = (table.codes, table.value, table.count, table.status, table.lower, table.upper)
    for array in arrays:
        _add(digest, b"" if array is None else np.ascontiguousarray(array).tobytes())
