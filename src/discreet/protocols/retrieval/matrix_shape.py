"""The shape of the matrix of a scheme with one server: rows cost hint, columns cost question."""

from __future__ import annotations

import math
from typing import Literal

from discreet.protocols.retrieval.lattice import MOST_COLUMNS
from discreet.protocols.retrieval.schemes._base import Shape

__all__ = ["Layout", "matrix_shape"]

Layout = Literal["balanced", "small-hint", "small-query"]


def matrix_shape(records: int, width: int, layout: Layout = "balanced") -> Shape:
    """Return a shape with a slot for each record, in their order.

    >>> matrix_shape(1 << 20, 1024)
    Shape(columns=32768, width=1024, rows=32, segments=1)
    """
    # A balanced matrix has as many rows as columns: rows · width = slots / rows.
    balanced = math.sqrt(records / width)
    wanted = {"balanced": balanced, "small-hint": balanced / 8, "small-query": balanced * 4}
    rows = max(round(wanted[layout]), 1, -(-records // MOST_COLUMNS))
    return Shape(columns=-(-records // rows), width=width, rows=rows)
