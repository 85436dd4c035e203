"""Shares, products and signs are exact, and what a node sees says nothing."""

from __future__ import annotations

import collections
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import InputError
from discreet.protocols.arithmetic import encode, negative, numbers, rehearse, split
from discreet.protocols.arithmetic.comparison import larger, unpack
from discreet.randomness import Randomness

RNG = Randomness.seeded(3)


def opened(work):
    results, _ = rehearse(work)
    assert all((found == results[0]).all() for found in results)
    return results[0]


def signs(values):
    parts = split(values, rng=RNG)

    def work(node):
        bits = negative(node, parts[node.index])
        return np.stack(
            [
                unpack(node.open_bits(bits, "bits"), len(values)).astype(np.int64),
                node.open(numbers(node, bits), "numbers"),
            ]
        )

    found = opened(work)
    assert (found[0] == found[1]).all()
    return found[0].astype(bool)


def test_signs_of_all_differences_of_8_bit_values():
    a, b = (side.reshape(-1) for side in np.meshgrid(np.arange(-128, 128), np.arange(-128, 128)))
    assert (signs(a - b) == (a < b)).all()


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=130))
def test_signs_up_to_62_bits(values):
    assert (signs(np.array(values)) == (np.array(values) < 0)).all()


def test_signs_at_every_power_of_two():
    edges = [s * (2**k) + d for k in range(62) for s in (1, -1) for d in (-1, 0, 1)]
    assert (signs(np.array(edges)) == (np.array(edges) < 0)).all()


def test_products_sums_and_constants_in_the_ring():
    rng = np.random.default_rng(1)
    x, y = (rng.integers(-(2**62), 2**62, 1000) for _ in range(2))
    a, b = split(x, rng=RNG), split(y, rng=RNG)

    def work(node):
        one, two = a[node.index], b[node.index]
        return node.open(
            node.multiply(one, two) + one.times(3) - two + node.constant(np.full(1000, 7)), "x"
        )

    with np.errstate(over="ignore"):
        assert (opened(work) == x * y + 3 * x - y + 7).all()


def test_larger_and_smaller():
    rng = np.random.default_rng(2)
    x, y = (rng.integers(-50, 50, 200) for _ in range(2))
    a, b = split(x, rng=RNG), split(y, rng=RNG)

    def work(node):
        return np.stack([node.open(one, "x") for one in larger(node, a[node.index], b[node.index])])

    assert (opened(work) == np.stack([np.maximum(x, y), np.minimum(x, y)])).all()


def test_conjunctions_and_negations_of_bits():
    values = list(itertools.product([-1, 1], repeat=2))
    a, b = (split([v[k] for v in values], rng=RNG) for k in (0, 1))

    def work(node):
        p, q = negative(node, a[node.index]), negative(node, b[node.index])
        found = [node.both(p, q), node.either(p, q), node.inverted(p)]
        return np.stack([unpack(node.open_bits(one, "x"), 4) for one in found])

    p, q = (np.array([v[k] < 0 for v in values]) for k in (0, 1))
    assert (opened(work) == np.stack([p & q, p | q, ~p])).all()


def test_a_view_is_uniform_whatever_the_inputs():
    # One byte of every message of a comparison, over many runs with two very different inputs.
    def view(value, n=4000):
        parts = split(np.full(n, value), rng=Randomness.secure())
        _, rings = rehearse(lambda node: negative(node, parts[node.index]) and None)
        return b"".join(body for label, body in rings[1].view if label != "key")

    low, high = (
        np.bincount(np.frombuffer(view(v), np.uint8), minlength=256) for v in (0, 2**61 - 1)
    )
    for counts in (low, high):
        expected = counts.sum() / 256
        statistic = ((counts - expected) ** 2 / expected).sum()
        assert statistic < 255 + 6 * np.sqrt(2 * 255)


def test_shares_of_one_node_have_the_same_distribution_for_every_secret():
    # In a ring of four elements all splits can be listed: any two summands are uniform.
    for secret in range(4):
        seen = [
            collections.Counter((s[i], s[(i + 1) % 3]) for s in _splits(secret)) for i in range(3)
        ]
        assert all(set(one.values()) == {1} and len(one) == 16 for one in seen)


def _splits(secret):
    return [(a, b, (secret - a - b) % 4) for a in range(4) for b in range(4)]


def test_numbers_beyond_the_bound_are_refused_without_saying_which():
    for bad in ([1.0, 1e9], [float("nan")]):
        with pytest.raises(InputError) as caught:
            encode(bad, scale=1, bound=1e6, name="cost")
        assert "1000000000" not in str(caught.value)


@pytest.mark.parametrize("size", [1, 63, 64, 65, 200])
def test_bits_of_several_rows_stay_apart(size):
    values = np.random.default_rng(4).integers(-9, 9, (3, size))
    parts = split(values, rng=RNG)

    def work(node):
        bits = negative(node, parts[node.index])
        return unpack(node.open_bits(node.both(bits[0], bits[2]), "x"), size)

    assert (opened(work) == ((values[0] < 0) & (values[2] < 0))).all()
