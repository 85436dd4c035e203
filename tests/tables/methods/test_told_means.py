"""What is printed of means tells no count, and adjusted sums do not tell which way they went."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from tests.tables.methods.test_told_widths import marked

import discreet as dc

RULES = [dc.MinimumFrequency(3)]


def means():
    """Return means of sums with one decimal, some of one or two records."""
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "a": rng.choice(list("pqrs"), 60, p=[0.4, 0.4, 0.15, 0.05]),
            "b": rng.choice(list("xyz"), 60),
            "u": np.round(rng.lognormal(3, 1, 60), 1),
        }
    )
    return dc.tabulate(dc.read(frame), ["a", "b"], "u", "mean")


@pytest.mark.parametrize("totals", ["free", "fixed"])
def test_digits_of_adjusted_means_tell_no_count(totals):
    """Most sums stay as they were: a mean of 46.272727 is of 11 records."""
    release = means().protect(RULES, dc.ControlledTabularAdjustment(totals=totals))
    value = release.published["value"].to_numpy()
    told = [
        (v, n)
        for v, n in zip(value, release.table.count, strict=True)
        if abs(v * 10 - round(v * 10)) > 1e-6 and abs(v * n * 10 - round(v * n * 10)) < 1e-6
    ]
    assert len(told) <= len(value) // 4  # three digits times a number are round now and then


@pytest.mark.parametrize("seed", range(3))
def test_intervals_of_means_are_alike_wide(seed):
    """A sum's width divided by one record is twice as wide as divided by two."""
    release = dc.protect(means(), RULES, dc.Intervals(), rng=dc.Randomness.seeded(seed))
    shown = release.published
    width = (shown["upper"] - shown["lower"])[shown["value"].isna()]
    assert len(width) > 2
    assert width.nunique() == 1
    truth = release.table.value / release.table.count
    slack = 1e-9 * np.abs(truth)
    assert (shown["lower"] <= truth + slack).all()
    assert (truth <= shown["upper"] + slack).all()


@pytest.mark.parametrize("alone", [123, 123.25])
def test_either_way_is_drawn_for_an_adjusted_sum(alone):
    table = marked(alone)
    method = dc.ControlledTabularAdjustment()
    cell = table.cell("A")
    moves = [
        method.hide(table, rng=dc.Randomness.seeded(seed)).value[cell] - alone for seed in range(16)
    ]
    assert min(moves) < 0 < max(moves)
    assert all(abs(move) >= 0.1 * alone - 1e-6 for move in moves)
