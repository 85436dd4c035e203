"""Secondary suppression on shares: further cells are withheld so that all margins can be opened.

A withheld cell is protected where the withheld cells hold a hypercube whose corners can give and
take what the cell needs: then another table with the same opened cells has another value there, for
the analyst and for every coalition of owners. The hypercube is the certificate; the comparisons are
made on shares, and of each step only which hypercube is the first that holds is opened.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from discreet.audit.rules._base import LevelBound
from discreet.protocols.arithmetic.comparison import negative, numbers
from discreet.protocols.arithmetic.node import Node
from discreet.protocols.arithmetic.shares import BitShares, Shares, stack
from discreet.protocols.joint.hypercubes import NONE, Candidates, Lattice
from discreet.protocols.joint.judging import Views, any_of

__all__ = ["Suppressor"]

Bools = npt.NDArray[np.bool_]
#: Hypercubes of a cell that are compared at once, how often, and cells in one step.
_CANDIDATES, _TRIALS, _BATCH = 32, 8, 64


@dataclasses.dataclass(frozen=True, eq=False)
class Suppressor:
    """Chooses the further cells at one node; all three nodes choose the same.

    Parameters
    ----------
    seen
        What each audience is left with, of all cells; with the largest contribution of each.
    level
        The most protection that any rule asks for.
    scales
        Whole units in one, for each measure.
    opened
        Opens bits that all may see: what they mean, the bits, and of how many cells.
    """

    node: Node
    lattice: Lattice
    seen: Views
    level: LevelBound
    scales: Mapping[str, int]
    opened: Callable[[str, BitShares, int], npt.NDArray[np.uint64]]

    def pattern(self, primary: Bools) -> Bools:
        """Return which cells are withheld, the sensitive ones and those that protect them."""
        if not primary.any():
            return primary
        withheld, empty = primary.copy(), self._empty(primary)
        waiting = [int(one) for one in np.flatnonzero(primary)]
        failed: dict[int, set[bytes]] = {one: set() for one in waiting}
        trials = dict.fromkeys(waiting, 0)
        step = 0
        while waiting:
            step += 1
            batch = self._apart(waiting)
            offered = [self._untried(one, withheld, empty, failed[one]) for one in batch]
            firsts = self._first_valid(batch, offered, step)
            for cell, several, first in zip(batch, offered, firsts, strict=True):
                trials[cell] += 1
                if first < len(several):
                    withheld[several.moved(first, self.lattice)] = True
                elif len(several) == _CANDIDATES and trials[cell] < _TRIALS:
                    failed[cell] |= {line.tobytes() for line in several.corners}
                    continue
                else:
                    self._give_up(cell, withheld, empty)
                waiting.remove(cell)
        return withheld

    def _empty(self, primary: Bools) -> Bools:
        """Open which of the other single cells hold nobody: they are opened as such anyway."""
        others = np.flatnonzero(self.lattice.leaves & ~primary)
        found = np.zeros(len(primary), dtype=np.bool_)
        if others.size:
            count = self.seen.count[0][others]
            bits = negative(self.node, count + self.node.constant(np.full(others.size, -1)))
            found[others] = self.opened("which cells hold nobody", bits, others.size) > 0
        return found

    def _give_up(self, cell: int, withheld: Bools, empty: Bools) -> None:
        """Withhold everything that a cell adds up, and all totals of it."""
        around = self.lattice.related(cell)
        withheld[around[~empty[around]]] = True

    def _apart(self, waiting: list[int]) -> list[int]:
        """Return cells that share no code, so that what protects one is not chosen twice."""
        taken: list[set[int]] = [set() for _ in self.lattice.shape]
        batch = []
        for cell in waiting:
            at = [int(one) for one in np.unravel_index(cell, self.lattice.shape)]
            if any(place in used for place, used in zip(at, taken, strict=True)):
                continue
            for place, used in zip(at, taken, strict=True):
                used.add(place)
            batch.append(cell)
            if len(batch) == _BATCH:
                break
        return batch

    def _untried(self, cell: int, withheld: Bools, empty: Bools, failed: set[bytes]) -> Candidates:
        found = self.lattice.candidates(cell, withheld, empty, _CANDIDATES + len(failed))
        kept = [
            place
            for place, line in enumerate(found.corners)
            if not failed or line.tobytes() not in failed
        ][:_CANDIDATES]
        return Candidates(found.corners[kept], tuple(of[kept] for of in found.moving))

    def _first_valid(self, batch: list[int], offered: list[Candidates], step: int) -> list[int]:
        """Return for each cell the place of its first hypercube that holds, or the number of them."""
        node = self.node
        slots = max(one.corners.shape[1] for one in offered)
        corners = np.full((slots, _CANDIDATES, len(batch)), NONE, dtype=np.int64)
        missing = np.ones((_CANDIDATES, len(batch)), dtype=np.bool_)
        for place, several in enumerate(offered):
            size, wide = several.corners.shape
            corners[:wide, :size, place] = several.corners.T
            missing[:size, place] = False
        primaries = np.array(batch)
        there = (corners != NONE).astype(np.int64)
        at = np.where(corners == NONE, 0, corners)
        somebody = numbers(node, negative(node, self.seen.count[:, primaries].times(-1)))
        rows = []
        for have, need in self._forms(primaries, somebody):
            short = have[:, at] - Shares(need.own[:, None, None], need.next[:, None, None])
            rows.append(short.times(np.broadcast_to(there, short.own.shape)))
        # A hypercube that does not exist never holds.
        absent = node.constant(np.where(missing, -1, 0)[None, None].repeat(len(rows[0]), 0))
        rows[0] = Shares(rows[0].own + absent.own, rows[0].next + absent.next)
        bad = negative(node, stack(rows))
        lists = [
            BitShares(bad.own[v, g, s], bad.next[v, g, s], bad.size)
            for v in range(len(rows))
            for g in range(len(rows[0]))
            for s in range(slots)
        ]
        holds = node.inverted(any_of(node, lists))
        width = 1
        while width < _CANDIDATES:  # whether this hypercube or one before it holds
            joined = node.either(holds[width:], holds[:-width])
            holds = BitShares(
                np.concatenate([holds.own[:width], joined.own]),
                np.concatenate([holds.next[:width], joined.next]),
                holds.size,
            )
            width *= 2
        what = f"step {step} of which further cells are withheld"
        found = self.opened(what, holds, len(batch))
        firsts = _CANDIDATES - found.astype(np.int64).sum(axis=0)
        return [
            int(first) if first < len(several) else len(several)
            for first, several in zip(firsts, offered, strict=True)
        ]

    def _forms(
        self, primaries: npt.NDArray[np.int64], somebody: Shares
    ) -> list[tuple[Shares, Shares]]:
        """Return what corners can give, of every cell, and what the sensitive cells need of it.

        A corner gives what it holds without its largest contributor, who knows its own part.
        """
        one = self.node.constant(np.full(self.seen.count.own.shape, 1))
        found = [(self.seen.count - one, somebody.times(max(self.level.contributors, 1)))]
        share: Fraction = self.level.share
        for name, (total, top, _) in self.seen.measures.items():
            assert top is not None  # stated of every cell where margins are asked for
            amount = int(np.ceil(self.level.amount * self.scales[name]))
            need = total[:, primaries].times(share.numerator)
            need = need + somebody.times(amount * share.denominator)
            found.append(((total - top[:, 0]).times(share.denominator), need))
        return found
