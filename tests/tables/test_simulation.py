"""Simulations on the published table: what pages say of errors beside simpler ways."""

from __future__ import annotations

import numpy as np
import pytest
from tests.tables.methods.test_top_down import table

import discreet as dc
from discreet.tables.methods.dp_table_noise import DPTableNoise
from discreet.tables.simulation import simulate


def test_every_form_is_compared_and_the_same_release_gives_the_same_figures() -> None:
    method = dc.TopDown(rho=0.5)
    release = table().protect(method=method)
    estimate, levels = release.protected.estimate, ("0", "1", "2")
    found = simulate(method, estimate, levels)
    assert found is not None
    assert set(found.errors) == {
        "top-down", "bottom-up, signed", "bottom-up, cut at zero", "dp-noise, the same ε"
    }  # fmt: skip
    assert simulate(method, estimate, levels) == found
    assert sum(count for _, count, _ in found.bias) == 6


def test_dp_noise_is_simulated_as_it_is_drawn() -> None:
    method = dc.TopDown(rho=0.05)
    release = table().protect(method=method)
    found = simulate(method, release.protected.estimate, ("0", "1", "2"), repeats=60)
    assert found is not None
    epsilon = release.protected.facts["epsilon"]
    made = release.table.replace(value=release.protected.value)
    cell = made.cell("Land", "Total", "Total")
    off = []
    for _ in range(60):
        done = DPTableNoise(epsilon=epsilon).hide(made, rng=dc.Randomness.secure())
        off.append(abs(done.value[cell] - made.value[cell]))
    simulated = found.errors["dp-noise, the same ε"][0][0]
    assert simulated == pytest.approx(float(np.mean(off)), rel=0.6)
