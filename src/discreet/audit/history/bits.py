"""Instructions on words of 64 bits that numba has no name for."""

from __future__ import annotations

from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

__all__ = ["bits_set", "low_bit"]


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


if numba.config.DISABLE_JIT:  # plain Python has none of the above

    def low_bit(word: Any) -> int:
        """Return the place of the lowest bit that is set in a word that is not zero."""
        return (int(word) & -int(word)).bit_length() - 1

    def bits_set(word: Any) -> int:
        """Return how many bits of a word are set."""
        return int(word).bit_count()
