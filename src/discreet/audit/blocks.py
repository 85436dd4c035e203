"""Alternative databases block by block, where releases share some attributes.

Parts of all releases that overlap make a block: with tables by region, sector and one attribute more
a block is a region and sector. Within a block the sums that are told of its parts are kept by a
direct solution (Cholesky); what is told across blocks are sums over withheld parts, few enough
for one small system. Each withheld part gets the alternative that moves it with the least change
elsewhere; all others are combinations of these. Every one is compared with what is told before
anything is concluded from it.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import linalg, sparse
from scipy.sparse import csgraph
from scipy.sparse.linalg import splu

from discreet.audit.alternatives import BALANCE, STILL
from discreet.progress import require_time

__all__ = ["Blocks", "Layout", "Split"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

#: Told parts and withheld parts of a block, and numbers kept for all blocks; else blocks are too
#: large, and alternatives are found over all atoms at once.
_MOST_TOLD, _MOST_WITHHELD, _MOST_KEPT = 3_000, 1_500, 60_000_000
#: Multiplications that all factors together may take.
_MOST_WORK = 4e11
#: Sums across blocks.
_MOST_ACROSS = 12_000
#: Added to the diagonal, since what is told is dependent; what it spoils the refinement mends.
_RIDGE = 1e-9
_REFINEMENTS = 8
#: Alternatives for single withheld parts keep told sums far better than is asked for in the end,
#: since many of them are added up.
_FINE = 1e-14
#: Into how many alternatives the open cells are divided, round by round; at last one for each.
_GROUPS = (8, 16, 64)
#: Of an amount so much may go before its scale is made smaller, and by how much.
_GONE, _LESS = 0.5, 0.5
#: Alternatives that are looked at together.
_BATCH = 64


@dataclasses.dataclass(frozen=True, eq=False)
class Split:
    """What one release tells: of each part, whether it is told by itself, and larger sums."""

    single: Bools
    #: Told sums over parts that are not told by themselves.
    across: sparse.csr_matrix


@dataclasses.dataclass(frozen=True, eq=False)
class Layout:
    """Atoms in the order of their blocks, with the numbers of their parts in every release."""

    order: Ints
    starts: Ints
    #: (atoms, releases): the number of the part among all parts; −1 where it is in none.
    codes: npt.NDArray[np.int32]
    #: Where the numbers of each release's parts begin.
    offsets: Ints

    @classmethod
    def of(cls, parts: Sequence[Ints], sizes: Sequence[int]) -> Layout:
        """Find the blocks from the part of each atom in each release, and how many parts there are.

        >>> found = Layout.of([np.array([0, 1, 0, 1]), np.array([0, 2, 1, 2])], [2, 3])
        >>> found.order.tolist(), found.starts.tolist()
        ([0, 2, 1, 3], [0, 2, 4])
        """
        label = np.arange(len(parts[0]), dtype=np.int64)
        for one, size in zip(parts, sizes, strict=True):
            inside = one >= 0
            count = int(label.max(initial=-1)) + 1
            shape = (count + size, count + size)
            links = sparse.coo_matrix(
                (np.ones(int(inside.sum()), bool), (label[inside], count + one[inside])), shape
            )
            _, joined = csgraph.connected_components(links, directed=False)
            used = np.unique(joined[:count])
            label = np.searchsorted(used, joined[label])
        order = np.argsort(label, kind="stable").astype(np.int64)
        starts = np.searchsorted(label[order], np.arange(int(label.max(initial=-1)) + 2))
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        codes = np.empty((len(label), len(parts)), dtype=np.int32)
        for place, one in enumerate(parts):
            codes[:, place] = np.where(one >= 0, one + offsets[place], -1)[order]
        return cls(order, starts.astype(np.int64), codes, offsets)


@dataclasses.dataclass(frozen=True, eq=False)
class _Block:
    """What was found of one block."""

    #: Numbers of its told and its withheld parts.
    told: Ints
    withheld: Ints
    #: For each withheld part the length of a move of all its atoms by their scales.
    norm: Floats
    #: (atoms, withheld parts): the alternative that moves a part, and (atoms, draws): random ones,
    #: both in parts of the atoms' scales; and how the withheld parts move with each.
    ways: Floats
    draws: Floats
    within: Floats
    drawn: Floats


class Blocks:
    """Alternative databases of all atoms, put together from those of blocks."""

    def __init__(
        self, layout: Layout, splits: Sequence[Split], scale: Floats, found: Sequence[_Block]
    ) -> None:
        self.layout, self.scale, self._found, self._splits = layout, scale, found, splits
        self._parts = np.concatenate([one.withheld for one in found])
        self._norm = np.concatenate([one.norm for one in found])
        many = [len(one.withheld) for one in found]
        self._starts = np.concatenate([[0], np.cumsum(many)]).astype(np.int64)
        full = [one.within for one in found if len(one.withheld)]
        size = len(self._parts)
        within = sparse.block_diag(full, format="csr") if full else sparse.csr_matrix((0, 0))
        self._within = sparse.csr_matrix(within)
        self._place = np.full(int(layout.offsets[-1]), -1, dtype=np.int64)
        self._place[self._parts] = np.arange(size)
        rows = [self._over(one.across, t) for t, one in enumerate(splits)]
        across = sparse.csr_matrix(sparse.vstack(rows)) if rows else sparse.csr_matrix((0, size))
        across = sparse.csr_matrix(across @ sparse.diags(self._norm))
        length = np.sqrt(np.asarray(across.multiply(across).sum(axis=1)).ravel())
        across = across[length > 0]
        self._across = sparse.csr_matrix(sparse.diags(1 / length[length > 0]) @ across)
        self._back = sparse.csr_matrix(self._across.T)
        system = self._across @ self._within @ self._back
        self._solver = None
        if system.shape[0]:
            ridge = _RIDGE * sparse.identity(system.shape[0])
            self._solver = splu(
                sparse.csc_matrix(system + ridge),
                permc_spec="MMD_AT_PLUS_A",
                options={"SymmetricMode": True},
            )

    def _over(self, rows: sparse.csr_matrix, release: int) -> sparse.csr_matrix:
        """Return sums over parts of a release as sums over the withheld parts of all blocks."""
        several = sparse.coo_matrix(rows)
        place = self._place[several.col + self.layout.offsets[release]]
        some = place >= 0  # the others are told by themselves, or hold nobody
        shape = (rows.shape[0], len(self._parts))
        return sparse.csr_matrix((several.data[some], (several.row[some], place[some])), shape)

    @classmethod
    def of(
        cls,
        layout: Layout,
        splits: Sequence[Split],
        scale: Floats,
        rng: np.random.Generator,
        draws: int,
        kept: dict[int, _Block],
    ) -> Blocks | None:
        """Find alternatives for every block; None where blocks are too large, or do not converge.

        `kept` holds what was found before, and takes what is found: a block of which the same is
        told has the same alternatives.
        """
        from discreet.audit._block_kernels import numbered

        told = np.zeros(int(layout.offsets[-1]), dtype=bool)
        for start, split in zip(layout.offsets, splits, strict=False):
            told[start : start + len(split.single)] = split.single
        if sum(one.across.shape[0] for one in splits) > _MOST_ACROSS:
            return None
        place = np.full(len(told), -1, dtype=np.int64)
        found, room, work = [], 0, 0.0
        own = scale[layout.order]
        for number in range(len(layout.starts) - 1):
            require_time()
            start, end = layout.starts[number], layout.starts[number + 1]
            codes = layout.codes[start:end]
            rows, known = numbered(codes, told, place)
            others, hidden = numbered(codes, ~told, place)
            room += (end - start) * (len(hidden) + draws)
            work += len(known) ** 3 / 3
            if (
                len(known) > _MOST_TOLD or len(hidden) > _MOST_WITHHELD
                or room > _MOST_KEPT or work > _MOST_WORK
            ):  # fmt: skip
                return None
            before = kept.get(number)
            if before is not None and np.array_equal(before.told, known):
                found.append(before)
                continue
            with _alone():
                block = _solved(rows, known, others, hidden, own[start:end], rng, draws)
            if block is None:
                return None
            kept[number] = block
            found.append(block)
        return cls(layout, splits, scale, found)

    def _balanced(self, wishes: Floats, drawn: Floats | None = None) -> Floats:
        """Return wishes for withheld parts, changed as little as keeps the sums across blocks.

        Those that cannot be balanced are nothing, or not a number where they start from draws.
        """
        found = wishes.copy()
        most = np.maximum(np.abs(wishes).max(axis=0, initial=0.0), 1.0)
        for _ in range(_REFINEMENTS):
            require_time()
            moves = self._within @ found
            if drawn is not None:
                moves = moves + drawn
            left = np.asarray(self._across @ moves)
            wrong = np.abs(left).max(axis=0, initial=0.0)
            if (wrong <= 0.1 * BALANCE * most).all() or self._solver is None:
                break
            found -= self._back @ self._solver.solve(left)
        moves = self._within @ found
        left = np.asarray(self._across @ (moves if drawn is None else moves + drawn))
        wrong = np.abs(left).max(axis=0, initial=0.0)
        # What is told within a block is kept by each of its ways; their errors add up at most.
        total = np.zeros(found.shape[1])
        for start, end in itertools.pairwise(self._starts):
            total = np.maximum(total, np.abs(found[start:end]).sum(axis=0))
        good = (wrong <= BALANCE * most) & (total * _FINE <= BALANCE * most)
        found[:, ~good] = 0.0 if drawn is None else np.nan
        return found

    def alternatives(self) -> Floats | None:
        """Return random moves of all atoms, in parts of their scales, that leave what is told."""
        drawn = np.concatenate([one.drawn for one in self._found])
        wishes = np.zeros_like(drawn)
        by = self._balanced(wishes, drawn)
        if not np.isfinite(by).all():
            return None
        moves = np.empty((len(self.scale), drawn.shape[1]))
        for number, block in enumerate(self._found):
            own = by[self._starts[number] : self._starts[number + 1]]
            place = slice(self.layout.starts[number], self.layout.starts[number + 1])
            moves[self.layout.order[place]] = block.draws + block.ways @ own
        return moves

    def unmoved(
        self,
        there: Floats,
        cells: Sequence[tuple[int, sparse.csr_matrix]],
        levels: tuple[Floats, Floats],
        rng: np.random.Generator,
    ) -> tuple[Ints, Bools]:
        """Return the cells not shown to reach so far below and above, all amounts positive.

        `cells` are sums over parts of releases, by the number of the release. Also returned are the
        atoms whose amounts end too soon when such a cell moves: with smaller scales more is shown.
        """
        rows = sparse.vstack([self._over(one, release) for release, one in cells], format="csr")
        rows = sparse.csr_matrix(rows @ sparse.diags(self._norm))
        # A move of less than this may be what rounding makes of none.
        still = STILL * np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())[:, None]
        within = sparse.csr_matrix(rows @ self._within)
        ease = np.asarray(within.multiply(rows).sum(axis=1)).ravel()
        below, above = levels[0] <= 0, levels[1] <= 0
        need = np.maximum(*levels)
        gain = np.where(ease > 0, need / np.where(ease > 0, ease, 1.0), 0.0)
        order = self.layout.order
        share = np.where(there > 0, self.scale / np.where(there > 0, there, 1.0), 0.0)[order]
        for groups in (*_GROUPS, 0):
            open_ = np.flatnonzero(~(below & above) & (gain > 0))
            if not len(open_):
                break
            many = min(groups, len(open_)) or len(open_)
            member = rng.permutation(len(open_)) % many
            sign = rng.choice([-1.0, 1.0], len(open_)) if groups else np.ones(len(open_))
            for first in range(0, many, _BATCH):
                chosen = (member >= first) & (member < first + _BATCH)
                some = open_[chosen]
                columns = min(_BATCH, many - first)
                pick = sparse.csr_matrix(
                    (sign[chosen] * gain[some], (member[chosen] - first, np.arange(len(some)))),
                    (columns, len(some)),
                )
                wishes = np.asarray((pick @ rows[some]).T.todense(), dtype=np.float64)
                wishes /= np.maximum(np.abs(wishes).max(axis=0, initial=0.0), 1e-300)
                by = self._balanced(wishes)
                with _alone():
                    fall, rise = self._ends(by, share)
                moved = within @ by
                moved = np.where(np.abs(moved) < still, 0.0, moved)
                for way, far in ((moved, fall), (-moved, rise)):
                    reached = way * np.minimum(far, 1e9)
                    below |= (-reached >= levels[0][:, None]).any(axis=1)
                    above |= (reached >= levels[1][:, None]).any(axis=1)
                if groups:
                    # Cells that others hold fast are pulled harder the next time.
                    mine = np.abs(moved[some, member[chosen] - first])
                    middle = np.median(mine / need[some]) if len(some) else 1.0
                    gain[some] *= np.clip(middle * need[some] / np.maximum(mine, 1e-300), 0.5, 20.0)
        left = np.flatnonzero(~(below & above))
        return left, self._ending(rows, within, left, levels, share)

    def _ending(
        self,
        rows: sparse.csr_matrix,
        within: sparse.csr_matrix,
        left: Ints,
        levels: tuple[Floats, Floats],
        share: Floats,
    ) -> Bools:
        """Return the atoms of which most is gone when one of a few cells moves as far as it must."""
        tight = np.zeros(len(self.scale), dtype=bool)
        left = left[:_BATCH]
        wishes = np.asarray(rows[left].T.todense(), dtype=np.float64)
        wishes /= np.maximum(np.abs(wishes).max(axis=0, initial=0.0), 1e-300)
        by = self._balanced(wishes)
        moved = np.asarray((within[left] @ by).diagonal())
        unit = np.where(moved > 0, 1 / np.where(moved > 0, moved, 1.0), 0.0)
        for number, block in enumerate(self._found):
            own = by[self._starts[number] : self._starts[number + 1]]
            place = slice(self.layout.starts[number], self.layout.starts[number + 1])
            moves = (block.ways @ own) * share[place, None] * unit
            gone = (moves * levels[0][left] > _GONE) | (moves * levels[1][left] < -_GONE)
            tight[self.layout.order[place]] = gone.any(axis=1)
        return tight

    def tightened(self, tight: Bools, rng: np.random.Generator) -> Blocks | None:
        """Return alternatives in which these atoms move less."""
        scale = np.where(tight, _LESS * self.scale, self.scale)
        draws = self._found[0].draws.shape[1]
        touched = np.add.reduceat(tight[self.layout.order], self.layout.starts[:-1])
        kept = {number: self._found[number] for number in np.flatnonzero(touched == 0).tolist()}
        return type(self).of(self.layout, self._splits, scale, rng, draws, kept)

    def _ends(self, by: Floats, share: Floats) -> tuple[Floats, Floats]:
        """Return how far combinations of alternatives go until an amount is nothing, both ways."""
        low, high = np.zeros(by.shape[1]), np.zeros(by.shape[1])
        for number, block in enumerate(self._found):
            own = by[self._starts[number] : self._starts[number + 1]]
            if not len(own):
                continue
            place = slice(self.layout.starts[number], self.layout.starts[number + 1])
            moves = (block.ways @ own) * share[place, None]
            low = np.minimum(low, moves.min(axis=0))
            high = np.maximum(high, moves.max(axis=0))
        tiny = 1e-300
        return 1 / np.maximum(-low, tiny), 1 / np.maximum(high, tiny)


def _alone() -> Any:
    """Let one thread multiply: several wait for each other longer than blocks of this size take."""
    from threadpoolctl import (  # type: ignore[import-untyped]  # it has no annotations
        threadpool_limits,
    )

    return threadpool_limits(1, user_api="blas")


def _solved(
    rows: Ints,
    told: Ints,
    others: Ints,
    withheld: Ints,
    scale: Floats,
    rng: np.random.Generator,
    draws: int,
) -> _Block | None:
    """Return the alternatives of one block; None where they do not keep what is told."""
    from discreet.audit._block_kernels import added, gram, spread

    norm = np.sqrt(_squares(others, scale**2, len(withheld)))
    norm = np.where(norm > 0, norm, 1.0)
    moves = np.zeros((len(scale), len(withheld) + draws))
    atom, column = np.nonzero(others >= 0)
    part = others[atom, column]
    moves[atom, part] = scale[atom] / norm[part]
    moves[:, len(withheld) :] = rng.standard_normal((len(scale), draws))
    # In parts of the scale: rows have entries `scale`, and a length of one.
    if len(told):
        weight = scale**2
        products = gram(rows, weight, len(told))
        length = np.sqrt(np.diagonal(products))
        length = np.where(length > 0, length, 1.0)
        products /= length[:, None]
        products /= length[None, :]
        np.fill_diagonal(products, np.diagonal(products) + _RIDGE)
        products[np.diagonal(products) <= _RIDGE, np.diagonal(products) <= _RIDGE] = 1.0
        try:
            factor = linalg.cho_factor(products, lower=True, overwrite_a=True, check_finite=False)
        except linalg.LinAlgError:
            return None
        for _ in range(_REFINEMENTS):
            left = added(rows, moves * scale[:, None], len(told)) / length[:, None]
            if not np.isfinite(left).all():
                return None
            if np.abs(left).max(initial=0.0) <= _FINE:
                break
            by = linalg.cho_solve(factor, left, check_finite=False) / length[:, None]
            spread(rows, scale, np.ascontiguousarray(by), moves)
        else:
            return None
    # How the withheld parts move, in parts of their own lengths.
    sums = added(others, moves * scale[:, None], len(withheld)) / norm[:, None]
    many = len(withheld)
    return _Block(
        told, withheld, norm, moves[:, :many].copy(), moves[:, many:].copy(), sums[:, :many],
        sums[:, many:],
    )  # fmt: skip


def _squares(others: Ints, weight: Floats, size: int) -> Floats:
    """Return the sum of weights in each withheld part."""
    atom, column = np.nonzero(others >= 0)
    found: Floats = np.bincount(others[atom, column], weight[atom], size).astype(np.float64)
    return found
