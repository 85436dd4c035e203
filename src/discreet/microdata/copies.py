"""Whole records that stand in two files: copies of people, or people counted twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from discreet.microdata.columns import Places, codes, combined, is_number, numbers

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["copied", "record_numbers", "shared_beyond_chance"]

#: Two samples of different people share this many records or more once in ten thousand times.
_CHANCE = 1e-4


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


def shared_beyond_chance(holdout: pa.Table, original: pa.Table, names: Sequence[str]) -> int:
    """Return how many records of a holdout stand in the original; 0 where chance explains them.

    Different people may have equal records. Of two equal records among all of both files, each is
    as likely to lie in either file as its size says, so that both files hold one of them with
    probability 2nm/((n+m)(n+m−1)). People who stand in both files lie so always. Files that hold
    the same records as often as each other are the same file.

    >>> import pyarrow as pa
    >>> people = pa.table({"a": range(100)})
    >>> shared_beyond_chance(people.slice(0, 50), people, ["a"])
    50
    >>> coarse = pa.table({"a": [1, 2] * 50})
    >>> shared_beyond_chance(coarse.slice(0, 50), coarse, ["a"])
    0
    """
    import scipy.stats

    two, one = record_numbers(holdout, original, names=names)
    if not one.size or not two.size:
        return 0
    width = int(max(one.max(), two.max())) + 1
    here, there = np.bincount(one, minlength=width), np.bincount(two, minlength=width)
    pairs = here + there == 2
    split = int((here[pairs] == 1).sum())
    size = one.size + two.size
    expected = 2 * one.size * two.size / (size * (size - 1))
    tail = float(scipy.stats.binom.sf(split - 1, int(pairs.sum()), expected)) if split else 1.0
    if tail >= _CHANCE and not np.array_equal(here, there):
        return 0
    return int(np.isin(two, one).sum())


def _shared_codes(columns: Sequence[pa.ChunkedArray], name: str) -> Places:
    import pyarrow as pa

    if all(is_number(column.type) for column in columns):
        # 20 and 20.0 are the same age.
        values = np.concatenate([numbers(column, name=name) for column in columns])
        return codes(pa.array(values))[0]
    texts = [chunk for column in columns for chunk in column.cast(pa.string()).chunks]
    return codes(pa.chunked_array(texts, pa.string()))[0]
