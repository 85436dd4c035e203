"""Certificates by the hundred thousand: deviations in flat arrays, checked together.

Nothing is taken on trust. Each deviation is compared with the equations, with the room of its
cells and with what is published; what each attacker knows is compared with each deviation.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
from scipy import sparse

from discreet.audit.knowledge import Contributors

__all__ = ["Certificates"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

#: Alternative tables that are checked against the equations at a time.
_CHUNK = 20_000
#: Largest residual of an equation, relative to the largest move of the alternative table.
_BALANCE = 1e-7


@dataclasses.dataclass(frozen=True, eq=False)
class Certificates:
    """Many deviations in three arrays: where each begins, its cells and how far they move."""

    start: Ints
    cells: Ints
    moves: Floats

    @classmethod
    def of(cls, several: Iterable[tuple[Ints, Floats]]) -> Certificates:
        """Put deviations one after the other; they may come in such arrays already."""
        if isinstance(several, Certificates):
            return several
        pairs: Sequence[tuple[Ints, Floats]] = list(several)
        lengths = [len(cells) for cells, _ in pairs]
        return cls(
            np.cumsum([0, *lengths]).astype(np.int64),
            np.concatenate([np.zeros(0, np.int64), *(cells for cells, _ in pairs)]),
            np.concatenate([np.zeros(0), *(moves for _, moves in pairs)]),
        )

    def __len__(self) -> int:
        return len(self.start) - 1

    def __iter__(self) -> Iterator[tuple[Ints, Floats]]:
        for low, high in itertools.pairwise(self.start.tolist()):
            yield self.cells[low:high], self.moves[low:high]

    @classmethod
    def joined(cls, several: Sequence[Certificates]) -> Certificates:
        """Return all of them in one."""
        lengths = np.concatenate([np.diff(one.start) for one in several])
        return cls(
            np.concatenate([[0], lengths.cumsum()]).astype(np.int64),
            np.concatenate([one.cells for one in several]),
            np.concatenate([one.moves for one in several]),
        )

    @property
    def rows(self) -> Ints:
        """The number of its certificate for each entry."""
        return np.repeat(np.arange(len(self)), np.diff(self.start))

    def valid(
        self,
        equations: sparse.csc_matrix,
        down: Floats,
        up: Floats,
        withheld: Bools,
        *,
        whole: bool = False,
    ) -> Certificates:
        """Return those that keep the equations, the room of each cell and what is published.

        Where only `whole` numbers count, those that move a cell by a fraction are left out.
        """
        rows = self.rows
        slack = 1e-7 * np.maximum(np.abs(self.moves), 1e-12)
        bad = ~withheld[self.cells] | (self.moves > up[self.cells] + slack)
        bad |= self.moves < -down[self.cells] - slack
        if whole:
            bad |= np.abs(self.moves - np.round(self.moves)) > 1e-9
        good = np.ones(len(self), dtype=bool)
        good[rows[bad]] = False
        largest = np.zeros(len(self))
        np.maximum.at(largest, rows, np.abs(self.moves))
        across = sparse.csr_matrix(equations.T)
        for begin in range(0, len(self), _CHUNK):
            end = min(begin + _CHUNK, len(self))
            part = slice(self.start[begin], self.start[end])
            matrix = sparse.csr_matrix(
                (self.moves[part], (rows[part] - begin, self.cells[part])),
                shape=(end - begin, equations.shape[1]),
            )
            residual = sparse.coo_matrix(abs(matrix @ across))
            wrong = residual.data > _BALANCE * largest[begin:end][residual.row]
            good[begin + residual.row[wrong]] = False
        return self if good.all() else self._chosen(good)

    def _chosen(self, which: Bools) -> Certificates:
        lengths = np.diff(self.start)
        entries = np.repeat(which, lengths)
        return Certificates(
            np.concatenate([[0], lengths[which].cumsum()]).astype(np.int64),
            self.cells[entries],
            self.moves[entries],
        )

    def mirrored(self, down: Floats, up: Floats) -> Certificates:
        """Return the mirror images of those that have room for them."""
        fits = (self.moves <= down[self.cells]) & (-self.moves <= up[self.cells])
        whole = np.ones(len(self), dtype=bool)
        whole[self.rows[~fits]] = False
        chosen = self._chosen(whole)
        return Certificates(chosen.start, chosen.cells, -chosen.moves)

    def believed(
        self, wanted: Bools, direction: int, need: Floats, knowledge: Contributors | None
    ) -> Ints:
        """Return the cells moved up (+1) or down by their need in the eyes of every attacker.

        A cell may be moved by several certificates; it counts if every attacker must believe one
        of them. Attackers whose target is no secret to them are left out.
        """
        enough = wanted[self.cells] & (direction * self.moves >= need[self.cells])
        reached = np.flatnonzero(enough)
        if knowledge is None or not len(reached):
            return np.unique(self.cells[reached])
        from discreet.audit.certificates._belief import believed

        reached = reached[np.argsort(self.cells[reached], kind="stable")]
        order = np.argsort(knowledge.cell, kind="stable")
        starts = np.searchsorted(knowledge.cell[order], np.arange(len(knowledge.owner) + 1))
        in_pool = np.isin(knowledge.owner, sorted(knowledge.pool))
        met = believed(
            self.cells[reached],
            self.rows[reached],
            *(self.start, self.cells, self.moves),
            *(knowledge.same, knowledge.owner),
            np.where(in_pool, knowledge.pool_number, knowledge.owner),
            starts.astype(np.int64),
            *(knowledge.who[order], knowledge.fall[order], knowledge.sole[order]),
        )
        return np.unique(self.cells[reached][met])
