"""A budget is spent by OpenDP's own figures and never exceeded."""

import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.dp.accountant import Accountant, gaussian_event
from discreet.dp.spending import Spending, concentrated_budget
from discreet.errors import EngineError, InputError


def spent_at_random(rng):
    grant = float(10 ** rng.uniform(-4, 1))
    spending = Spending(grant)
    while spending.left > 0:
        share = spending.left if rng.random() < 0.2 else float(spending.left * rng.random())
        if share < 1e-9 * grant:
            share = spending.left
        if rng.random() < 0.5:
            spending.chosen([3, 9, 1], share, sensitivity=int(rng.integers(1, 200)))
        else:
            spending.noisy(np.array([5, 0]), share)
        if len(spending.costs) > 25 or spending.left < 1e-9 * grant:
            break
    return spending


def test_the_sum_of_the_maps_stays_within_the_grant():
    rng = np.random.default_rng(1)
    for _ in range(40):
        spending = spent_at_random(rng)
        assert sum(map(Fraction, spending.costs)) == spending.spent <= spending.grant


@pytest.mark.slow
def test_the_sum_of_the_maps_stays_within_the_grant_in_a_thousand_settings():
    rng = np.random.default_rng(2)
    for _ in range(1000):
        spending = spent_at_random(rng)
        assert sum(map(Fraction, spending.costs)) == spending.spent <= spending.grant


def test_what_does_not_fit_is_not_drawn():
    spending = Spending(0.1)
    spending.noisy(np.array([1]), 0.1)
    with pytest.raises(EngineError, match="budget"):
        spending.noisy(np.array([1]), 0.1)
    assert len(spending.costs) == 1


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-9), (0.1, 1e-6), (5.0, 1e-5)])
def test_the_budget_is_what_the_accountant_calls_epsilon(epsilon, delta):
    rho = concentrated_budget(epsilon, delta)
    accountant = Accountant("zcdp", delta)
    assert accountant.epsilon({gaussian_event(rho): 1}) <= epsilon
    assert accountant.epsilon({gaussian_event(rho * (1 + 1e-4)): 1}) > epsilon
    # Another accountant finds no more than that.
    assert Accountant("rdp", delta).epsilon({gaussian_event(rho): 1}) <= epsilon * 1.001
    closed = rho + 2 * math.sqrt(rho * math.log(1 / delta))
    assert closed >= epsilon * 0.999


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.inf, math.nan, 1e9])
def test_impossible_budgets_are_errors(epsilon):
    with pytest.raises(InputError, match="epsilon"):
        concentrated_budget(epsilon, 1e-6)
