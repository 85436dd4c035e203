"""Every partition against brute force, and what it does with impossible demands."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import InfeasibleError, InputError
from discreet.microdata.permutation.partitions import FAMILY, Demand, Problem
from discreet.microdata.permutation.partitions.local import Local, _hilbert
from discreet.microdata.permutation.partitions.min_max import MinMax
from discreet.microdata.permutation.partitions.min_max_exact import MinMaxExact
from discreet.microdata.permutation.partitions.min_sum import MinSum
from discreet.microdata.permutation.partitions.sequential import Sequential
from discreet.microdata.permutation.partitions.weighted import Weighted
from discreet.randomness import Randomness
from tests.microdata.permutation.brute_force import all_partitions, contiguous


def groups_of(values, labels):
    values = np.asarray(values, dtype=float)
    assert sorted(set(labels.tolist())) == list(range(labels.max() + 1))
    return [values[labels == g] for g in range(labels.max() + 1)]


def is_valid(values, labels, k, e):
    return all(len(set(g)) >= k and g.max() - g.min() >= e for g in groups_of(values, labels))


def instances(count, seed):
    """Small instances: duplicates, ties, negative values, k above the distinct values, e above the range."""
    rng = random.Random(seed)
    for _ in range(count):
        spread = rng.choice([2, 4, 8, 20, 60])
        values = [rng.randint(-spread // 2, spread) for _ in range(rng.randint(1, 8))]
        yield values, rng.randint(2, 4), rng.choice([0, 0, 1, 2, 5, 10, 40])


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_optimal_partitions_equal_brute_force(seed):
    feasible = 0
    for values, k, e in instances(1000, seed):
        problem = Problem.of(values, Demand(k, e))
        least_sum, least_max = all_partitions(np.array(values, dtype=float), k, e)
        if np.isinf(least_sum):
            with pytest.raises(InfeasibleError):
                problem.require_feasible()
            continue
        feasible += 1
        least_weighted, least_contiguous_max = contiguous(values, k, e)
        expected = {
            MinSum(): (least_sum, lambda gs: sum(np.ptp(g) for g in gs)),
            MinSum(share=False): (least_sum, lambda gs: sum(np.ptp(g) for g in gs)),
            MinMax(): (least_contiguous_max, lambda gs: max(np.ptp(g) for g in gs)),
            MinMaxExact(): (least_max, lambda gs: max(np.ptp(g) for g in gs)),
            Weighted(): (least_weighted, lambda gs: sum(len(g) * np.ptp(g) for g in gs)),
        }
        for method, (least, measure) in expected.items():
            labels = method.groups(problem)
            assert is_valid(values, labels, k, e), (method, values, k, e)
            assert measure(groups_of(values, labels)) == least, (method, values, k, e)
        assert least_contiguous_max <= 2 * least_max
    assert feasible > 400


@pytest.mark.parametrize("reach", [2, 10, 1000])
def test_min_max_is_at_most_twice_the_exact_and_the_example_is_tight(reach):
    problem = Problem.of([0, reach - 1, reach, 2 * reach - 1], Demand(2, reach))
    values = problem.values[problem.classes]
    approximate = max(np.ptp(g) for g in groups_of(values, MinMax().groups(problem)))
    exact = max(np.ptp(g) for g in groups_of(values, MinMaxExact().groups(problem)))
    assert (approximate, exact) == (2 * reach - 1, reach)


def test_floats_and_large_instances_agree_with_a_plain_dynamic_programme():
    rng = np.random.default_rng(4)
    values = np.round(rng.lognormal(size=300), 2)
    k, e = 4, 0.3
    ordered = np.sort(values)
    n = len(ordered)
    best = np.full(n + 1, np.inf)
    best[0] = 0
    for j in range(1, n + 1):
        for i in range(j):
            part = ordered[i:j]
            if np.isfinite(best[i]) and np.ptp(part) >= e and len(np.unique(part)) >= k:
                best[j] = min(best[j], best[i] + (j - i) * np.ptp(part))
    labels = Weighted().groups(Problem.of(values, Demand(k, e)))
    assert sum(len(g) * np.ptp(g) for g in groups_of(values, labels)) == pytest.approx(best[n])


def test_sequential_closes_groups_as_soon_as_they_are_valid():
    rng = np.random.default_rng(2)
    values = rng.integers(0, 20, 200)
    order = Randomness.seeded(9).permutation(200)
    labels = Sequential().groups(Problem.of(values, Demand(3, 5)), rng=Randomness.seeded(9))
    expected, current, group = np.empty(200, dtype=int), [], 0
    for record in order:
        current.append(record)
        expected[record] = group
        if len(set(values[current])) >= 3 and np.ptp(values[current]) >= 5:
            current, group = [], group + 1
    expected[current] = group - 1
    assert labels.tolist() == expected.tolist()


@given(
    st.lists(st.integers(-5, 5), min_size=4, max_size=60),
    st.integers(2, 3),
    st.sampled_from([0, 2]),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_every_partition_is_valid_and_keeps_the_cap(values, k, e, cap):
    quasi = np.column_stack([np.arange(len(values)) % 7, np.arange(len(values)) % 3])
    problem = Problem.of(values, Demand(k, e, cap), quasi=quasi, quasi_names=("a", "b"))
    try:
        problem.require_feasible()
    except InfeasibleError:
        most = max(values.count(v) for v in values)
        assert len(set(values)) < k or np.ptp(values) < e or (cap and most * k > len(values))
        return
    for method in (*(cls() for cls in FAMILY.members().values()), Local(order="hilbert")):
        labels = method.groups(problem, rng=Randomness.seeded(1))
        assert is_valid(values, labels, k, e), method
        if cap:
            for group in groups_of(values, labels):
                assert np.unique(group, return_counts=True)[1].max() * k <= len(group), method


def test_infeasible_demands_say_what_would_be_feasible():
    problem = Problem.of([1, 1, 4, 9], Demand(5, 10))
    with pytest.raises(InfeasibleError, match=r"at most k=3 and e=8") as caught:
        Weighted().groups(problem)
    assert caught.value.facts == {"k": 3, "e": 8.0}
    assert "only 3 distinct" in caught.value.message
    assert "within 8" in caught.value.message
    with pytest.raises(InfeasibleError, match="at most k=2") as caught:
        Weighted().groups(Problem.of([1, 1, 2, 3], Demand(3, cap=True)))
    assert caught.value.code == "permutation-cap-infeasible"


@pytest.mark.parametrize("demand", [(1, 0), (0, 0), (2, -1), (2, float("nan")), (2, float("inf"))])
def test_meaningless_demands_are_refused(demand):
    with pytest.raises(InputError):
        Demand(*demand)


def test_exact_says_when_there_are_too_many_values():
    with pytest.raises(InfeasibleError, match="min-max"):
        MinMaxExact().groups(Problem.of(range(201), Demand(2)))


def test_local_needs_quasi_identifiers():
    with pytest.raises(InputError, match="quasi-identifiers"):
        Local().groups(Problem.of([1, 2], Demand(2)))
    with pytest.raises(InputError, match="'b' is not"):
        Local(columns=("b",)).groups(
            Problem.of([1, 2], Demand(2), quasi=[1, 2], quasi_names=("a",))
        )


def test_local_cells_are_boxes_of_at_least_the_width():
    rng = np.random.default_rng(5)
    quasi = rng.integers(0, 50, (600, 2)).astype(float)
    values = rng.integers(0, 1000, 600)
    labels = Local(width=20).groups(
        Problem.of(values, Demand(3), quasi=quasi, quasi_names=("a", "b"))
    )
    assert is_valid(values, labels, 3, 0)
    # A range query that covers half of one axis meets few groups only in part.
    inside = quasi[:, 0] < 25
    part = [0 < inside[labels == g].mean() < 1 for g in range(labels.max() + 1)]
    scattered = Weighted().groups(Problem.of(values, Demand(3)))
    part_of_weighted = [0 < inside[scattered == g].mean() < 1 for g in range(scattered.max() + 1)]
    assert np.mean(part) < 0.5 * np.mean(part_of_weighted)


@pytest.mark.parametrize("axes", [2, 3])
def test_hilbert_curve_visits_neighbours(axes):
    side = 8
    grid = np.stack(np.meshgrid(*[np.arange(side)] * axes, indexing="ij"), -1).reshape(-1, axes)
    places = _hilbert((grid + 0.5) / side)
    walked = grid[np.argsort(places)]
    assert len(set(places.tolist())) == side**axes
    assert (np.abs(np.diff(walked, axis=0)).sum(axis=1) == 1).all()
