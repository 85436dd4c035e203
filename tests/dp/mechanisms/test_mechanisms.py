"""Noise on whole numbers: its scale, its spread, its tail, and what OpenDP says it costs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from discreet.dp.mechanisms import FAMILY


@pytest.mark.parametrize("name", sorted(FAMILY.members()))
def test_spread_and_tail_are_as_stated(name):
    noise = FAMILY.get(name)().noise(epsilon=0.5, sensitivity=3)
    drawn = np.array(noise.draw([0] * 4000))
    assert abs(drawn.mean()) <= 5 * noise.deviation / math.sqrt(drawn.size)
    assert drawn.std() == pytest.approx(noise.deviation, rel=0.12)
    assert (np.abs(drawn) > noise.error_95).mean() <= 0.065
    assert (drawn >= noise.tail(0.05)).mean() <= 0.065
    assert noise.draw([]) == []


def test_cost_is_what_opendp_proves():
    assert FAMILY.get("laplace")().noise(epsilon=0.25, sensitivity=4).event == "pure 0.25"
    assert FAMILY.get("gaussian")().noise(epsilon=0.5, sensitivity=2).event == "zcdp 0.125"


@pytest.mark.parametrize("name", sorted(FAMILY.members()))
def test_large_sums_do_not_overflow(name):
    noise = FAMILY.get(name)().noise(epsilon=1.0, sensitivity=10**9)
    (value,) = noise.draw([10**15])
    assert abs(value - 10**15) < 10**12
