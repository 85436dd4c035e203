"""The keyword filter: three slots of a table add up to the record of a key.

Three-wise XOR filters (Graf and Lemire 2020) with whole records in place of fingerprints: one
question that selects three slots fetches the record of a key, without a directory of places.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal

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
_MOST_COLUMNS = 1 << 20


def shape_for(
    keys: int,
    width: int,
    arithmetic: Literal["xor", "add"],
    *,
    layout: Literal["balanced", "small-hint", "small-query"] = "balanced",
    grown: float = 1.0,
) -> Shape:
    """Return the shape of a filter.

    >>> round(shape_for(1 << 20, 1024, "xor").slots / (1 << 20), 3)
    1.23
    >>> shape_for(1 << 20, 1024, "add").rows
    35
    """
    if arithmetic == "xor":
        return Shape(columns=_columns(keys, grown), width=width, segments=3)
    rows = _rows(keys * _SLOTS_PER_KEY, width, layout)
    while True:
        mean = keys / rows
        # The fullest row has this many keys but for one case in millions; then it is tried again.
        fullest = mean + 5 * mean**0.5 + 5 if rows > 1 else mean
        columns = _columns(int(fullest) + 1, grown)
        if columns <= _MOST_COLUMNS:
            return Shape(columns=columns, width=width, rows=rows, segments=3)
        rows += 1


def _columns(keys: int, grown: float) -> int:
    segment = (keys * _SLOTS_PER_KEY + _SPARE) * grown / 3
    return 3 * max(-(-int(segment) // _LEAF), 1) * _LEAF


def _rows(slots: float, width: int, layout: str) -> int:
    """Return rows of blocks such that hint (rows · width) and question (columns) are as wanted."""
    # A balanced matrix has as many rows as columns: rows · width = slots / rows.
    balanced = math.sqrt(slots / width)
    wanted = {"balanced": balanced, "small-hint": balanced / 8, "small-query": balanced * 4}
    return max(round(wanted[layout]), 1)


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
    arithmetic: Literal["xor", "add"],
) -> None:
    """Write records, given in pieces with the number of the first, into the slots of a table."""
    from discreet.protocols.retrieval.kernels.peeling import fill_add, fill_xor

    own = np.empty(len(slots), np.int64)
    own[order[:, 0]] = order[:, 1]
    written = 0
    for first, piece in records:
        table[own[first : first + len(piece)]] = piece
        written += len(piece)
    if written != len(slots):
        raise EngineError("the rows changed while they were read", code="rows-changed")
    if arithmetic == "xor":
        fill_xor(table.view(np.uint64), slots, order)
    else:
        fill_add(table, slots, order)
