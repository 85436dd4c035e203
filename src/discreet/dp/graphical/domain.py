"""Domains of models: how many codes each attribute has, and tables over some of them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

__all__ = ["Clique", "Numbers", "Sizes", "clique", "spread", "summed"]

Numbers = npt.NDArray[np.float64]
#: Attributes by number, rising.
Clique = tuple[int, ...]


def clique(attributes: Iterable[int]) -> Clique:
    """Return attributes as a clique: each once, rising.

    >>> clique([3, 1, 3])
    (1, 3)
    """
    return tuple(sorted(set(attributes)))


@dataclasses.dataclass(frozen=True)
class Sizes:
    """The number of codes of each attribute.

    Examples
    --------
    >>> Sizes((2, 3, 4)).shape((0, 2)), Sizes((2, 3, 4)).cells((0, 2))
    ((2, 4), 8)
    """

    codes: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.codes)

    def shape(self, attributes: Clique) -> tuple[int, ...]:
        """Return the shape of a table over attributes."""
        return tuple(self.codes[attribute] for attribute in attributes)

    def cells(self, attributes: Clique) -> int:
        """Return the number of cells of a table over attributes."""
        return math.prod(self.shape(attributes))


def summed(table: Numbers, over: Clique, kept: Clique) -> Numbers:
    """Return a table over fewer attributes.

    >>> summed(np.ones((2, 3)), (0, 1), (1,)).tolist()
    [2.0, 2.0, 2.0]
    """
    axes = tuple(place for place, attribute in enumerate(over) if attribute not in kept)
    return table.sum(axis=axes) if axes else table


def spread(table: Numbers, own: Clique, over: Clique) -> Numbers:
    """Return a table in a shape that broadcasts over more attributes.

    >>> spread(np.ones(3), (1,), (0, 1)).shape
    (1, 3)
    """
    shape = iter(table.shape)
    return table.reshape([next(shape) if attribute in own else 1 for attribute in over])
