"""Noise, PRAM, rounding: what they keep in expectation, and how they refuse."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from discreet.errors import InputError
from discreet.microdata.masking.pram import invariant_matrix

N = 40_000


def normal_rows(seed=1):
    rng = np.random.default_rng(seed)
    x = rng.normal(100, 5, N)
    return pa.table({"x": x, "y": 0.8 * x + rng.normal(0, 3, N)})


def apply(method, rows, seed=1):
    masked = method.apply(rows, schema=None, rng=dc.Randomness.seeded(seed))
    return np.stack([masked[name].to_numpy() for name in method.columns])


@pytest.mark.parametrize("correlated", [False, True])
def test_noise_keeps_means_and_inflates_variances_as_stated(correlated):
    rows = normal_rows()
    before = np.stack([rows["x"].to_numpy(), rows["y"].to_numpy()])
    after = apply(dc.AdditiveNoise(["x", "y"], 0.5, correlated=correlated), rows)
    assert after.mean(axis=1) == pytest.approx(before.mean(axis=1), abs=0.1)
    assert after.var(axis=1) == pytest.approx(1.25 * before.var(axis=1), rel=0.03)
    wanted = np.corrcoef(before)[0, 1] / (1.0 if correlated else 1.25)
    assert np.corrcoef(after)[0, 1] == pytest.approx(wanted, abs=0.01)


def test_rescaled_noise_keeps_variances():
    rows = normal_rows()
    after = apply(dc.AdditiveNoise(["x"], 1.0, rescale=True), rows)
    assert after.var() == pytest.approx(rows["x"].to_numpy().var(), rel=0.03)


def test_noise_of_a_constant_column_is_none():
    assert apply(dc.AdditiveNoise("x", 1.0), pa.table({"x": [3.0] * 5})).tolist() == [[3.0] * 5]


def test_dp_noise_has_the_scale_it_promises():
    method = dc.DPNoise("x", epsilon=2.0, bounds={"x": (0, 10)})
    assert method.scale("x") == 5.0
    after = apply(method, pa.table({"x": np.full(4000, 20.0)}))  # clamped to 10
    assert np.median(after) == pytest.approx(10, abs=0.6)
    assert np.abs(after - 10).mean() == pytest.approx(5.0, rel=0.1)
    both = dc.DPNoise(["x", "y"], epsilon=2.0, bounds={"x": (0, 10), "y": (0, 1)})
    assert both.scale("x") == 10.0  # epsilon is shared


def test_dp_noise_needs_bounds_from_the_curator():
    with pytest.raises(dc.InputError, match="bounds of column 'x'"):
        dc.DPNoise("x")
    for wrong in (1, (10, 0), ("a", "b"), [1, 2, 3], None):
        with pytest.raises(dc.InputError, match="needs the bounds"):
            dc.DPNoise("x", bounds={"x": wrong})


@given(
    counts=st.lists(st.integers(0, 1000), min_size=1, max_size=6).filter(any),
    retention=st.floats(0, 1),
)
@settings(max_examples=100, deadline=None)
def test_invariant_pram_keeps_the_distribution_in_expectation(counts, retention):
    words = tuple(map(str, range(len(counts))))
    matrix = dc.PRAM("x", retention=retention).transitions(
        words, np.array(counts, float), column="x"
    )
    assert matrix.min() >= 0
    assert matrix.sum(axis=1) == pytest.approx(np.ones(len(counts)))
    assert np.array(counts, float) @ matrix == pytest.approx(np.array(counts, float), abs=1e-6)


def test_pram_changes_as_often_as_its_matrix_says():
    rows = pa.table({"x": ["a"] * 30_000 + ["b"] * 10_000})
    odds = {"a": {"a": 0.9, "b": 0.1}, "b": {"a": 0.3, "b": 0.7}}
    masked = dc.PRAM("x", matrix=odds).apply(rows, schema=None, rng=dc.Randomness.seeded(1))["x"]
    values = np.array(masked.to_pylist())
    assert (values[:30_000] == "b").mean() == pytest.approx(0.1, abs=0.01)
    assert (values[30_000:] == "a").mean() == pytest.approx(0.3, abs=0.02)


def test_invariant_pram_keeps_the_observed_distribution():
    rows = pa.table({"x": ["a"] * 30_000 + ["b"] * 3_000 + ["c"] * 7_000})
    masked = dc.PRAM("x", retention=0.5).apply(rows, schema=None, rng=dc.Randomness.seeded(1))["x"]
    values = np.array(masked.to_pylist())
    assert (values == "b").mean() == pytest.approx(0.075, abs=0.005)
    assert (values[:30_000] != "a").mean() > 0.05


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        ({"a": {"a": 1.0}}, "no row for the category 'b'"),
        ({"a": {"a": 0.5}, "b": {"b": 1.0}}, "add up to 1"),
        ({"a": {"z": 1.0}, "b": {"b": 1.0}}, "lacks"),
        ({"a": {"a": 2.0, "b": -1.0}, "b": {"b": 1.0}}, "at least 0"),
    ],
)
def test_bad_matrices_are_explained(matrix, words):
    with pytest.raises(dc.InputError, match=words):
        dc.PRAM("x", matrix=matrix).apply(
            pa.table({"x": ["a", "b"]}), schema=None, rng=dc.Randomness.seeded(1)
        )


def test_pram_of_one_category_and_of_nothing():
    for values in (["a", "a"], [None, None], []):
        rows = pa.table({"x": pa.array(values, pa.string())})
        masked = dc.PRAM("x").apply(rows, schema=None, rng=dc.Randomness.seeded(1))["x"]
        assert masked.to_pylist() == values


def test_reversal_of_a_lost_category_is_itself():
    matrix = invariant_matrix(np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([5.0, 5.0]))
    assert np.array([5.0, 5.0]) @ matrix == pytest.approx([5.0, 5.0])


@given(values=st.lists(st.integers(-1000, 1000), min_size=1, max_size=50), base=st.integers(1, 50))
@settings(max_examples=60, deadline=None)
def test_rounding_gives_the_nearest_multiple(values, base):
    after = apply(dc.Rounding("x", base), pa.table({"x": values}))[0]
    assert (after % base == 0).all()
    assert np.abs(after - np.array(values)).max() <= base / 2


def test_unbiased_rounding_keeps_sums():
    after = apply(dc.Rounding("x", 10, unbiased=True), pa.table({"x": np.full(N, 3.0)}))[0]
    assert set(after.tolist()) == {0.0, 10.0}
    assert after.mean() == pytest.approx(3.0, abs=0.15)


def families():
    rng = np.random.default_rng(9)
    age = rng.choice(["child", "adult"], 400)
    state = np.where(age == "child", "single", rng.choice(["single", "married", "widowed"], 400))
    frame = pd.DataFrame({"age": age, "state": state, "pay": rng.integers(0, 9, 400)})
    return dc.read(frame, roles={"age": "quasi", "state": "quasi", "pay": "confidential"})


def test_pram_reports_combinations_that_nobody_had():
    safe = dc.mask(families(), dc.PRAM("state", retention=0.3), rng=dc.Randomness.seeded(1))
    out = safe.frame
    married = int(((out["age"] == "child") & (out["state"] != "single")).sum())
    assert married > 20
    assert safe.coverage.unseen["state and age"] == married
    assert f"{married} records combine state and age as no original record does" in safe.verdict
    assert safe.evidence().risk["not covered"]["unseen"]["state and age"] == married


def test_pram_avoids_combinations_that_nobody_had():
    method = dc.PRAM("state", retention=0.3, within="age")
    safe = dc.mask(families(), method, rng=dc.Randomness.seeded(1))
    assert set(safe.frame.loc[safe.frame["age"] == "child", "state"]) == {"single"}
    assert "state and age" not in safe.coverage.unseen
    before = families().frame["state"]
    assert (safe.frame["state"] != before).sum() > 50


def test_a_given_matrix_is_used_as_far_as_values_occur():
    odds = {"single": {"married": 1.0}, "married": {"single": 1.0}, "widowed": {"single": 1.0}}
    safe = dc.mask(families(), dc.PRAM("state", matrix=odds, within=["age"]))
    assert set(safe.frame.loc[safe.frame["age"] == "child", "state"]) == {"single"}
    adults = safe.frame["age"] == "adult"
    was = families().frame["state"][adults] == "single"
    assert set(safe.frame["state"][adults][was]) == {"married"}
    with pytest.raises(InputError) as error:
        dc.PRAM("state", within="state")
    assert error.value.code == "contradicting-columns"
