"""The projection against exact answers: a quadratic programming solver, and the simplex."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from discreet.dp.hierarchical.basis import Basis
from discreet.dp.hierarchical.nonnegative import fill_margins, project, simplex


def optimum(basis: Basis, estimate: Any, precisions: Any, total: Any, sums: Any) -> float:
    """Return the least objective, by HiGHS."""
    import highspy
    from scipy import sparse

    children, cells = estimate.shape
    turned = basis.forward(np.eye(cells)).T  # rows are coordinates
    hessian = np.zeros((children * cells, children * cells))
    cost = np.zeros(children * cells)
    for child in range(children):
        part = slice(child * cells, (child + 1) * cells)
        hessian[part, part] = turned.T @ (precisions[child][:, None] * turned)
        cost[part] = -turned.T @ (precisions[child] * estimate[child])
    rows, right = [np.tile(np.eye(cells), children)], [total]
    if sums is not None:
        rows.append(np.kron(np.eye(children), np.ones((1, cells))))
        right.append(sums)
    matrix, bound = sparse.csc_matrix(np.concatenate(rows)), np.concatenate(right)
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    model = highspy.HighsModel()
    size = children * cells
    model.lp_.num_col_, model.lp_.num_row_ = size, len(bound)
    model.lp_.col_cost_ = cost
    model.lp_.col_lower_, model.lp_.col_upper_ = np.zeros(size), np.full(size, 1e30)
    model.lp_.row_lower_ = model.lp_.row_upper_ = bound
    model.lp_.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.lp_.a_matrix_.start_ = matrix.indptr
    model.lp_.a_matrix_.index_ = matrix.indices
    model.lp_.a_matrix_.value_ = matrix.data
    lower = sparse.csc_matrix(np.tril(hessian))
    model.hessian_.dim_ = size
    model.hessian_.format_ = highspy.HessianFormat.kTriangular
    model.hessian_.start_, model.hessian_.index_ = lower.indptr, lower.indices
    model.hessian_.value_ = lower.data
    solver.passModel(model)
    solver.run()
    found = np.array(solver.getSolution().col_value).reshape(children, cells)
    return objective(basis, found, estimate, precisions)


def objective(basis: Basis, found: Any, estimate: Any, precisions: Any) -> float:
    return float((precisions * (basis.forward(found) - estimate) ** 2).sum())


def compare(seed: int) -> None:
    """Compare with the optimum: any attributes, precisions of each child its own, sums fixed or not."""
    rng = np.random.default_rng(seed)
    basis = Basis(tuple(int(n) for n in rng.integers(2, 4, rng.integers(1, 3))))
    children, cells = int(rng.integers(2, 6)), basis.cells
    truth = rng.poisson(2.0, (children, cells)) * (rng.random((children, cells)) < 0.5)
    detailed = tuple(range(len(basis.sizes)))
    rows = []
    for _ in range(children):
        scale = 10 ** rng.uniform(-0.5, 0.5, 3)
        rows.append(basis.precisions({(): scale[0], (0,): scale[1], detailed: scale[2]}))
    precisions = np.array(rows)
    estimate = basis.forward(truth.astype(float))
    estimate = estimate + rng.normal(0, 1.0, estimate.shape) / np.sqrt(precisions)
    total = truth.sum(axis=0)[None, :].astype(float)
    sums = truth.sum(axis=1).astype(float) if rng.random() < 0.5 else None
    starts = np.array([0, children])
    fixed = None if sums is None else ((), sums[:, None])
    found = project(basis, estimate, precisions, starts, total, fixed=fixed)
    found = fill_margins(found, starts, total, sums)
    best = optimum(basis, estimate, precisions, total[0], sums)
    assert objective(basis, found, estimate, precisions) <= 1.01 * best + 1e-6


def test_projection_reaches_the_optimum() -> None:
    for seed in range(20):
        compare(seed)


@pytest.mark.slow
def test_projection_reaches_the_optimum_on_many() -> None:
    for seed in range(1000, 1500):
        compare(seed)


@pytest.mark.parametrize("seed", range(5))
def test_detailed_counts_alone_are_projected_onto_the_simplex(seed: int) -> None:
    rng = np.random.default_rng(seed)
    basis, children = Basis((4,)), 6
    estimate = rng.normal(1.0, 3.0, (children, 4))
    total = np.array([[5.0, 0.0, 9.0, 2.0]])
    starts = np.array([0, children])
    found = project(
        basis, basis.forward(estimate), np.ones((children, 4)), starts, total,
        close=1e-9, rounds=3000,
    )  # fmt: skip
    for cell in range(4):
        exact = simplex(estimate[:, cell], np.ones(children), starts, total[:, cell])
        assert np.abs(found[:, cell] - exact).max() < 1e-6


def test_the_weighted_simplex_meets_its_conditions() -> None:
    rng = np.random.default_rng(6)
    for _ in range(200):
        size = int(rng.integers(1, 8))
        values, weights = rng.normal(0, 5, size), rng.uniform(0.1, 3, size)
        total = float(rng.integers(0, 10))
        found = simplex(values, weights, np.array([0, size]), np.array([total]))
        assert found.sum() == pytest.approx(total, abs=1e-9)
        slope = weights * (found - values)  # equal where positive, not less elsewhere
        if (found > 0).any():
            level = slope[found > 0]
            assert np.ptp(level) < 1e-8
            assert (slope[found == 0] >= level.mean() - 1e-8).all()


def test_the_estimate_is_not_touched() -> None:
    estimate = np.array([[5.0, 1.0, -2.0]])
    before = estimate.copy()
    project(
        Basis((3,)),
        estimate,
        np.ones((1, 3)),
        np.array([0, 1]),
        None,
        fixed=((), np.array([[4.0]])),
    )
    assert (estimate == before).all()
