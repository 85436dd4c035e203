"""Instructions on words of 64 bits that numba has no name for."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

__all__ = ["bits_set", "low_bit", "not_zero"]


@intrinsic  # type: ignore[untyped-decorator]
def low_bit(_context: Any, _word: Any) -> Any:  # Any: numba's compiler
    """Return the place of the lowest bit that is set in a word that is not zero."""

    def generate(_: Any, builder: Any, __: Any, given: Any) -> Any:
        return builder.cttz(given[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


@intrinsic  # type: ignore[untyped-decorator]
def bits_set(_context: Any, _word: Any) -> Any:  # Any: numba's compiler
    """Return how many bits of a word are set."""

    def generate(_: Any, builder: Any, __: Any, given: Any) -> Any:
        return builder.ctpop(given[0])

    return types.int64(types.uint64), generate


@intrinsic  # type: ignore[untyped-decorator]
def not_zero(_context: Any, rows: Any, row: Any) -> Any:  # Any: numba's compiler
    """Return which of the 64 numbers of 32 bits in a row are not zero, one bit each."""

    def generate(context: Any, builder: Any, _: Any, given: Any) -> Any:
        vector = ir.VectorType(ir.IntType(32), 64)
        array = context.make_array(rows)(context, builder, given[0])
        start = builder.mul(given[1], ir.Constant(given[1].type, 64))
        there = builder.bitcast(builder.gep(array.data, [start]), vector.as_pointer())
        numbers = builder.load(there, align=4)
        marks = builder.icmp_unsigned("!=", numbers, ir.Constant(vector, None))
        return builder.bitcast(marks, ir.IntType(64))

    return types.uint64(rows, row), generate


if numba.config.DISABLE_JIT:  # plain Python has none of the above

    def low_bit(word: Any) -> int:
        """Return the place of the lowest bit that is set in a word that is not zero."""
        return (int(word) & -int(word)).bit_length() - 1

    def bits_set(word: Any) -> int:
        """Return how many bits of a word are set."""
        return int(word).bit_count()

    def not_zero(rows: Any, row: Any) -> Any:
        """Return which of the 64 numbers in a row are not zero, one bit each."""
        return np.uint64(sum(1 << n for n in range(64) if rows[row, n] != 0))
