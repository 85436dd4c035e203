"""Swapping keeps what it promises to keep, exactly."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc

seeds = st.integers(0, 2**31)


@given(
    values=st.lists(st.one_of(st.none(), st.integers(-5, 5)), max_size=60),
    p=st.floats(1, 100),
    seed=seeds,
)
@settings(max_examples=60, deadline=None)
def test_rank_swapping_keeps_the_margin(values, p, seed):
    rows = pa.table({"x": pa.array(values, pa.int64())})
    masked = dc.RankSwapping("x", p=p).apply(rows, schema=None, rng=dc.Randomness.seeded(seed))["x"]
    assert Counter(masked.to_pylist()) == Counter(values)
    assert [v is None for v in masked.to_pylist()] == [v is None for v in values]


@given(n=st.integers(2, 300), p=st.floats(1, 50), seed=seeds)
@settings(max_examples=40, deadline=None)
def test_rank_swapping_stays_in_its_window(n, p, seed):
    values = np.random.default_rng(seed).permutation(n)
    masked = (
        dc.RankSwapping("x", p=p)
        .apply(pa.table({"x": values}), schema=None, rng=dc.Randomness.seeded(seed))["x"]
        .to_numpy()
    )
    assert np.abs(masked - values).max() <= max(int(n * p / 100), 1)
    assert (masked != values).mean() > 0.5 or n < 8


def test_rank_swapping_pairs_values():
    values = np.arange(1000)
    masked = (
        dc.RankSwapping("x", p=5)
        .apply(pa.table({"x": values}), schema=None, rng=dc.Randomness.seeded(1))["x"]
        .to_numpy()
    )
    assert np.array_equal(masked[masked], values)


def test_rank_swapping_works_on_text_and_dates():
    rows = pa.table({"word": ["b", "a", None, "c"]})
    masked = dc.RankSwapping("word", p=100).apply(rows, schema=None, rng=dc.Randomness.seeded(1))
    assert Counter(masked["word"].to_pylist()) == Counter(["a", "b", "c", None])


@given(
    rows=st.lists(st.tuples(st.sampled_from("NS"), st.integers(0, 3)), max_size=60),
    fraction=st.floats(0.05, 1),
    seed=seeds,
)
@settings(max_examples=60, deadline=None)
def test_data_swapping_keeps_the_joint_margin(rows, fraction, seed):
    table = pa.table(
        {
            "region": pa.array([r for r, _ in rows], pa.string()),
            "ill": pa.array([i for _, i in rows], pa.int64()),
        }
    )
    masked = (
        dc.DataSwapping("ill", fraction=fraction, within="region")
        .apply(table, schema=None, rng=dc.Randomness.seeded(seed))["ill"]
        .to_pylist()
    )
    assert Counter(zip([r for r, _ in rows], masked, strict=True)) == Counter(rows)


def test_data_swapping_moves_columns_together():
    rows = pa.table({"a": range(100), "b": range(100)})
    masked = dc.DataSwapping(["a", "b"], fraction=1.0).apply(
        rows, schema=None, rng=dc.Randomness.seeded(1)
    )
    assert masked["a"].to_pylist() == masked["b"].to_pylist()
    assert masked["a"].to_pylist() != list(range(100))


@given(seed=seeds, rate=st.floats(0, 1), size=st.integers(1, 4))
@settings(max_examples=30, deadline=None)
def test_record_swapping_keeps_households_whole_and_counts_by_region(seed, rate, size):
    rng = np.random.default_rng(seed)
    homes = np.repeat(np.arange(30), size)
    region = rng.integers(0, 3, 30)[homes]
    job = rng.choice(["a", "b", "c"], homes.size)
    rows = pa.table({"home": homes, "region": region, "job": job})
    method = dc.RecordSwapping("region", "home", keys="job", match="job", rate=rate)
    masked = method.apply(rows, schema=None, rng=dc.Randomness.seeded(seed))["region"].to_numpy()
    for home in range(30):
        assert len(set(masked[homes == home])) == 1
    assert Counter(zip(masked.tolist(), job.tolist(), strict=True)) == Counter(
        zip(region.tolist(), job.tolist(), strict=True)
    )


def test_record_swapping_moves_those_at_risk_across_levels():
    rows = pa.table(
        {
            "country": ["A"] * 6 + ["B"] * 6,
            "town": ["a1"] * 3 + ["a2"] * 3 + ["b1"] * 3 + ["b2"] * 3,
            "home": range(12),
            "job": ["pilot"] + ["cook"] * 11,
        }
    )
    method = dc.RecordSwapping(["country", "town"], "home", keys="job", k=2, rate=0.0)
    masked = method.apply(rows, schema=None, rng=dc.Randomness.seeded(1))
    assert masked["country"][0].as_py() == "B"  # alone in the whole country, so it leaves it
    towns = {"a1": "A", "a2": "A", "b1": "B", "b2": "B"}
    for country, town in zip(
        masked["country"].to_pylist(), masked["town"].to_pylist(), strict=True
    ):
        assert towns[town] == country


@given(seed=seeds)
@settings(max_examples=15, deadline=None)
def test_shuffling_keeps_margins_and_rank_correlation(seed):
    rng = np.random.default_rng(seed)
    age = rng.normal(size=800)
    pay = np.exp(age + 0.3 * rng.normal(size=800))
    rows = pa.table({"age": age, "pay": pay})
    masked = (
        dc.Shuffling("pay", given="age")
        .apply(rows, schema=None, rng=dc.Randomness.seeded(seed))["pay"]
        .to_numpy()
    )
    assert np.array_equal(np.sort(masked), np.sort(pay))
    ranks = [np.argsort(np.argsort(v)) for v in (age, pay, masked)]
    before, after = np.corrcoef(ranks[0], ranks[1])[0, 1], np.corrcoef(ranks[0], ranks[2])[0, 1]
    assert after == pytest.approx(before, abs=0.1)
