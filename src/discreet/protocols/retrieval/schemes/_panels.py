"""How a matrix of bytes lies in the memory of a server that multiplies it: in panels of rows.

See `kernels.lwe`: sixteen rows together, four columns of each in a line of 64 bytes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.protocols.retrieval.schemes._base import Bytes, Shape

__all__ = ["matrix_of", "panelled", "panels_of", "slot_in", "slots_in"]

_ROWS, _COLUMNS = 16, 4


def matrix_of(shape: Shape, slots: Bytes) -> npt.NDArray[np.int8]:
    """Return slots as the matrix of a scheme with one server: a record stands upright in a column.

    Bytes count as −128 … 127.
    """
    by_row = slots.reshape(shape.rows, shape.columns, shape.width).transpose(0, 2, 1)
    return np.ascontiguousarray(by_row).reshape(-1, shape.columns).view(np.int8)


def panelled(matrix: npt.NDArray[np.int8]) -> Bytes:
    """Return a matrix in panels, filled up with zeros.

    >>> panelled(np.arange(10, dtype=np.int8).reshape(2, 5))[:8]
    array([0, 1, 2, 3, 5, 6, 7, 8], dtype=uint8)
    """
    rows, columns = matrix.shape
    whole = ((0, -rows % _ROWS), (0, -columns % _COLUMNS))
    filled = matrix if whole == ((0, 0), (0, 0)) else np.pad(matrix, whole)
    panels = filled.reshape(filled.shape[0] // _ROWS, _ROWS, -1, _COLUMNS).transpose(0, 2, 1, 3)
    return np.ascontiguousarray(panels).view(np.uint8).reshape(-1)


def panels_of(shape: Shape, block: Bytes) -> Bytes:
    """Return a block as (panels, lines, 64)."""
    rows, lines = -(-shape.rows * shape.width // _ROWS), -(-shape.columns // _COLUMNS)
    return block.reshape(rows, lines, _ROWS * _COLUMNS)


def slots_in(shape: Shape, block: Bytes) -> Bytes:
    """Return all slots of a block in panels: (slots, width)."""
    panels = panels_of(shape, block)
    lines = panels.reshape(*panels.shape[:2], _ROWS, _COLUMNS).transpose(0, 2, 1, 3)
    whole = lines.reshape(_ROWS * len(panels), -1)[: shape.rows * shape.width, : shape.columns]
    by_row = whole.reshape(shape.rows, shape.width, shape.columns).transpose(0, 2, 1)
    return np.ascontiguousarray(by_row).reshape(shape.slots, shape.width)


def slot_in(shape: Shape, block: Bytes, slot: int) -> Bytes:
    """Return one slot of a block in panels."""
    row, column = divmod(slot, shape.columns)
    panels = panels_of(shape, block)
    lines = panels.reshape(*panels.shape[:2], _ROWS, _COLUMNS)
    whole = lines[:, column // _COLUMNS, :, column % _COLUMNS].reshape(-1)
    return whole[row * shape.width : (row + 1) * shape.width]
