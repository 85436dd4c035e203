"""Marginals of graphical models equal brute force, in whatever tree they are computed."""

import itertools

import numpy as np
import pytest

from discreet.dp.graphical.domain import Sizes
from discreet.dp.graphical.junction_tree import junction_tree
from discreet.dp.graphical.potentials import propagated
from tests.dp.graphical.models import brute, full_table, random_model


def assert_marginals_are_right(rng):
    sizes, potentials = random_model(rng)
    total = float(rng.uniform(1, 1000))
    beliefs = propagated(junction_tree(sizes, potentials), potentials, total)
    table = full_table(sizes, potentials, total)
    for many in range(1, min(len(sizes), 3) + 1):
        for attributes in itertools.combinations(range(len(sizes)), many):
            found = beliefs.marginal(attributes)
            np.testing.assert_allclose(
                found, brute(table, attributes), rtol=1e-10, atol=1e-10 * total
            )


def test_marginals_equal_brute_force():
    rng = np.random.default_rng(1)
    for _ in range(300):
        assert_marginals_are_right(rng)


def test_shares_near_the_smallest_number_do_not_overflow():
    """Noise far below 0 sends potentials to −700 and below: conditionals on what is left were NaN."""
    sizes = Sizes((2, 3, 2, 2))
    for low in (-100.0, -400.0, -720.0, -744.0, -1e4):
        few = np.array([0.0, low, 1.0])
        potentials = {
            (0, 1): np.ones((2, 3)) + few,
            (1, 2): np.ones((3, 2)),
            (1, 3): np.ones((3, 2)),
        }
        potentials[(0, 1)][1, 2] = 3.0
        beliefs = propagated(junction_tree(sizes, potentials), potentials, 50.0)
        for attributes in ((0, 2), (0, 3), (2, 3), (0, 2, 3)):
            expected = brute(full_table(sizes, potentials, 50.0), attributes)
            np.testing.assert_allclose(beliefs.marginal(attributes), expected, rtol=1e-10)


@pytest.mark.slow
def test_marginals_equal_brute_force_on_thousands_of_models():
    rng = np.random.default_rng(2)
    for _ in range(5000):
        assert_marginals_are_right(rng)


def test_potentials_survive_another_triangulation():
    rng = np.random.default_rng(3)
    for _ in range(100):
        sizes, potentials = random_model(rng)
        more = set(potentials) | {tuple(range(min(len(sizes), 3)))}
        small = propagated(junction_tree(sizes, potentials), potentials, 10.0)
        large = propagated(junction_tree(sizes, more), potentials, 10.0)
        for own in potentials:
            np.testing.assert_allclose(small.marginal(own), large.marginal(own), atol=1e-9)


def test_each_attributes_cliques_hang_together():
    rng = np.random.default_rng(4)
    for _ in range(300):
        sizes, potentials = random_model(rng)
        tree = junction_tree(sizes, potentials)
        assert {a for own in tree.cliques for a in own} == set(range(len(sizes)))
        for attribute in range(len(sizes)):
            holding = {n for n, own in enumerate(tree.cliques) if attribute in own}
            tops = [n for n in holding if tree.parents[n] not in holding]
            assert len(tops) == 1, (tree, attribute)
        for own in potentials:
            assert tree.host(own) is not None
