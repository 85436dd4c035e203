"""The analysis-of-variance basis: coordinates in which every marginal query is diagonal.

A histogram over crossed attributes is turned by the Kronecker product of orthonormal matrices whose
first row is constant. A coordinate belongs to the set of attributes in which it is not constant, its
support; a marginal sees it only if it keeps all of these attributes.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["Basis", "along", "helmert"]

Floats = npt.NDArray[np.float64]
Query = tuple[int, ...]
#: Up to so many cells one dense matrix is faster than one multiplication per attribute.
_DENSE = 64


def helmert(size: int) -> Floats:
    """Return an orthonormal matrix whose first row is constant.

    >>> matrix = helmert(3)
    >>> bool(np.allclose(matrix @ matrix.T, np.eye(3))), matrix[0].round(4).tolist()
    (True, [0.5774, 0.5774, 0.5774])
    """
    matrix = np.zeros((size, size))
    matrix[0] = 1 / math.sqrt(size)
    for row in range(1, size):
        matrix[row, :row] = 1 / math.sqrt(row * (row + 1))
        matrix[row, row] = -row / math.sqrt(row * (row + 1))
    return matrix


def along(arrays: npt.NDArray[np.float64], matrices: Sequence[Floats]) -> Floats:
    """Multiply each axis after the first by a matrix, and return one row per node again.

    >>> along(np.array([[1.0, 2.0, 3.0, 4.0]]), [np.ones((1, 2)), np.eye(2)]).tolist()
    [[4.0, 6.0]]
    """
    nodes = len(arrays)
    shape = (nodes, *(matrix.shape[1] for matrix in matrices))
    found = np.asarray(arrays, dtype=np.float64).reshape(shape)
    for axis, matrix in enumerate(matrices, start=1):
        found = np.moveaxis(np.tensordot(found, matrix, axes=(axis, 1)), -1, axis)
    return np.ascontiguousarray(found).reshape(nodes, -1)


@dataclasses.dataclass(frozen=True)
class Basis:
    """The basis for histograms over attributes of these sizes; a query is the attributes it keeps.

    Examples
    --------
    >>> basis = Basis((2, 3))
    >>> basis.cells, basis.eigenvalues((1,)).tolist()
    (6, [2.0, 2.0, 2.0, 0.0, 0.0, 0.0])
    """

    sizes: tuple[int, ...]

    @functools.cached_property
    def cells(self) -> int:
        """Number of cells of a histogram."""
        return math.prod(self.sizes)

    @functools.cached_property
    def matrices(self) -> tuple[Floats, ...]:
        """The orthonormal matrix of each attribute."""
        return tuple(helmert(size) for size in self.sizes)

    @functools.cached_property
    def _dense(self) -> Floats | None:
        if self.cells > _DENSE:
            return None
        matrix: Floats = np.ones((1, 1))
        for part in self.matrices:
            matrix = np.asarray(np.kron(matrix, part), dtype=np.float64)
        return np.ascontiguousarray(matrix)

    def forward(self, histograms: Floats) -> Floats:
        """Return the coordinates of histograms, one row each."""
        if self._dense is not None:
            return np.asarray(histograms @ self._dense.T)
        return along(histograms, self.matrices)

    def backward(self, coordinates: Floats) -> Floats:
        """Return the histograms with these coordinates."""
        if self._dense is not None:
            return np.asarray(coordinates @ self._dense)
        return along(coordinates, [matrix.T for matrix in self.matrices])

    @functools.cached_property
    def supports(self) -> npt.NDArray[np.bool_]:
        """(cells, attributes): in which attributes a coordinate is not constant."""
        if not self.sizes:
            return np.zeros((1, 0), dtype=bool)
        places = np.indices(self.sizes).reshape(len(self.sizes), -1).T
        return np.asarray(places > 0)

    def eigenvalues(self, query: Query) -> Floats:
        """Return what a query makes of each coordinate: its squared length, if it is seen at all."""
        left = [a for a in range(len(self.sizes)) if a not in query]
        seen = ~self.supports[:, left].any(axis=1)
        return np.where(seen, float(math.prod(self.sizes[a] for a in left)), 0.0)

    def answers(self, histograms: npt.NDArray[np.generic], query: Query) -> npt.NDArray[np.generic]:
        """Return the marginal of each histogram, flat."""
        left = tuple(a + 1 for a in range(len(self.sizes)) if a not in query)
        cube = histograms.reshape(len(histograms), *self.sizes)
        return np.asarray(cube.sum(axis=left)).reshape(len(histograms), -1)

    def spread(self, answers: Floats, query: Query) -> Floats:
        """Return coordinates of the marginals written into every cell they sum: the adjoint of `answers`."""
        left = [a for a in range(len(self.sizes)) if a not in query]
        kept = along(answers, [self.matrices[a] for a in query])
        found = np.zeros((len(answers), self.cells))
        places = np.flatnonzero(~self.supports[:, left].any(axis=1))
        found[:, places] = kept * math.sqrt(math.prod(self.sizes[a] for a in left))
        return found

    def precisions(self, variances: Mapping[Query, float]) -> Floats:
        """Return the precision of each coordinate where queries are measured with these variances."""
        found = np.zeros(self.cells)
        for query, variance in variances.items():
            found += self.eigenvalues(query) / variance
        return found
