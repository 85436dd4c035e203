"""Estimation reaches the optimum that an independent convex solver finds."""

import numpy as np
import pytest
import scipy.optimize

from discreet.dp.graphical.domain import Sizes
from discreet.dp.graphical.estimation import estimate, measured, total_of
from tests.dp.graphical.models import brute, random_model


def best_loss(sizes, measurements, total):
    """The least loss of any non-negative table with this total, by non-negative least squares."""
    cells = int(np.prod(sizes.codes))
    rows, goal = [], []
    for own, one in measurements.items():
        maps = np.stack(
            [brute(cell.reshape(sizes.codes), own).ravel() for cell in np.eye(cells)], axis=1
        )
        rows.append(np.sqrt(one.precision) * maps)
        goal.append(np.sqrt(one.precision) * one.counts.ravel())
    heavy = 1e5 * max(np.sqrt(one.precision) for one in measurements.values())
    rows.append(heavy * np.ones((1, cells)))
    goal.append([heavy * total])
    solved, _ = scipy.optimize.nnls(np.concatenate(rows), np.concatenate(goal), maxiter=10_000)
    away = np.concatenate(rows[:-1]) @ solved - np.concatenate(goal[:-1])
    return 0.5 * float(away @ away)


def assert_optimum(rng):
    sizes, potentials = random_model(rng)
    truth = rng.dirichlet(np.full(int(np.prod(sizes.codes)), 0.5)).reshape(sizes.codes) * 2000
    found = measured(
        [(own, brute(truth, own) + rng.normal(0, 20, sizes.shape(own)), 20.0) for own in potentials]
    )
    total = total_of(found)
    model = estimate(sizes, found, total=total, rounds=20_000, tolerance=1e-7)
    best = best_loss(sizes, found, total)
    assert model.loss <= best * 1.001 + 1e-3, (model.loss, best)
    assert model.loss >= best * 0.999 - 1e-3


def test_the_optimum_is_reached():
    rng = np.random.default_rng(5)
    for _ in range(12):
        assert_optimum(rng)


@pytest.mark.slow
def test_the_optimum_is_reached_on_many_models():
    rng = np.random.default_rng(6)
    for _ in range(150):
        assert_optimum(rng)


def test_what_is_measured_twice_counts_twice():
    one = measured([((0,), np.array([10.0, 0]), 2.0), ((0,), np.array([20.0, 0]), 1.0)])
    assert one[(0,)].counts.tolist() == [18.0, 0.0]
    assert one[(0,)].precision == 1.25


def test_the_total_is_told_by_the_precise_ones():
    found = measured([((0,), np.array([50.0, 50]), 0.01), ((1,), np.array([500.0, 0]), 100.0)])
    assert abs(total_of(found) - 100) < 0.1
    model = estimate(Sizes((2, 2)), found)
    assert abs(model.beliefs.marginal((0,)).sum() - 100) < 0.1
