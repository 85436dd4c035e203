"""The tree estimate against dense generalised least squares."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from discreet.dp.hierarchical.basis import Basis, along
from discreet.dp.hierarchical.budget import allocate
from discreet.dp.hierarchical.estimation import linear_estimate
from discreet.dp.hierarchical.measurement import Measurements, measure
from discreet.dp.hierarchical.tree import variance_of_sum
from tests.dp.hierarchical.instances import draw_leaves, draw_measured, draw_shares, draw_spine


def descend(measured: Measurements) -> list[Any]:
    """Return, per level, the matrix that sums leaf cells to the cells of its nodes."""
    spine, cells = measured.spine, measured.basis.cells
    found = [np.eye(spine.sizes[-1])]
    for number in range(spine.depth - 1, 0, -1):
        above = np.zeros((spine.sizes[number - 1], spine.sizes[number]))
        above[spine.parents[number - 1], np.arange(spine.sizes[number])] = 1
        found.insert(0, above @ found[0])
    return [np.kron(one, np.eye(cells)) for one in found]


def marginal(basis: Basis, query: tuple[int, ...]) -> Any:
    matrix = np.eye(1)
    for place, size in enumerate(basis.sizes):
        matrix = np.kron(matrix, np.eye(size) if place in query else np.ones((1, size)))
    return matrix


def dense(measured: Measurements) -> tuple[list[Any], Any]:
    """Return by normal equations the estimate of every level, and the covariance of leaf cells."""
    sums, basis = descend(measured), measured.basis
    rows, right = [], []
    for one in measured.budget.measures:
        matrix = np.kron(np.eye(measured.spine.sizes[one.level]), marginal(basis, one.query))
        rows.append(matrix @ sums[one.level] / one.scale)
        right.append(measured.noisy[one.level][one.query].reshape(-1) / one.scale)
    strategy, noisy = np.concatenate(rows), np.concatenate(right)
    fixed, values = [], []
    for level, (query, answers) in measured.exact.items():
        row = np.kron(np.eye(measured.spine.sizes[level]), marginal(basis, query))
        fixed.append(row @ sums[level])
        values.append(answers.reshape(-1))
    size = strategy.shape[1]
    base, free = np.zeros(size), np.eye(size)
    if fixed:
        matrix = np.concatenate(fixed)
        base = np.linalg.pinv(matrix, rcond=1e-9) @ np.concatenate(values)
        _, singular, right_vectors = np.linalg.svd(matrix)
        free = right_vectors[int((singular > 1e-9).sum()) :].T
    if free.shape[1] == 0:
        return [(one @ base).reshape(-1, basis.cells) for one in sums], np.zeros((size, size))
    inverse = np.linalg.inv(free.T @ strategy.T @ strategy @ free)
    covariance = free @ inverse @ free.T
    leaves = base + covariance @ strategy.T @ (noisy - strategy @ base)
    return [(one @ leaves).reshape(-1, basis.cells) for one in sums], covariance


def compare(seed: int) -> None:
    measured, _ = draw_measured(seed)
    fitted = linear_estimate(measured)
    estimate, covariance = dense(measured)
    basis, sums = measured.basis, descend(measured)
    scale = max(1.0, *(float(np.abs(one).max()) for one in estimate))
    for level, expected in enumerate(estimate):
        found = basis.backward(fitted.estimate[level])
        assert np.abs(found - expected).max() <= 1e-9 * scale
    squares = [matrix**2 for matrix in basis.matrices]
    for level, one in enumerate(sums):
        expected = np.diag(one @ covariance @ one.T).reshape(-1, basis.cells)
        variance = np.broadcast_to(fitted.variance[level], expected.shape)
        found = along(variance, [square.T for square in squares])
        assert np.abs(found - expected).max() <= 1e-8 * max(1.0, float(expected.max()))
    rng = np.random.default_rng(seed)
    weights = {
        level: rng.integers(0, 3, size).astype(float)
        for level, size in enumerate(measured.spine.sizes)
    }
    cell = rng.integers(0, 2, basis.cells).astype(float)
    row = sum(np.kron(weights[level], cell) @ one for level, one in enumerate(sums))
    turned = basis.forward(cell[None, :])[0] ** 2
    found = float(variance_of_sum(fitted, weights) @ turned)
    assert found == pytest.approx(float(row @ covariance @ row), rel=1e-7, abs=1e-8)


def test_estimate_and_variances_equal_dense_least_squares() -> None:
    for seed in range(60):
        compare(seed)


@pytest.mark.slow
def test_estimate_equals_dense_least_squares_on_thousands() -> None:
    for seed in range(1000, 4000):
        compare(seed)


def covered(leaves: int, repeats: int) -> tuple[int, int]:
    """Return how many of how many cells lie in their 95 % interval."""
    inside = every = 0
    for seed in range(repeats):
        rng = np.random.default_rng(seed)
        basis = Basis((2, 4))
        spine = draw_spine(rng, 4, widest=2 * round(leaves ** (1 / 3)))
        budget = allocate(0.5, draw_shares(rng, basis, 4, gaps=False))
        truth = draw_leaves(rng, spine, basis.cells)
        fitted = linear_estimate(measure(spine, basis, truth, budget))
        for level in range(spine.depth - 1, -1, -1):
            found = basis.backward(fitted.estimate[level])
            squares = [(matrix**2).T for matrix in basis.matrices]
            error = np.sqrt(along(np.broadcast_to(fitted.variance[level], found.shape), squares))
            inside += int((np.abs(found - truth) <= 1.959964 * error).sum())
            every += truth.size
            if level:
                truth = np.asarray(spine.add_up(truth, level))
    return inside, every


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    inside, every = covered(150, 12)
    assert every > 5_000
    assert 0.93 <= inside / every <= 0.97


@pytest.mark.slow
def test_intervals_hold_the_truth_in_a_hundred_thousand_cells() -> None:
    inside, every = covered(1000, 20)
    assert every >= 100_000
    assert 0.94 <= inside / every <= 0.96
