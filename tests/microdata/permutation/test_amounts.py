"""Sums are exact: the truth to the last digit lies inside."""

from __future__ import annotations

import decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import InputError
from discreet.microdata.permutation.amounts import Amounts
from discreet.microdata.permutation.groups import Groups


@given(st.lists(st.floats(-1e300, 1e300, allow_subnormal=False), min_size=1, max_size=30))
@settings(max_examples=100, deadline=None)
def test_bounds_of_float_sums_hold_the_exact_sum(values):
    amounts = Amounts.of(pa.array(values), name="s")
    table = Groups.of(amounts, np.zeros(len(values), dtype=np.int64)).help_table()
    ordered = sorted(map(Fraction, values))
    lows, highs = table.column("lb_sum").to_pylist(), table.column("ub_sum").to_pylist()
    for hits in range(1, len(values) + 1):
        assert Fraction(lows[hits - 1]) <= sum(ordered[:hits])
        assert Fraction(highs[hits - 1]) >= sum(ordered[-hits:])
    scale = max(*(abs(v) for v in values), 1e-280)
    assert highs[-1] - lows[-1] <= scale * len(values) ** 2 * 2.0**-48


def test_sums_of_groups_add_without_rounding():
    rng = np.random.default_rng(0)
    values = rng.lognormal(3, 2, 5000)
    table = Groups.of(Amounts.of(pa.array(values), name="s"), np.arange(5000) // 10).help_table()
    whole = table.column("hits").to_numpy() == 10
    for name in ("lb_sum", "ub_sum"):
        parts = table.column(name).to_numpy()[whole]
        exact = sum(map(Fraction, parts))
        for order in (parts, parts[::-1], rng.permutation(parts)):
            total = 0.0
            for part in order:
                total += part
            assert Fraction(total) == exact


def test_integers_and_decimals_stay_exact():
    amounts = Amounts.of(pa.array([2**60, 1, -3]), name="s")
    table = Groups.of(amounts, np.zeros(3, dtype=np.int64)).help_table()
    assert table.column("ub_sum").to_pylist() == [2**60, 2**60 + 1, 2**60 - 2]
    cents = pa.array([decimal.Decimal("0.10"), decimal.Decimal("0.20")], pa.decimal128(5, 2))
    table = Groups.of(Amounts.of(cents, name="s"), np.zeros(2, dtype=np.int64)).help_table()
    assert table.column("ub_sum").to_pylist() == [decimal.Decimal("0.20"), decimal.Decimal("0.30")]


def test_too_large_sums_are_refused():
    with pytest.raises(InputError, match="larger unit"):
        Amounts.of(pa.array([2**62, 2**62]), name="s")
