"""95 % intervals cover at least 93 %, for every share and number of respondents."""

import numpy as np
import pytest
from scipy.stats import binom

from discreet.dp.local.count_mean_sketch import CountMeanSketch
from discreet.dp.local.d_bit_flip import DBitFlip
from discreet.dp.local.forced_response import ForcedResponse
from discreet.dp.local.k_ary_randomized_response import KAryRandomizedResponse
from discreet.dp.local.one_bit_mean import OneBitMean
from discreet.dp.local.randomized_response import RandomizedResponse
from discreet.dp.local.unary_encoding import UnaryEncoding
from discreet.randomness import Randomness

DOMAIN = ("a", "b", "c")
SHARES = (0.0, 0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0)
YES_NO = [
    RandomizedResponse(0.1),
    RandomizedResponse(0.25),
    RandomizedResponse(0.4999),
    ForcedResponse(0.5),
    ForcedResponse(0.99),
    OneBitMean(1.0, 0.5),
    OneBitMean(1.0, 9.0),
]
OF_A_DOMAIN = [
    lambda: KAryRandomizedResponse(DOMAIN, 1.0),
    lambda: KAryRandomizedResponse(DOMAIN, 8.0),
    lambda: UnaryEncoding(DOMAIN, 1.0),
    lambda: UnaryEncoding(DOMAIN, 9.0, "symmetric"),
    lambda: DBitFlip(DOMAIN, 1, 4.0),
    lambda: DBitFlip(DOMAIN, 2, 9.0),
    lambda: CountMeanSketch(DOMAIN, 6.0, width=8, functions=4),
    lambda: CountMeanSketch(DOMAIN, 9.0, width=16, functions=64),
]


def _least(rounds):
    """Return how many of so many rounds must cover: 93 %, less three errors of the simulation."""
    return rounds * 0.93 - 3 * np.sqrt(rounds * 0.93 * 0.07)


def _covers(mechanism, answers, truth, rng):
    found = mechanism.estimate(mechanism.encode(answers, rng=rng))
    return found.lower[0] - 1e-12 <= truth <= found.upper[0] + 1e-12


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("mechanism", YES_NO, ids=lambda m: str(m.settings()))
def test_of_yes_and_no(mechanism, share):
    rounds, rng = 100, Randomness.seeded(7)
    for respondents in (100, 1000):
        first = round(respondents * share)
        answers = [1] * first + [0] * (respondents - first)
        covered = sum(_covers(mechanism, answers, first / respondents, rng) for _ in range(rounds))
        assert covered >= _least(rounds)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 1.0])
@pytest.mark.parametrize("make", OF_A_DOMAIN, ids=range(len(OF_A_DOMAIN)))
def test_of_a_domain(make, share):
    rounds, respondents, rng = 80, 1000, Randomness.seeded(8)
    first = round(respondents * share)
    answers = ["a"] * first + ["b"] * (respondents - first)
    covered = sum(_covers(make(), answers, first / respondents, rng) for _ in range(rounds))
    assert covered >= _least(rounds)


def _exact_coverage(estimate, respondents, first, chances):
    """Return the probability that the interval holds the share, over every number of ones.

    `chances` of a one: of a respondent who has the property, and of one who has not.
    """
    have, lack = first, respondents - first
    mean = have * chances[0] + lack * chances[1]
    spread = np.sqrt(have * chances[0] * (1 - chances[0]) + lack * chances[1] * (1 - chances[1]))
    ones = np.arange(
        max(0, int(mean - 6 * spread) - 1), min(respondents, int(mean + 6 * spread) + 1) + 1
    )
    # The number of ones is the sum of two binomials: add up over those of the first.
    near = have * chances[0] + np.sqrt(have * chances[0] * (1 - chances[0])) * np.array([-7, 7])
    of_first = np.arange(max(0, int(near[0]) - 1), min(have, int(near[1]) + 1) + 1)
    weight = binom.pmf(of_first, have, chances[0])
    of_rest = np.arange(ones[0] - of_first[-1], ones[-1] - of_first[0] + 1)
    rest = binom.pmf(of_rest, lack, chances[1])
    probability = np.convolve(rest, weight, mode="valid")
    reports = np.zeros(respondents, dtype=np.int64)
    truth, covered = first / respondents, 0.0
    for number, likely in zip(ones.tolist(), probability.tolist(), strict=True):
        if likely > 1e-9:
            reports[:number], reports[number:] = 1, 0
            found = estimate(reports)
            covered += likely * (found.lower[0] - 1e-12 <= truth <= found.upper[0] + 1e-12)
    return covered


def _counted():
    """Return mechanisms whose interval depends on one number of ones, with the chances of a one."""
    for gamma in (0.1, 0.25, 0.4999):
        yield RandomizedResponse(gamma).estimate, (0.5 + gamma, 0.5 - gamma)
    for p in (0.5, 0.99):
        yield ForcedResponse(p).estimate, (1.0, 1 - p)
    for epsilon in (0.5, 9.0):
        true = 1 / (1 + np.exp(-epsilon))
        yield OneBitMean(1.0, epsilon).estimate, (true, 1 - true)
    for epsilon in (1.0, 8.0):
        total = np.exp(epsilon) + 2
        mechanism = KAryRandomizedResponse(DOMAIN, epsilon)
        yield (lambda r, m=mechanism: m.estimate(1 - r)), (np.exp(epsilon) / total, 1 / total)
    for epsilon, form in ((1.0, "optimized"), (9.0, "symmetric")):
        true = 1 / (1 + np.exp(-epsilon / (2 if form == "symmetric" else 1)))
        chances = (true, 1 - true) if form == "symmetric" else (0.5, 1 - true)
        mechanism = UnaryEncoding(DOMAIN, epsilon, form)
        yield (lambda r, m=mechanism: m.estimate(np.column_stack([r, 0 * r, 0 * r]))), chances


MORE = sorted({*SHARES, 0.003, 0.03, 0.3, 0.7, 0.97, 0.997})


@pytest.mark.parametrize("respondents", [100, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("share", MORE)
def test_exactly(share, respondents):
    for estimate, chances in _counted():
        assert _exact_coverage(estimate, respondents, round(respondents * share), chances) >= 0.93


@pytest.mark.slow
@pytest.mark.parametrize("respondents", [10_000, 100_000])
@pytest.mark.parametrize("share", [0.0, 0.001, 0.03, 0.5, 0.97, 1.0])
def test_exactly_of_many(share, respondents):
    for estimate, chances in _counted():
        assert _exact_coverage(estimate, respondents, round(respondents * share), chances) >= 0.93


@pytest.mark.slow
@pytest.mark.parametrize("respondents", [100, 1000, 10_000, 100_000])
@pytest.mark.parametrize("share", [0.0, 0.001, 0.03, 0.5, 0.97, 1.0])
def test_of_drawn_buckets_and_functions(share, respondents):
    rounds, rng = {100: 300, 1000: 300, 10_000: 60, 100_000: 15}[respondents], Randomness.seeded(9)
    first = round(respondents * share)
    answers = ["a"] * first + ["b"] * (respondents - first)
    for make in OF_A_DOMAIN[4:]:
        covered = sum(_covers(make(), answers, first / respondents, rng) for _ in range(rounds))
        assert covered >= _least(rounds), make().settings()
