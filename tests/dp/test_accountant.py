"""Accountants: totals equal dp-accounting's, never below the truth, never above the sum."""

from __future__ import annotations

import math

import dp_accounting
import pytest
from dp_accounting import rdp
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.dp.accountant import Accountant, delta_event, gaussian_event, pure_event
from discreet.errors import InputError


def test_totals_equal_those_of_dp_accounting():
    many = {pure_event(0.01): 1000}
    direct = privacy_loss_distribution.from_discrete_laplace_mechanism(0.01, 1)
    assert Accountant("pld", 1e-6).epsilon(many) == pytest.approx(
        direct.self_compose(1000).get_epsilon_for_delta(1e-6)
    )
    accountant = rdp.RdpAccountant()
    accountant.compose(dp_accounting.ZCDpEvent(0.005), 100)
    assert Accountant("rdp", 1e-6).epsilon({gaussian_event(0.005): 100}) == pytest.approx(
        accountant.get_epsilon(1e-6)
    )
    assert Accountant("basic").epsilon(many) == 10.0


def test_published_figures():
    # 1,000 Laplace questions at ε = 0.01 and δ = 1e-6: basic 10, PLD 1.36, RDP 1.47.
    many = {pure_event(0.01): 1000}
    assert Accountant("pld", 1e-6).epsilon(many) == pytest.approx(1.365, abs=0.01)
    assert Accountant("rdp", 1e-6).epsilon(many) == pytest.approx(1.47, abs=0.01)
    assert Accountant("zcdp", 1e-6).epsilon(many) == pytest.approx(1.47, abs=0.01)


@settings(max_examples=25, deadline=None)
@given(st.dictionaries(st.sampled_from([0.01, 0.05, 0.2, 1.0]), st.integers(1, 50), max_size=3))
def test_tight_totals_lie_between_the_largest_and_the_sum(costs):
    events = {pure_event(epsilon): count for epsilon, count in costs.items()}
    total = sum(epsilon * count for epsilon, count in costs.items())
    for method in ("zcdp", "rdp", "pld"):
        found = Accountant(method, 1e-6).epsilon(events)
        assert found <= total * (1 + 1e-9)
        assert found >= 0.9 * max(costs, default=0.0)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 200), st.sampled_from(["basic", "zcdp", "rdp"]))
def test_more_answers_never_cost_less(count, method):
    accountant = Accountant(method, 1e-6)
    before = accountant.epsilon({pure_event(0.05): count})
    assert accountant.epsilon({pure_event(0.05): count + 1}) >= before


def test_failures_use_up_delta():
    accountant = Accountant("basic", 1e-6)
    assert accountant.epsilon({pure_event(0.1): 1, delta_event(1e-7): 10}) == pytest.approx(0.1)
    assert math.isinf(accountant.epsilon({pure_event(0.1): 1, delta_event(1e-7): 11}))
    tight = Accountant("rdp", 1e-6)
    assert math.isinf(tight.epsilon({pure_event(0.1): 1, delta_event(1e-6): 1}))
    assert tight.epsilon({}) == 0.0


def test_mixtures_that_cannot_be_added_are_explained():
    with pytest.raises(InputError, match="cannot add Gaussian"):
        Accountant("basic").epsilon({gaussian_event(0.1): 1})
    with pytest.raises(InputError, match="needs to know the scale of Gaussian noise"):
        Accountant("pld", 1e-6).epsilon({gaussian_event(0.1): 1})
    with pytest.raises(InputError, match="needs a delta"):
        Accountant("rdp")
