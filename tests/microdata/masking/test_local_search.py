"""The compiled local search against the one written out, and what it promises."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import cKDTree
from tests.microdata.masking import reference

from discreet.microdata.masking import _local_search as kernels


def drawn(seed):
    """Points, a partition into groups of at least k, and each point's neighbours."""
    chance = np.random.default_rng(seed)
    n, k = int(chance.integers(10, 26)), int(chance.integers(2, 5))
    points = chance.normal(size=(n, int(chance.integers(1, 4))))
    many = int(chance.integers(max(1, n // (2 * k)), n // k + 1))
    labels = np.concatenate([np.repeat(np.arange(many), k), chance.integers(0, many, n - many * k)])
    while np.bincount(labels).max() >= 3 * k:
        labels[many * k :] = chance.integers(0, many, n - many * k)
    chance.shuffle(labels)
    near = cKDTree(points).query(points, k=min(9, n))[1][:, 1:]
    return points, labels, k, np.ascontiguousarray(near)


def total(points, labels):
    return sum(reference.squares(points, np.flatnonzero(labels == g)) for g in set(labels.tolist()))


@pytest.mark.parametrize("seed", range(20))
def test_descent_is_that_of_the_plain_search(seed):
    points, labels, k, near = drawn(seed)
    found = labels.copy()
    kernels.descend(points, found, k, near, 50)
    assert found.tolist() == reference.descend(points, labels, k, near.tolist(), 50)


@pytest.mark.parametrize("seed", range(8))
def test_costs_are_differences_of_the_error(seed):
    points, labels, k, _ = drawn(seed)
    state = kernels._gather(points, labels, k)
    plain = reference.Partition(points, labels, k)
    assert kernels.error(points, labels) == pytest.approx(total(points, labels))
    chance = np.random.default_rng(seed)
    for one, two in chance.integers(0, len(points), (30, 2)):
        first, second = int(labels[one]), int(labels[two])
        if first == second:
            continue
        swap = kernels._swap_cost(points, state, one, two, first, second)
        assert swap == pytest.approx(plain.cost([(one, second), (two, first)]), abs=1e-9)
        if state[0][first] > 1:
            move = kernels._move_cost(points, state, one, first, second)
            assert move == pytest.approx(plain.cost([(one, second)]), abs=1e-9)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("heat", [0.0, 0.05])
def test_regrouping_keeps_groups_of_k_and_tells_what_it_changed(seed, heat):
    points, labels, k, near = drawn(seed)
    found, random = labels.copy(), np.array([88172645463325252 + seed], np.uint64)
    change = kernels.iterate(points, found, k, near, 60, heat, random)
    sizes = np.bincount(found)
    assert sizes[sizes > 0].min() >= k
    assert total(points, found) - total(points, labels) == pytest.approx(change, abs=1e-8)
    if heat == 0:
        assert change <= 1e-9


@pytest.mark.parametrize("seed", range(6))
def test_a_settled_region_has_no_move_or_exchange_that_helps(seed):
    points, labels, k, _ = drawn(seed)
    many, inside = int(labels.max()) + 1, np.arange(len(points))
    found, sums, sizes = labels.copy(), np.zeros((many, points.shape[1])), np.zeros(many)
    left = kernels._settle(points, inside, k, many, found, sums, sizes)
    assert left == pytest.approx(total(points, found))
    assert sizes.tolist() == np.bincount(found, minlength=many).tolist()
    plain = reference.Partition(points, found, k)
    for one in inside.tolist():
        for group in range(many):
            if group == plain.label[one]:
                continue
            ways = [[(one, group), (two, plain.label[one])] for two in plain.groups[group]]
            if len(plain.groups[plain.label[one]]) > k:
                ways.append([(one, group)])
            assert all(plain.cost(changes) > -1e-9 for changes in ways)
