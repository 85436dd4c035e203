"""Sampling gives every cell its expected count, up or down by less than one."""

import numpy as np

from discreet.dp.graphical.junction_tree import junction_tree
from discreet.dp.graphical.potentials import propagated
from discreet.dp.graphical.sampling import rounded, sampled
from discreet.randomness import Randomness
from tests.dp.graphical.models import random_model


def test_rounding_is_exact_on_average_and_within_one():
    rng = Randomness.seeded(1)
    numbers = np.random.default_rng(1)
    weights = numbers.exponential(1, (3, 5))
    weights[0, 2] = 0
    sizes = np.array([7, 100, 0])
    expected = weights / weights.sum(axis=1, keepdims=True) * sizes[:, None]
    drawn = [rounded(weights, sizes, rng=rng) for _ in range(4000)]
    for one in drawn:
        assert (one.sum(axis=1) == sizes).all()
        assert (np.abs(one - expected) < 1 + 1e-9).all()
        assert one[0, 2] == 0
    np.testing.assert_allclose(np.mean(drawn, axis=0), expected, atol=0.04)


def test_records_have_the_marginals_of_the_model():
    numbers = np.random.default_rng(2)
    for seed in range(20):
        sizes, potentials = random_model(numbers)
        beliefs = propagated(junction_tree(sizes, potentials), potentials, 1.0)
        codes = sampled(beliefs, 20_000, rng=Randomness.seeded(seed))
        for own in potentials:
            count = np.zeros(sizes.shape(own))
            np.add.at(count, tuple(codes[:, list(own)].T), 1)
            np.testing.assert_allclose(count / 20_000, beliefs.marginal(own), atol=0.01)


def test_no_record_and_one_record():
    sizes, potentials = random_model(np.random.default_rng(3), cyclic=True)
    beliefs = propagated(junction_tree(sizes, potentials), potentials, 1.0)
    for n in (0, 1):
        assert sampled(beliefs, n, rng=Randomness.seeded(1)).shape == (n, len(sizes))
