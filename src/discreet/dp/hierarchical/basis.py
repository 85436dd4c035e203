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
#: Multiplications that one thread does faster than several.
_ALONE = 200_000


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


def _times(rows: Floats, matrix: Floats) -> Floats:
    """Multiply many short rows by a small square matrix, in pieces.

    Libraries of linear algebra spread a larger product over threads, which then wait for each other
    longer than they compute.
    """
    size = len(matrix)
    piece = max(_ALONE // size**2, 1)
    whole = len(rows) // piece * piece
    found = np.empty((len(rows), size))
    rows = np.ascontiguousarray(rows, dtype=np.float64)
    np.matmul(
        rows[:whole].reshape(-1, piece, size), matrix, out=found[:whole].reshape(-1, piece, size)
    )
    np.matmul(rows[whole:], matrix, out=found[whole:])
    return found


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
            return _times(histograms, self._dense.T)
        return along(histograms, self.matrices)

    def backward(self, coordinates: Floats) -> Floats:
        """Return the histograms with these coordinates."""
        if self._dense is not None:
            return _times(coordinates, self._dense)
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
        return np.where(self.seen(query), float(math.prod(self.sizes[a] for a in left)), 0.0)

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
        found[:, self.seen(query)] = kept * math.sqrt(math.prod(self.sizes[a] for a in left))
        return found

    def seen(self, query: Query) -> npt.NDArray[np.bool_]:
        """Return which coordinates a marginal determines."""
        left = [a for a in range(len(self.sizes)) if a not in query]
        return np.asarray(~self.supports[:, left].any(axis=1))

    def coordinates(self, answers: Floats, query: Query) -> Floats:
        """Return the coordinates that exact marginals determine: those that are seen.

        >>> basis = Basis((2, 3))
        >>> counts = np.arange(6.0)[None, :]
        >>> found = basis.coordinates(basis.answers(counts, (1,)).astype(float), (1,))
        >>> bool(np.allclose(found, basis.forward(counts)[:, basis.seen((1,))]))
        True
        """
        seen = self.seen(query)
        return np.asarray(self.spread(answers, query)[:, seen] / self.eigenvalues(query)[seen])

    def groups(self, query: Query) -> npt.NDArray[np.int64]:
        """Return for each cell which cell of a marginal it belongs to."""
        found = np.zeros(self.cells, dtype=np.int64)
        for attribute in query:
            inside = math.prod(self.sizes[attribute + 1 :])
            place = np.arange(self.cells) // inside % self.sizes[attribute]
            found = found * self.sizes[attribute] + place
        return found

    def precisions(self, variances: Mapping[Query, float]) -> Floats:
        """Return the precision of each coordinate where queries are measured with these variances."""
        found = np.zeros(self.cells)
        for query, variance in variances.items():
            found += self.eigenvalues(query) / variance
        return found
