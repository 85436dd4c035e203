"""Whole records that stand in two files: copies of people, or people counted twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from discreet.microdata.columns import Places, codes, combined, is_number, numbers

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["copied", "record_numbers"]


def record_numbers(*files: pa.Table, names: Sequence[str]) -> list[Places]:
    """Return one number per different record, the same in all files; missing equals missing.

    >>> import pyarrow as pa
    >>> one, two = pa.table({"a": [1, 2]}), pa.table({"a": [2.0, 3.0, 2.0]})
    >>> [found.tolist() for found in record_numbers(one, two, names=["a"])]
    [[0, 1], [1, 2, 1]]
    """
    sizes = [file.num_rows for file in files]
    places = [_shared_codes([file.column(name) for file in files], name) for name in names]
    return list(np.split(combined(places, sum(sizes)), np.cumsum(sizes)[:-1]))


def copied(file: pa.Table, original: pa.Table) -> int:
    """Return how many records of a file equal one of the original in every column of the file.

    >>> import pyarrow as pa
    >>> copied(pa.table({"a": [1, 4, 1]}), pa.table({"a": [1, 2], "name": ["x", "y"]}))
    2
    """
    one, two = record_numbers(file, original, names=file.column_names)
    return int(np.isin(one, two).sum())


def _shared_codes(columns: Sequence[pa.ChunkedArray], name: str) -> Places:
    import pyarrow as pa

    if all(is_number(column.type) for column in columns):
        # 20 and 20.0 are the same age.
        values = np.concatenate([numbers(column, name=name) for column in columns])
        return codes(pa.array(values))[0]
    texts = [chunk for column in columns for chunk in column.cast(pa.string()).chunks]
    return codes(pa.chunked_array(texts, pa.string()))[0]
