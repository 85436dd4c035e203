"""Asking memory for what a loop will read: one stream alone is not read ahead far enough."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

__all__ = ["AHEAD", "ask_for", "write_prefetch"]

#: How many bytes ahead.
AHEAD = 8192
_NAME = "llvm.prefetch.p0"
_BYTE, _WORD = ir.IntType(8), ir.IntType(32)


def write_prefetch(builder: Any, address: Any) -> None:
    """Write the instruction; it only hints, so addresses behind the end do no harm.

    Any: llvmlite has no types.
    """
    kind = ir.FunctionType(ir.VoidType(), [_BYTE.as_pointer(), _WORD, _WORD, _WORD])
    function = builder.module.globals.get(_NAME) or ir.Function(builder.module, kind, _NAME)
    place = builder.inttoptr(address, _BYTE.as_pointer())
    builder.call(function, [place, *(ir.Constant(_WORD, n) for n in (0, 3, 1))])


def _body(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
    write_prefetch(builder, arguments[0])
    return context.get_dummy_value()


@intrinsic  # type: ignore[untyped-decorator]  # numba has no types
def ask_for(_: Any, _address: Any) -> Any:
    """Ask for the line of memory at an address."""
    return types.void(types.uintp), _body
