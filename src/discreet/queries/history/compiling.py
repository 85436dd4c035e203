"""How the steps of the auditor are compiled: without the interpreter's lock, and kept on disk."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.extending import intrinsic

__all__ = ["bits_set", "entry", "inner", "low_bit", "not_zero"]

Function = TypeVar("Function", bound=Callable[..., Any])


def _digest() -> str:
    """Return a digest of everything that is compiled together."""
    texts = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(text.read_bytes() for text in texts)).hexdigest()


#: What is kept on disk holds for these sources alone. Steps are compiled into those that call them,
#: from one file into another, while the compiler looks only at the file a step is in.
_SOURCES = _digest()


def _kept(compiled: Any) -> Any:  # Any: a dispatcher of numba's
    compiled._cache._cache_file._source_stamp = _SOURCES
    return compiled


def entry(function: Function) -> Function:
    """Compile a step that the interpreter calls."""
    return cast("Function", _kept(njit(cache=True, nogil=True)(function)))


def inner(function: Function) -> Function:
    """Compile a step that only others call: wrappers for the interpreter take long to compile."""
    bare = njit(cache=True, nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
    return cast("Function", _kept(bare(function)))


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
