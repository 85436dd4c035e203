"""Local mechanisms: the promised epsilon, unbiased estimates, honest intervals."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.dp.local._base import coin, odds
from discreet.dp.local.count_mean_sketch import CountMeanSketch
from discreet.dp.local.d_bit_flip import DBitFlip
from discreet.dp.local.k_ary_randomized_response import KAryRandomizedResponse
from discreet.dp.local.one_bit_mean import OneBitMean
from discreet.dp.local.randomized_response import RandomizedResponse
from discreet.dp.local.unary_encoding import UnaryEncoding
from discreet.errors import InputError
from discreet.randomness import Randomness

DOMAIN = ("a", "b", "c", "d", "e")
SHARES = {"a": 0.5, "b": 0.25, "c": 0.15, "d": 0.1, "e": 0.0}
N = 4000
ANSWERS = [v for v, s in SHARES.items() for _ in range(int(s * N))]
MECHANISMS = [
    KAryRandomizedResponse(DOMAIN, 1.5),
    UnaryEncoding(DOMAIN, 1.5),
    UnaryEncoding(DOMAIN, 1.5, "symmetric"),
    DBitFlip(DOMAIN, 2, 2.0),
    DBitFlip(DOMAIN, 5, 2.0),
    CountMeanSketch(DOMAIN, 3.0, width=64, functions=64),
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: f"{m.name}-{m.settings()}")
def test_shares_are_unbiased_and_the_error_is_the_theory(mechanism):
    rounds = [
        mechanism.estimate(mechanism.encode(ANSWERS, rng=Randomness.seeded(s))) for s in range(60)
    ]
    estimates = np.array([r.estimate for r in rounds])
    stated = np.array([r.standard_error for r in rounds]).mean(axis=0)
    truth = np.array([SHARES[v] for v in DOMAIN])
    assert np.abs(estimates.mean(axis=0) - truth).max() < 4.5 * stated.max() / math.sqrt(
        60
    ) + 1e-9 + _collisions(mechanism)
    # The answers are fixed here, so what varies is at most what was stated.
    ratio = estimates.std(axis=0, ddof=1) / stated
    assert ratio.max() < 1.45
    assert ratio.min() > (0.2 if isinstance(mechanism, CountMeanSketch) else 0.55)


def _collisions(mechanism):
    # The sketch's hash functions are fixed, so their collisions do not average out over rounds.
    return (
        3 / math.sqrt(mechanism.width * mechanism.functions)
        if isinstance(mechanism, CountMeanSketch)
        else 0.0
    )


def test_intervals_cover():
    mechanism = KAryRandomizedResponse(DOMAIN, 1.0)
    covered = 0
    for seed in range(150):
        estimate = mechanism.estimate(mechanism.encode(ANSWERS, rng=Randomness.seeded(seed)))
        covered += estimate.lower[1] <= 0.25 <= estimate.upper[1]
    assert covered >= 130


@pytest.mark.parametrize("gamma", [0.1, 0.25, 0.4])
def test_randomised_response_probabilities_give_epsilon(gamma):
    mechanism = RandomizedResponse(gamma)
    yes = mechanism.encode([True] * 200_000, rng=Randomness.seeded(1)).mean()
    no = mechanism.encode([False] * 200_000, rng=Randomness.seeded(2)).mean()
    assert yes == pytest.approx(0.5 + gamma, abs=0.006)
    assert no == pytest.approx(0.5 - gamma, abs=0.006)
    assert mechanism.privacy == pytest.approx(math.log((0.5 + gamma) / (0.5 - gamma)))


def test_the_forms_of_the_seeds_agree():
    assert RandomizedResponse.coin().privacy == pytest.approx(math.log(3))
    assert RandomizedResponse.truthful(0.5) == RandomizedResponse.coin()
    assert RandomizedResponse.of_epsilon(math.log(3)).gamma == pytest.approx(0.25)


def test_k_ary_ratio_is_at_most_e_to_the_epsilon():
    mechanism = KAryRandomizedResponse(DOMAIN, 1.0)
    reports = [
        np.bincount(mechanism.encode([v] * 200_000, rng=Randomness.seeded(i)), minlength=5)
        for i, v in enumerate(DOMAIN)
    ]
    ratio = max((a / b).max() for a in reports for b in reports)
    assert ratio == pytest.approx(math.e, rel=0.05)


def test_one_bit_mean():
    values = np.linspace(0, 100, 20_001)
    rounds = [
        OneBitMean(100.0, 1.0).estimate(
            OneBitMean(100.0, 1.0).encode(values, rng=Randomness.seeded(s))
        )
        for s in range(40)
    ]
    means = np.array([r.estimate[0] for r in rounds])
    assert abs(means.mean() - 50) < 4 * rounds[0].standard_error[0] / math.sqrt(40)
    assert 0.6 < means.std(ddof=1) / rounds[0].standard_error[0] < 1.4


@given(st.floats(0.01, 8))
def test_odds_stay_on_the_private_side(epsilon):
    p = odds(epsilon)
    assert math.log(p / (1 - p)) <= epsilon + 1e-15
    assert math.log(p / (1 - p)) == pytest.approx(epsilon, rel=1e-9)


def test_coins_of_certain_and_impossible_events():
    rng = Randomness.seeded(1)
    assert not coin(0.0, 1000, rng).any()
    assert coin(1.0, 1000, rng).all()


@pytest.mark.parametrize(
    "call",
    [
        lambda: KAryRandomizedResponse(DOMAIN).encode(["salary 31415"], rng=Randomness.seeded(1)),
        lambda: KAryRandomizedResponse(("a",)),
        lambda: KAryRandomizedResponse(("a", "a")),
        lambda: DBitFlip(DOMAIN, d=6),
        lambda: OneBitMean(10.0).encode([11.0], rng=Randomness.seeded(1)),
        lambda: OneBitMean(10.0).encode([float("nan")], rng=Randomness.seeded(1)),
        lambda: RandomizedResponse(0.5),
        lambda: RandomizedResponse().encode(["perhaps"], rng=Randomness.seeded(1)),
        lambda: RandomizedResponse().estimate(np.array([], dtype=bool)),
        lambda: UnaryEncoding(DOMAIN, epsilon=0),
    ],
)
def test_mistakes_are_named_without_quoting_answers(call):
    with pytest.raises(InputError) as caught:
        call()
    assert "31415" not in str(caught.value)
