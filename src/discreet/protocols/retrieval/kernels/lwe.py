"""A matrix of bytes times a vector modulo 2³², at the speed of reading memory."""

from __future__ import annotations

import numpy as np

from discreet.compiling import Array, kernel

__all__ = ["multiply"]


@kernel
def multiply(matrix: Array, vector: Array) -> Array:
    """Return matrix · vector modulo 2³²: (rows, columns) int8, (columns,) uint32 → (rows,) uint32.

    Eight rows share each word of the vector that is read. Sums are cut to 32 bits at every step:
    numba would otherwise keep them in 64, and half as many would fit into a register.
    """
    rows, columns = matrix.shape
    product = np.zeros(rows, np.uint32)
    for row in range(0, rows - 7, 8):
        a = b = c = d = e = f = g = h = np.uint32(0)
        r, s, t, u = matrix[row], matrix[row + 1], matrix[row + 2], matrix[row + 3]
        v, w, x, y = matrix[row + 4], matrix[row + 5], matrix[row + 6], matrix[row + 7]
        for n in range(columns):
            word = vector[n]
            a = np.uint32(a + np.uint32(r[n]) * word)
            b = np.uint32(b + np.uint32(s[n]) * word)
            c = np.uint32(c + np.uint32(t[n]) * word)
            d = np.uint32(d + np.uint32(u[n]) * word)
            e = np.uint32(e + np.uint32(v[n]) * word)
            f = np.uint32(f + np.uint32(w[n]) * word)
            g = np.uint32(g + np.uint32(x[n]) * word)
            h = np.uint32(h + np.uint32(y[n]) * word)
        product[row], product[row + 1], product[row + 2], product[row + 3] = a, b, c, d
        product[row + 4], product[row + 5], product[row + 6], product[row + 7] = e, f, g, h
    for row in range(rows - rows % 8, rows):
        total = np.uint32(0)
        line = matrix[row]
        for n in range(columns):
            total = np.uint32(total + np.uint32(line[n]) * vector[n])
        product[row] = total
    return product
