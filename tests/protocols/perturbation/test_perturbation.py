"""Distributions come back from behind noise; single values do where the noise has no structure."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from discreet.audit.spectral import shrinkage, spectral_filter
from discreet.errors import InputError
from discreet.protocols.perturbation.reconstruction import shares

RNG = dc.Randomness.seeded(5)


def two_triangles(n):
    rng = np.random.default_rng(1)
    side = rng.uniform(size=n) < 0.5
    return np.where(side, rng.triangular(0, 25, 50, n), rng.triangular(50, 75, 100, n))


@pytest.mark.parametrize("law", [dc.NoiseLaw("uniform", 50.0), dc.NoiseLaw("gaussian", 25.0)])
def test_reconstruction_of_two_triangles(law):
    values = two_triangles(100_000)
    noisy = values + law.draw(len(values), rng=RNG)
    found = dc.reconstruct(noisy, law, low=0, high=100, bins=60)
    truth = shares(values, found.edges)
    grid = np.linspace(-100, 200, 181)  # the raw distribution is not cut at the ends
    spread = np.abs(np.histogram(noisy, grid)[0] - np.histogram(values, grid)[0]).sum() / len(
        values
    )
    assert found.converged
    assert found.distance(truth) <= 0.3 * spread
    assert found.probability.sum() == pytest.approx(1)


def correlated(n=4000, columns=20, rank=2):
    rng = np.random.default_rng(2)
    return rng.normal(size=(n, rank)) @ rng.normal(size=(rank, columns)) * 20


def test_the_spectral_filter_beats_independent_noise():
    values = correlated()
    noisy = values + np.random.default_rng(3).normal(size=values.shape) * 10
    error = np.sqrt(((spectral_filter(noisy, 100.0) - values) ** 2).mean())
    assert error < 4


@pytest.mark.parametrize("privacy", [0.25, 0.5, 0.8])
def test_it_gains_nothing_on_noise_with_the_covariance_of_the_data(privacy):
    frame = pd.DataFrame(correlated(), columns=[f"c{i}" for i in range(20)])
    # Published scales are rounded up: from 1 on the noise is larger than a column, and there is little
    # left that anybody could filter (0.72 times the shrunk error at 1, 0.87 times at 1.5).
    loose = dc.randomize(frame, list(frame), privacy=privacy, rng=RNG)
    tight = dc.randomize(frame, list(frame), privacy=privacy, correlated=True, rng=RNG)
    assert loose.filtered < 0.7 * loose.shrunk
    assert tight.filtered > 0.98 * tight.shrunk
    assert tight.noise == pytest.approx(loose.noise, rel=0.1)
    cov = np.cov(tight.frame.to_numpy() - frame.to_numpy(), rowvar=False)
    data = np.cov(frame.to_numpy(), rowvar=False)
    assert np.corrcoef(cov.ravel(), data.ravel())[0, 1] > 0.99


@pytest.mark.parametrize("privacy", [1.0, 1.5])
def test_it_gains_on_independent_noise_however_large(privacy):
    frame = pd.DataFrame(correlated(), columns=[f"c{i}" for i in range(20)])
    loose = dc.randomize(frame, list(frame), privacy=privacy, rng=RNG)
    tight = dc.randomize(frame, list(frame), privacy=privacy, correlated=True, rng=RNG)
    assert loose.filtered < 0.9 * loose.shrunk
    assert tight.filtered > 0.98 * tight.shrunk


def test_shrinkage_of_a_constant_column_is_its_mean():
    assert shrinkage(np.ones((5, 1)), 1.0).tolist() == np.ones((5, 1)).tolist()


@pytest.mark.parametrize(
    ("frame", "columns", "code"),
    [
        (pd.DataFrame({"a": [1.0, 2.0]}), [], "no-columns"),
        (pd.DataFrame({"a": ["x", "y"]}), ["a"], "not-numeric"),
        (pd.DataFrame({"a": [1.0, None]}), ["a"], "missing-values"),
        (pd.DataFrame({"a": [1.0]}), ["a"], "constant-column"),
        (pd.DataFrame({"a": [1.0, 2.0]}), ["b"], "unknown-column"),
    ],
)
def test_input_that_has_no_noise_to_get_is_refused(frame, columns, code):
    with pytest.raises(InputError) as caught:
        dc.randomize(frame, columns)
    assert caught.value.code == code


def test_laws_and_bounds_are_checked():
    with pytest.raises(InputError):
        dc.NoiseLaw("triangular", 1.0)
    with pytest.raises(InputError):
        dc.NoiseLaw("uniform", 0.0)
    law = dc.NoiseLaw("uniform", 1.0)
    for wrong in ({"low": 1, "high": 1}, {"low": 0, "high": 1, "bins": 0}, {"low": 9, "high": 10}):
        with pytest.raises(InputError):
            dc.reconstruct([0.5], law, **wrong)
    with pytest.raises(InputError):
        dc.reconstruct([], law, low=0, high=1)


def test_categories_behind_a_published_matrix():
    rng = np.random.default_rng(9)
    names = ["a", "b", "c"]
    odds = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.15, 0.15, 0.7]])
    truth = rng.choice(3, 20_000, p=[0.6, 0.3, 0.1])
    changed = [names[rng.choice(3, p=odds[one])] for one in truth]
    matrix = {
        one: dict(zip(names, row, strict=True))
        for one, row in zip(names, odds.tolist(), strict=True)
    }
    found = dc.reconstruct(changed, matrix)
    shares = np.bincount(truth) / len(truth)
    assert found.distance(shares) < 0.03 < found.distance(shares, raw=True)
    assert found.rows()[1][0][0] == "a"
    for wrong in ({"a": {"a": 1.0}}, {**matrix, "a": {"a": 0.5}}):
        with pytest.raises(InputError):
            dc.reconstruct(changed, wrong)


@pytest.mark.parametrize("shape", ["uniform", "gaussian"])
def test_the_published_law_does_not_tell_the_range_of_a_column(shape):
    scales = {
        dc.randomize(
            pd.DataFrame({"pay": [0.0, 10.0, 20.0, most]}), ["pay"], shape=shape, rng=RNG
        ).laws["pay"].scale
        for most in (6_654_321.0, 7_000_000.0, 7_654_321.0)
    }  # fmt: skip
    assert len(scales) == 1


def test_a_column_that_is_named_twice_is_refused():
    with pytest.raises(InputError) as caught:
        dc.randomize(pd.DataFrame({"a": [1.0, 2.0]}), ["a", "a"])
    assert caught.value.code == "duplicate-columns"


def test_the_last_digits_of_noisy_values_tell_nothing():
    # Beside 2^20 a float has 32 binary digits after the point, beside 0 more: a small result with
    # more of them came from 0.
    values = pd.DataFrame({"amount": [0.0, 2.0**20] * 2_000})
    for correlated in (False, True):
        found = dc.randomize(values, ["amount"], correlated=correlated, rng=dc.Randomness.seeded(3))
        grid = 10.0 ** (np.floor(np.log10(found.laws["amount"].scale)) - 4)
        steps = found.frame.amount.to_numpy() / grid
        assert np.abs(steps - np.rint(steps)).max() < 1e-6
        # Nor do those of the report, to whoever knows all other records.
        assert all(float(f"{one:.4g}") == one for one in (found.noise, found.filtered))
        assert float(f"{found.laws['amount'].scale:.3g}") == found.laws["amount"].scale
