"""Products of bytes with the dot-product instructions of newer x86 processors (AVX-512 VNNI).

LLVM does not find them in a loop that adds four neighbouring products into one of sixteen sums, so
the loop is written in its own language.
"""

from __future__ import annotations

import functools
from typing import Any

import llvmlite.binding
import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from discreet.protocols.retrieval.kernels.prefetching import AHEAD, write_prefetch

__all__ = ["add_products", "is_supported"]

_INSTRUCTION = "llvm.x86.avx512.vpdpbusd.512"
_WORD, _INDEX = ir.IntType(32), ir.IntType(64)
_LINE = ir.VectorType(_WORD, 16)


@functools.cache
def is_supported() -> bool:
    """Whether this processor has the instruction, and numba compiles for this processor."""
    is_native = not numba.config.CPU_NAME and not numba.config.CPU_FEATURES
    return is_native and bool(llvmlite.binding.get_host_cpu_features().get("avx512vnni", False))


def _at(builder: Any, address: Any, kind: Any) -> Any:
    # Any, throughout: llvmlite has no types.
    return builder.inttoptr(address, kind.as_pointer())


def _number(value: int) -> Any:
    return ir.Constant(_INDEX, value)


def _body(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
    """Write the loop over the lines of a panel: four sums, one for each byte of the vector's words."""
    lines, planes, many, product = arguments
    dot = builder.module.globals.get(_INSTRUCTION) or ir.Function(
        builder.module, ir.FunctionType(_LINE, [_LINE] * 3), _INSTRUCTION
    )
    before = builder.block
    loop = builder.append_basic_block("lines")
    done = builder.append_basic_block("done")
    builder.branch(loop)
    builder.position_at_end(loop)
    place = builder.phi(_INDEX)
    place.add_incoming(_number(0), before)
    sums = [builder.phi(_LINE) for _ in range(4)]
    address = builder.add(lines, builder.mul(place, _number(64)))
    line = builder.load(_at(builder, address, _LINE), align=1)
    write_prefetch(builder, builder.add(address, _number(AHEAD)))
    words = builder.add(planes, builder.mul(place, _number(16)))
    everywhere = ir.Constant(_LINE, [0] * 16)
    added = []
    for plane, total in enumerate(sums):
        total.add_incoming(everywhere, before)
        four = builder.load(_at(builder, builder.add(words, _number(4 * plane)), _WORD), align=1)
        first = builder.insert_element(
            ir.Constant(_LINE, ir.Undefined), four, ir.Constant(_WORD, 0)
        )
        spread = builder.shuffle_vector(first, ir.Constant(_LINE, ir.Undefined), everywhere)
        added.append(builder.call(dot, [total, spread, line]))
        total.add_incoming(added[-1], loop)
    following = builder.add(place, _number(1))
    place.add_incoming(following, loop)
    builder.cbranch(builder.icmp_signed("<", following, many), loop, done)
    builder.position_at_end(done)
    total = added[0]
    for plane in (1, 2, 3):
        shift = ir.Constant(_LINE, [8 * plane] * 16)
        total = builder.add(total, builder.shl(added[plane], shift))
    builder.store(total, _at(builder, product, _LINE), align=1)
    return context.get_dummy_value()


@intrinsic  # type: ignore[untyped-decorator]  # numba has no types
def add_products(_: Any, _lines: Any, _planes: Any, _many: Any, _product: Any) -> Any:
    """Write the products of one panel: addresses of its lines, of the planes, how many, and whereto."""
    address = types.uintp
    return types.void(address, address, types.intp, address), _body
