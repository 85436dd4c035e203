"""The keyword filter: three slots of a table add up to the record of a key.

Three-wise XOR filters (Graf and Lemire 2020) with whole records in place of fingerprints: one
question that selects three slots fetches the record of a key, without a directory of places.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from discreet.errors import EngineError
from discreet.protocols.retrieval.digests import Digests
from discreet.protocols.retrieval.schemes._base import Bytes, Shape

__all__ = ["fill", "placed", "shape_for"]

#: Slots per key; below 1.222 no order of writing exists for large tables.
_SLOTS_PER_KEY = 1.23
_SPARE = 32
#: Segments are whole leaves of a point function.
_LEAF = 128


def shape_for(keys: int, width: int, *, grown: float = 1.0) -> Shape:
    """Return the shape of a filter.

    >>> round(shape_for(1 << 20, 1024).slots / (1 << 20), 3)
    1.23
    """
    segment = (keys * _SLOTS_PER_KEY + _SPARE) * grown / 3
    return Shape(columns=3 * max(-(-int(segment) // _LEAF), 1) * _LEAF, width=width, segments=3)


def placed(
    digests: Digests, shape: Shape
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | None:
    """Return the slots of each key and the order of writing; None if there is none."""
    from discreet.protocols.retrieval.kernels.peeling import peel

    slots = digests.slots(shape)
    order = peel(slots, shape.slots)
    return (slots, order) if len(order) == len(slots) else None


def fill(
    table: Bytes,
    slots: npt.NDArray[np.int64],
    order: npt.NDArray[np.int64],
    records: Iterator[tuple[int, Bytes]],
) -> None:
    """Write records, given in pieces with the number of the first, into the slots of a table."""
    from discreet.protocols.retrieval.kernels.peeling import fill_xor

    own = np.empty(len(slots), np.int64)
    own[order[:, 0]] = order[:, 1]
    written = 0
    for first, piece in records:
        table[own[first : first + len(piece)]] = piece
        written += len(piece)
    if written != len(slots):
        raise EngineError("the rows changed while they were read", code="rows-changed")
    fill_xor(table.view(np.uint64), slots, order)
