"""A matrix of bytes times a vector modulo 2³², at the speed of reading memory.

The matrix lies in panels of sixteen rows: a line of 64 bytes holds four columns of each. So memory is
read as one stream, and sixteen rows share each word of the vector.
"""

from __future__ import annotations

import numpy as np

from discreet.compiling import Array, kernel
from discreet.protocols.retrieval.kernels.dot_products import add_products, is_supported

__all__ = ["LINE", "PANEL", "multiply", "multiply_anywhere"]

#: Rows of a panel, and columns of a line.
PANEL = 16
LINE = 4


@kernel
def multiply_anywhere(lines: Array, planes: Array) -> Array:
    """Return the product of panels and a vector: see `multiply`; on any processor."""
    panels, groups, _ = lines.shape
    product = np.zeros((panels, 16), np.uint32)
    words = np.empty(4 * groups, np.uint32)
    for place in range(groups):
        for column in range(4):
            word = np.uint32(0)
            for plane in range(3, -1, -1):
                word = np.uint32(word << np.uint32(8)) | np.uint32(planes[place, plane, column])
            words[4 * place + column] = word
    for panel in range(panels):
        total = product[panel]
        for place in range(groups):
            line = lines[panel, place]
            for row in range(16):
                for column in range(4):
                    factor = np.uint32(line[4 * row + column])
                    total[row] = np.uint32(total[row] + factor * words[4 * place + column])
    return product.reshape(-1)


@kernel
def _multiply_by_dots(lines: Array, planes: Array) -> Array:
    panels, groups, _ = lines.shape
    product = np.zeros((panels, 16), np.uint32)
    for panel in range(panels):
        add_products(
            lines[panel].ctypes.data, planes.ctypes.data, groups, product[panel].ctypes.data
        )
    return product.reshape(-1)


def multiply(lines: Array, planes: Array) -> Array:
    """Return matrix · vector modulo 2³².

    (panels, groups, 64) int8: each line has 16 rows of 4 columns; (groups, 4, 4) uint8: the bytes of
    four words of the vector, the lowest of all four first. → (16 · panels,) uint32.
    """
    return _multiply_by_dots(lines, planes) if is_supported() else multiply_anywhere(lines, planes)
