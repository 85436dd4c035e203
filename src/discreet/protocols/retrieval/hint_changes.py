"""How a client keeps its hint when slots of a table by index change: from a list of the changes.

A changed slot touches one column of the matrix, so the hint changes by the difference of the two
records times one row of the public matrix: about a kilobyte for each changed row instead of the hint.
"""

from __future__ import annotations

import struct

import numpy as np

from discreet.errors import RefusedError
from discreet.protocols.retrieval.lattice import Integers, public_row
from discreet.protocols.retrieval.schemes._base import Bytes, Shape

__all__ = ["change_list", "patched_hint"]

_SLOT = struct.Struct("<I")


def change_list(before: Bytes, after: Bytes) -> bytes:
    """Return what changed between two versions of the slots, (slots, width).

    For each changed slot its number, and by how much each byte changed: nine bits.
    """
    changed = np.flatnonzero((before != after).any(axis=1))
    # Bytes count as −128 … 127, as in the matrix.
    moved = after[changed].view(np.int8).astype(np.int16)
    moved -= before[changed].view(np.int8).astype(np.int16)
    signs = np.packbits(moved < 0, axis=1)
    return b"".join(
        _SLOT.pack(slot) + low.tobytes() + sign.tobytes()
        for slot, low, sign in zip(changed.tolist(), moved.astype(np.uint8), signs, strict=True)
    )


def patched_hint(hint: Integers, seed: bytes, shape: Shape, changes: bytes) -> Integers:
    """Return the hint after a list of changes, without the rest of the table.

    >>> from discreet.protocols.retrieval.lattice import hint_of
    >>> from discreet.protocols.retrieval.schemes._panels import matrix_of
    >>> shape, before = Shape(columns=5, width=8), np.arange(40, dtype=np.uint8).reshape(5, 8)
    >>> after = before.copy()
    >>> after[3] = 200
    >>> hints = [hint_of(matrix_of(shape, slots), bytes(16)) for slots in (before, after)]
    >>> changes = change_list(before, after)
    >>> bool((patched_hint(hints[0], bytes(16), shape, changes) == hints[1]).all())
    True

    Raises
    ------
    RefusedError
        If it is no list of changes of such a table.
    """
    size = _SLOT.size + shape.width + -(-shape.width // 8)
    made = hint.copy()
    for start in range(0, len(changes), size):
        one = changes[start : start + size]
        if len(one) != size or _SLOT.unpack_from(one)[0] >= shape.slots:
            raise RefusedError(
                "the list of changes does not fit the table",
                code="bad-hint",
                hint="fetch the hint again",
            )
        low = np.frombuffer(one, np.uint8, shape.width, _SLOT.size).astype(np.uint32)
        signs = np.frombuffer(one, np.uint8, offset=_SLOT.size + shape.width)
        low -= np.unpackbits(signs, count=shape.width).astype(np.uint32) << np.uint32(8)
        row, column = divmod(_SLOT.unpack_from(one)[0], shape.columns)
        place = slice(row * shape.width, (row + 1) * shape.width)
        made[place] += np.outer(low, public_row(seed, column))
    return made
