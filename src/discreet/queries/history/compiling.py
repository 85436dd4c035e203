"""How the steps of the auditor are compiled: without the interpreter's lock, and kept on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.extending import intrinsic

__all__ = ["bits_set", "entry", "inner", "low_bit", "not_zero"]

Function = TypeVar("Function", bound=Callable[..., Any])


def entry(function: Function) -> Function:
    """Compile a step that the interpreter calls."""
    return cast("Function", njit(cache=True, nogil=True)(function))


def inner(function: Function) -> Function:
    """Compile a step that only others call: wrappers for the interpreter take long to compile."""
    bare = njit(cache=True, nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
    return cast("Function", bare(function))


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
def not_zero(_context: Any, numbers: Any) -> Any:  # Any: numba's compiler
    """Return which of 64 numbers of 32 bits are not zero, one bit each."""

    def generate(context: Any, builder: Any, _: Any, given: Any) -> Any:
        vector = ir.VectorType(ir.IntType(32), 64)
        array = context.make_array(numbers)(context, builder, given[0])
        there = builder.load(builder.bitcast(array.data, vector.as_pointer()), align=4)
        return builder.bitcast(
            builder.icmp_unsigned("!=", there, ir.Constant(vector, None)), ir.IntType(64)
        )

    return types.uint64(numbers), generate
