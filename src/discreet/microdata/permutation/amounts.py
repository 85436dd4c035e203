"""The sensitive column as numbers whose sums are exact.

The bounds of a sum must hold the truth to the last digit, so sums are kept as whole numbers of a
*step*: 1 for integers, a power of ten for decimals, and for floating-point numbers a power of two
so small that rounding each value down and up to whole steps loses next to nothing, yet so large
that every sum of steps is a double without rounding. Sums of such doubles are exact in any engine
and in any order.
"""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from discreet.errors import InputError

__all__ = ["Amounts"]

Integers = npt.NDArray[np.int64]
_EXACT = 2**53  # whole numbers up to here are doubles
_LARGEST = 2**62


@dataclasses.dataclass(frozen=True, eq=False)
class Amounts:
    """A sensitive column without missing values.

    Parameters
    ----------
    column
        The values, as they came.
    kind
        What arithmetic they have; categories have none.
    distinct
        The distinct values, ascending: numbers as doubles, categories as their places.
    classes
        For each record the place of its value in `distinct`.
    step
        What the units of `low` and `high` are worth.
    low, high
        For each distinct value the whole units below and above it; equal where exact.
    """

    column: pa.Array
    kind: Literal["integer", "decimal", "float", "category"]
    distinct: npt.NDArray[np.float64]
    classes: npt.NDArray[np.int32]
    step: Fraction
    low: Integers
    high: Integers

    @classmethod
    def of(cls, column: pa.Array, *, name: str, category: bool = False) -> Amounts:
        """Read a column that holds no nulls."""
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        kind = column.type
        number = (
            pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        )
        if category or not number:
            return cls._categories(column)
        if pa.types.is_integer(kind):
            exact = column.cast(pa.int64()).to_numpy(zero_copy_only=False)
            return cls._steps(column, "integer", exact, Fraction(1), name)
        if pa.types.is_decimal(kind):
            whole = [int(value.scaleb(kind.scale)) for value in column.to_pylist()]
            if any(abs(value) >= _LARGEST for value in whole):
                raise _too_large(name)
            exact = np.array(whole, dtype=np.int64)
            return cls._steps(column, "decimal", exact, Fraction(1, 10**kind.scale), name)
        return cls._floats(column.cast(pa.float64()), name)

    @classmethod
    def _categories(cls, column: pa.Array) -> Amounts:
        coded = column.dictionary_encode()
        labels = coded.dictionary.to_pylist()
        order = np.argsort(np.array([str(label) for label in labels], dtype=object), kind="stable")
        rank = np.empty(len(order), dtype=np.int32)
        rank[order] = np.arange(len(order))
        nothing = np.zeros(len(order), dtype=np.int64)
        codes = coded.indices.to_numpy(zero_copy_only=False)
        places = np.arange(len(order), dtype=np.float64)
        return cls(column, "category", places, rank[codes], Fraction(1), nothing, nothing)

    @classmethod
    def _steps(
        cls,
        column: pa.Array,
        kind: Literal["integer", "decimal"],
        exact: Integers,
        step: Fraction,
        name: str,
    ) -> Amounts:
        if float(np.abs(exact.astype(np.float64)).sum()) >= _LARGEST:
            raise _too_large(name)
        units, classes = np.unique(exact, return_inverse=True)
        values = units.astype(np.float64) / float(1 / step)
        return cls(column, kind, values, classes.astype(np.int32), step, units, units)

    @classmethod
    def _floats(cls, column: pa.Array, name: str) -> Amounts:
        numbers = column.to_numpy(zero_copy_only=False)
        if not np.isfinite(numbers).all():
            raise InputError(
                f"column {name!r} holds an infinite value",
                code="not-finite",
                hint="leave such records out or correct them",
                column=name,
            )
        values, classes = np.unique(numbers, return_inverse=True)
        total = float(np.abs(numbers).sum())
        # Each value may be rounded away from zero by one step, hence the records' share.
        exponent = 52 - math.frexp(max(total, 1e-290))[1]
        while (total + len(numbers) * 2.0**-exponent) * 2.0**exponent >= _EXACT:
            exponent -= 1
        # No step finer than the values themselves need: whole numbers stay whole.
        exponent = min(exponent, _needed(values, exponent))
        scaled = np.ldexp(values, exponent)
        low, high = np.floor(scaled), np.ceil(scaled)
        # A value far smaller than a step vanishes when scaled: put it back on its side.
        low -= np.ldexp(low, -exponent) > values
        high += np.ldexp(high, -exponent) < values
        step = Fraction(1, 2**exponent) if exponent >= 0 else Fraction(2**-exponent)
        units = low.astype(np.int64), high.astype(np.int64)
        return cls(column, "float", values, classes.astype(np.int32), step, *units)

    def __len__(self) -> int:
        return len(self.classes)

    @property
    def is_number(self) -> bool:
        """Whether the values can be summed and compared."""
        return self.kind != "category"

    def sums(self, units: Integers) -> pa.Array:
        """Return whole units as the numbers they stand for, without rounding."""
        if self.kind == "integer":
            return pa.array(units)
        if self.kind == "decimal":
            scale = len(str(self.step.denominator)) - 1
            # 128-bit numbers are two words, the lower first; the upper repeats the sign.
            words = np.column_stack([units, units >> 63])
            kind = pa.decimal128(38, scale)
            return pa.Array.from_buffers(kind, len(units), [None, pa.py_buffer(words)])
        return pa.array(units.astype(np.float64) * float(self.step))


def _needed(values: npt.NDArray[np.float64], most: int) -> int:
    for exponent in (0, 1, 2, 3, 4, 8, 10, 16, 20):
        if exponent >= most:
            break
        scaled = np.ldexp(values, exponent)
        if (scaled == np.rint(scaled)).all():
            return exponent
    return most


def _too_large(name: str) -> InputError:
    return InputError(
        f"the values of column {name!r} are too large to be summed exactly",
        code="too-large",
        hint="express them in a larger unit",
        column=name,
    )
