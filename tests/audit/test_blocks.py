"""Alternatives by blocks: what they show is so, by rank and by linear programs over all atoms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import optimize, sparse

from discreet.audit.alternatives import bound, told_parts
from discreet.audit.blocks import Blocks, Layout, Split

Case = tuple[Layout, list[Split], Any, list[np.ndarray]]


def _case(rng: np.random.Generator, atoms: int, codes: tuple[int, ...]) -> Case:
    """Return releases by region and one attribute each, with random told cells, also over atoms."""
    region = rng.integers(0, 3, atoms)
    splits, rows, parts = [], [], []
    for size in codes:
        part = region * size + rng.integers(0, size, atoms)
        cells = np.vstack([
            np.identity(3 * size), np.kron(np.identity(3), np.ones((1, size))),
            np.kron(np.ones((1, 3)), np.identity(size)),
        ])  # fmt: skip
        told = cells[rng.random(len(cells)) < 0.6]
        across, single = told_parts(sparse.csr_matrix(told))
        splits.append(Split(np.isin(np.arange(3 * size), single), across))
        rows.append(told[:, part])
        parts.append(part)
    sizes = [3 * size for size in codes]
    return Layout.of(parts, sizes), splits, np.vstack(rows), parts


@pytest.mark.parametrize("seed", range(12))
def test_atoms_move_where_the_rank_says_so(seed: int) -> None:
    rng = np.random.default_rng(seed)
    layout, splits, told, _ = _case(rng, 22, (2, 3, 2))
    scale = rng.uniform(0.3, 2.0, 22)
    blocks = Blocks.of(layout, splits, scale, rng, 4, {})
    assert blocks is not None
    moves = blocks.alternatives()
    assert moves is not None
    assert np.abs(told @ (moves * scale[:, None])).max() < 1e-9
    rank = np.linalg.matrix_rank(told)
    alone = [bool(np.linalg.matrix_rank(np.delete(told, n, axis=1)) < rank) for n in range(22)]
    assert bound(moves, pairs=False).tolist() == alone


@pytest.mark.parametrize("seed", range(12))
def test_cells_reach_no_further_than_they_can(seed: int) -> None:
    rng = np.random.default_rng(seed)
    layout, splits, told, parts = _case(rng, 26, (2, 3, 2))
    there = rng.lognormal(3, 1, 26)
    there[rng.integers(0, 26, 3)] = 0.0
    cells = [np.flatnonzero(parts[0] == one) for one in range(6)]
    ends = np.zeros((6, 2))
    for one, inside in enumerate(cells):
        for side, sign in enumerate((1.0, -1.0)):
            goal = sign * np.isin(np.arange(26), inside)
            found = optimize.linprog(goal, A_eq=told, b_eq=told @ there)
            ends[one, side] = np.inf if found.status == 3 else abs(found.fun - goal @ there)
    room = np.array([there[inside].sum() for inside in cells])
    rows = [(0, sparse.identity(6, format="csr"))]
    open_before = 6
    for share in (0.3, 0.1, 0.01):
        level = share * np.maximum(room, 1.0)
        blocks = Blocks.of(layout, splits, np.sqrt(there), rng, 1, {})
        assert blocks is not None
        left, _ = blocks.unmoved(there, rows, (np.minimum(level, room), level), rng)
        shown = np.setdiff1d(np.arange(6), left)
        assert (ends[shown, 0] >= np.minimum(level, room)[shown] * (1 - 1e-6)).all()
        assert (ends[shown, 1] >= level[shown] * (1 - 1e-6)).all()
        assert len(left) <= open_before
        open_before = len(left)


def test_amounts_that_end_too_soon_move_less() -> None:
    # One of five neighbours has almost nothing: the others must give what the cell takes.
    parts = [np.array([0, 0, 1, 2, 3, 4, 5]), np.zeros(7, np.int64)]
    layout = Layout.of(parts, [6, 1])
    splits = [
        Split(np.zeros(6, bool), sparse.csr_matrix((0, 6))),
        Split(np.ones(1, bool), sparse.csr_matrix((0, 1))),
    ]
    there = np.array([30.0, 30.0, 0.01, 40.0, 40.0, 40.0, 40.0])
    rng = np.random.default_rng(1)
    blocks = Blocks.of(layout, splits, np.ones(7), rng, 1, {})
    assert blocks is not None
    cells = [(0, sparse.csr_matrix(np.identity(6)[:1]))]
    levels = np.array([50.0]), np.array([50.0])
    left, tight = blocks.unmoved(there, cells, levels, rng)
    assert left.tolist() == [0]
    assert tight[2]
    for _ in range(12):
        again = blocks.tightened(tight, rng)
        assert again is not None
        blocks = again
        left, tight = blocks.unmoved(there, cells, levels, rng)
        if not len(left):
            break
    assert not len(left)


def test_blocks_that_are_too_large_are_left_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    layout, splits, _, _ = _case(rng, 22, (2, 3))
    monkeypatch.setattr("discreet.audit.blocks._MOST_TOLD", 1)
    assert Blocks.of(layout, splits, np.ones(22), rng, 4, {}) is None
