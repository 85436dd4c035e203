"""Dependent rounding: floors and ceilings, margins kept, right on average."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from discreet.dp.hierarchical.nonnegative import fill_margins
from discreet.dp.hierarchical.rounding import round_blocks
from tests.dp.hierarchical.reference import rounded


def draw_matrix(rng: np.random.Generator, *, whole_rows: bool) -> Any:
    rows, columns = int(rng.integers(1, 9)), int(rng.integers(1, 9))
    start = rng.exponential(2.0, (rows, columns)) * (rng.random((rows, columns)) < 0.7)
    target = rng.multinomial(int(rng.integers(0, 40)), np.full(rows * columns, 1 / rows / columns))
    totals = target.reshape(rows, columns).sum(axis=0)[None, :].astype(float)
    sums = target.reshape(rows, columns).sum(axis=1).astype(float) if whole_rows else None
    return fill_margins(start, np.array([0, rows]), totals, sums)


def require_rounded(matrix: Any, done: Any) -> None:
    assert ((done == np.floor(matrix + 1e-6)) | (done == np.ceil(matrix - 1e-6))).all()
    assert np.abs(done.sum(axis=0) - matrix.sum(axis=0)).max() < 1e-6
    assert (done.sum(axis=1) >= np.floor(matrix.sum(axis=1) + 1e-6)).all()
    assert (done.sum(axis=1) <= np.ceil(matrix.sum(axis=1) - 1e-6)).all()


@pytest.mark.parametrize("whole_rows", [True, False])
def test_entries_go_to_floor_or_ceiling_and_margins_stay(whole_rows: bool) -> None:
    rng = np.random.default_rng(1)
    for _ in range(2000):
        matrix = draw_matrix(rng, whole_rows=whole_rows)
        done = round_blocks(matrix, np.array([0, len(matrix)]), rng.random(matrix.size))
        require_rounded(matrix, done)


@pytest.mark.parametrize("whole_rows", [True, False])
def test_the_kernel_is_the_plain_one(whole_rows: bool) -> None:
    rng = np.random.default_rng(4)
    for _ in range(300):
        matrix = draw_matrix(rng, whole_rows=whole_rows)
        lots = rng.random(matrix.size)
        done = round_blocks(matrix, np.array([0, len(matrix)]), lots)
        assert done.tolist() == rounded(matrix, iter(lots))


@pytest.mark.parametrize("whole_rows", [True, False])
def test_the_mean_over_draws_is_the_fraction(whole_rows: bool) -> None:
    rng, repeats = np.random.default_rng(2), 20_000
    matrix = draw_matrix(rng, whole_rows=whole_rows)
    while matrix.size < 12 or ((matrix % 1) > 0.01).sum() < 8:
        matrix = draw_matrix(rng, whole_rows=whole_rows)
    starts = np.arange(repeats + 1) * len(matrix)
    many = round_blocks(np.tile(matrix, (repeats, 1)), starts, rng.random(repeats * matrix.size))
    mean = many.reshape(repeats, *matrix.shape).mean(axis=0)
    part = matrix - np.floor(matrix)
    error = np.sqrt(part * (1 - part) / repeats)
    assert (np.abs(mean - matrix) <= 4 * error + 1e-5).all()


@pytest.mark.parametrize("lot", [0.0, 1 - 1e-9])
def test_whole_rows_stay_where_fractions_next_to_whole_leave_a_rest(lot: float) -> None:
    # Three fractions count as whole, so that the fourth of a whole row is not quite whole: no lot
    # may take it from one row to the other.
    tiny = 0.9e-6
    matrix = np.array([[tiny] * 3 + [1 - 3 * tiny], [1 - tiny] * 3 + [3 * tiny]])
    done = round_blocks(matrix, np.array([0, 2]), np.full(matrix.size, lot))
    assert done.sum(axis=1).tolist() == [1, 3]
    assert done.sum(axis=0).tolist() == [1, 1, 1, 1]


def test_blocks_do_not_mix() -> None:
    matrix = np.array([[0.5], [0.5], [0.25], [0.75]])
    for seed in range(20):
        lots = np.random.default_rng(seed).random(4)
        done = round_blocks(matrix, np.array([0, 2, 4]), lots)
        assert done[:2].sum() == done[2:].sum() == 1


def test_a_large_block_is_rounded() -> None:
    rng = np.random.default_rng(3)
    start = rng.exponential(1.0, (700, 40))
    totals = np.round(start.sum(axis=0))[None, :]
    matrix = fill_margins(start, np.array([0, 700]), totals)
    done = round_blocks(matrix, np.array([0, 700]), rng.random(matrix.size))
    require_rounded(matrix, done)
