"""A column of an Arrow table as numbers or as codes, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from discreet.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "Numbers",
    "Places",
    "codes",
    "combined",
    "is_date",
    "is_number",
    "like",
    "numbers",
    "require_finite",
    "word_for",
]

Numbers = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]


def is_number(kind: pa.DataType) -> bool:
    """Whether a column of this Arrow type holds numbers."""
    import pyarrow as pa

    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def is_date(kind: pa.DataType) -> bool:
    """Whether a column of this Arrow type holds days or points in time."""
    import pyarrow as pa

    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def word_for(kind: pa.DataType) -> str:
    """Return an Arrow type as a person calls it."""
    import pyarrow as pa

    text = (
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind)
    )
    return "text" if text else str(kind)


def require_finite(column: pa.ChunkedArray | pa.Array, name: str) -> None:
    """Raise an InputError if a column of numbers holds an infinite one, which has no mean."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_floating(column.type) and pc.any(pc.is_inf(column)).as_py():
        raise InputError(
            f"column {name!r} holds an infinite value",
            code="not-finite",
            hint="leave such records out or correct them",
            column=name,
        )


def numbers(column: pa.ChunkedArray | pa.Array, *, name: str) -> Numbers:
    """Return a column as floating-point numbers, missing values as not-a-number.

    >>> import pyarrow as pa
    >>> numbers(pa.array([1, None, 3]), name="age").tolist()
    [1.0, nan, 3.0]
    >>> numbers(pa.array(["1", "many"]), name="age")
    Traceback (most recent call last):
    discreet.errors.InputError: column 'age' holds text where numbers are needed; ...
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if not is_number(column.type):
        raise InputError(
            f"column {name!r} holds {word_for(column.type)} where numbers are needed",
            code="not-numeric",
            hint="choose a numeric column or correct the file",
            column=name,
        )
    values = pc.cast(column, pa.float64(), safe=False)
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    return np.array(values.to_numpy(zero_copy_only=False), dtype=np.float64)


def like(column: pa.ChunkedArray | pa.Array, values: Numbers) -> pa.Array:
    """Return numbers as an Arrow array: integers where the column has them and all values are whole.

    >>> import pyarrow as pa
    >>> like(pa.array([1, 2]), np.array([4.0, np.nan])).to_pylist()
    [4, None]
    >>> like(pa.array([1, 2]), np.array([4.5, 1.0])).to_pylist()
    [4.5, 1.0]
    """
    import pyarrow as pa

    missing = np.isnan(values)
    if pa.types.is_integer(column.type):
        whole = np.where(missing, 0.0, values)
        if np.array_equal(whole, np.rint(whole)) and (np.abs(whole) < 2.0**53).all():
            return pa.array(whole.astype(np.int64), mask=missing)
    return pa.array(values, pa.float64(), mask=missing)


def codes(column: pa.ChunkedArray | pa.Array) -> tuple[Places, pa.Array]:
    """Return a column as places in its sorted values, −1 where missing, and these values.

    >>> import pyarrow as pa
    >>> places, values = codes(pa.array(["b", "a", None, "b"]))
    >>> places.tolist(), values.to_pylist()
    ([1, 0, -1, 1], ['a', 'b'])
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), None, column)
    encoded = column.dictionary_encode()
    places = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    # Sorted, so that the numbering is that of the values and not of the rows.
    order = pc.sort_indices(encoded.dictionary).to_numpy(zero_copy_only=False).astype(np.int64)
    rank = np.empty(order.size + 1, np.int64)
    rank[order] = np.arange(order.size)
    rank[-1] = -1
    return rank[places], encoded.dictionary.take(pa.array(order))


def combined(columns: Sequence[Places], rows: int) -> Places:
    """Return one number per combination of codes, 0 and up."""
    joint = np.zeros(rows, np.int64)
    width = 1
    for column in columns:
        size = int(column.max(initial=-1)) + 2
        if width * size > 1 << 62:
            joint = np.unique(joint, return_inverse=True)[1].ravel()
            width = int(joint.max(initial=0)) + 1
        joint = joint * size + column + 1
        width *= size
    return np.unique(joint, return_inverse=True)[1].ravel().astype(np.int64)
