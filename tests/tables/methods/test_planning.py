"""Plans against simulation, and targets that are met."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.dp.hierarchical.estimation import linear_estimate
from discreet.dp.hierarchical.measurement import measure
from discreet.errors import InfeasibleError, InputError
from discreet.tables.methods._places import Places

TREES: dict[str, Any] = {
    "region": dc.Hierarchy.from_levels(
        {"Land": {f"r{i}": [f"r{i}{j}" for j in range(4 + i)] for i in range(5)}}
    ),
    "sex": dc.Hierarchy.flat(["f", "m"]),
    "age": dc.Hierarchy.flat(["0-17", "18-64", "65+"]),
}


def test_predicted_errors_are_those_of_simulations() -> None:
    from discreet.data.table import Dimension

    method = dc.TopDown(rho=0.3, split="leaf-heavy")
    plan = dc.TopDown.plan(TREES, rho=0.3, split="leaf-heavy")
    places = Places.of(tuple(Dimension.of(n, t) for n, t in TREES.items()), 0)
    task = method.task_of(places)
    leaves = np.zeros((places.spine.sizes[-1], places.basis.cells), dtype=np.int64)
    repeats, seen = 300, np.zeros(2)
    for _ in range(repeats):
        fitted = linear_estimate(measure(places.spine, places.basis, leaves, task.budget))
        cells = places.basis.backward(fitted.estimate[2])
        seen += [np.abs(cells.sum(axis=1)).mean(), np.abs(cells).mean()]
    expected = [plan.errors["2"]["total"], plan.errors["2"]["detailed"]]
    assert seen / repeats == pytest.approx(expected, rel=0.03)


def test_rho_beside_a_target_is_the_most_that_may_be_spent() -> None:
    target = {"1": {"total": 2.0}}
    least = dc.TopDown.plan(TREES, target=target).rho
    assert dc.TopDown.plan(TREES, "marginals", 1.1 * least, target).rho == pytest.approx(least)
    with pytest.raises(InfeasibleError, match="more than") as raised:
        dc.TopDown.plan(TREES, "marginals", 0.9 * least, target)
    assert raised.value.code == "target-beyond-budget"


@pytest.mark.slow
@pytest.mark.parametrize("invariants", [{}, {"1": "total"}, {"1": "sex"}])
@pytest.mark.parametrize("split", ["even", "leaf-heavy", {"0": 0.1, "1": 0.0, "2": 0.9}])
def test_predictions_hold_for_every_level_and_query(split: Any, invariants: Any) -> None:
    from discreet.data.table import Dimension
    from discreet.progress import silent
    from discreet.randomness import Randomness
    from discreet.tables.simulation import discrete_gaussian

    places = Places.of(tuple(Dimension.of(n, t) for n, t in TREES.items()), 0)
    task = dc.TopDown(rho=0.3, split=split, invariants=invariants).task_of(places)
    plan = dc.TopDown.plan(TREES, rho=0.3, split=split, invariants=invariants)
    rng, repeats = Randomness.seeded(1), 4000
    leaves = np.zeros((places.spine.sizes[-1], places.basis.cells), dtype=np.int64)
    queries = {"total": (), "sex": (0,), "age": (1,), "detailed": (0, 1)}
    seen = {(level, name): 0.0 for level in plan.errors for name in queries}
    for _ in range(repeats):
        measured = task.measure(leaves, silent, lambda v, s: discrete_gaussian(v, s, rng))
        fitted = linear_estimate(measured)
        for level in plan.errors:
            cells = places.basis.backward(fitted.estimate[int(level)])
            for name, query in queries.items():
                error = np.abs(places.basis.answers(cells, query)).mean()
                seen[level, name] += float(error) / repeats
    for (level, name), error in seen.items():
        assert error == pytest.approx(plan.errors[level][name], rel=0.03, abs=1e-9)


def test_targets_are_met_at_no_more_than_the_even_split() -> None:
    target = {"1": {"total": 2.0}, "2": {"sex": 3.0}}
    plan = dc.TopDown.plan(TREES, target=target)
    even = dc.TopDown.plan(TREES, rho=1.0)
    needed = max(
        (even.errors[level][query] / wanted) ** 2
        for level, given in target.items()
        for query, wanted in given.items()
    )
    for level, given in target.items():
        for query, wanted in given.items():
            assert plan.errors[level][query] <= wanted * (1 + 1e-6)
    assert plan.rho < 0.9 * needed
    # What it proposes can be used as it is.
    again = dc.TopDown.plan(TREES, plan.queries, plan.rho, split=plan.split)
    assert again.errors["1"]["total"] == pytest.approx(plan.errors["1"]["total"], rel=1e-6)


def test_exact_totals_have_no_error_and_no_target() -> None:
    plan = dc.TopDown.plan(TREES, invariants={"1": "total"})
    assert plan.errors["0"]["total"] == plan.errors["1"]["total"] == 0.0
    assert plan.errors["2"]["total"] > 0
    with pytest.raises(InputError, match="exactly"):
        dc.TopDown.plan(TREES, invariants={"1": "total"}, target={"0": {"total": 1.0}})


@pytest.mark.parametrize(
    "target", [{"1": {"total": 0.0}}, {"9": {"total": 1.0}}, {"1": {"job": 1.0}}]
)
def test_targets_that_mean_nothing_are_refused(target: Any) -> None:
    with pytest.raises(InputError):
        dc.TopDown.plan(TREES, target=target)
