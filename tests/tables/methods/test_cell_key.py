"""Cell-key noise: the same for the same records, unbiased, bounded, zeros kept."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pandas as pd
import pytest
from tests.tables.instances import random_table, salaries

import discreet as dc
from discreet.audit.sliding import audit_width
from discreet.tables.assessment import assess
from discreet.tables.methods._perturbation import deviations, transition


@pytest.fixture
def key_file(tmp_path):
    path = tmp_path / "secret.key"
    path.write_text("6f1c" * 16)
    return str(path)


@pytest.mark.parametrize(("deviation", "variance"), [(1, 0.5), (3, 1.5), (4, 2.0), (10, 9.0)])
def test_transition_table_has_the_given_moments(deviation, variance):
    rows = np.array(transition(deviation, variance, 0))
    steps = np.arange(-deviation, deviation + 1)
    assert np.allclose(rows.sum(axis=1), 1)
    assert np.allclose(rows @ steps, 0, atol=1e-6)
    assert np.allclose(rows[1:] @ steps**2, variance, atol=1e-5)
    assert rows[0][deviation] == 1  # zeros are kept
    for count, row in enumerate(rows):
        assert (row[steps < -count] == 0).all()  # nothing negative


def test_small_counts_can_be_barred():
    rows = np.array(transition(5, 4.0, 2))
    steps = np.arange(-5, 6)
    for count, row in enumerate(rows):
        result = count + steps
        assert (row[(result > 0) & (result <= 2)] == 0).all()
        assert row @ steps == pytest.approx(0, abs=1e-6)


def test_impossible_variance_says_what_is_feasible():
    with pytest.raises(dc.InputError, match=r"count of 1.*between 0 and 2"):
        dc.CellKey(deviation=2, variance=3.0)


@pytest.mark.slow
def test_moments_over_a_million_cells():
    rng = np.random.default_rng(9)
    counts = rng.integers(1, 30, 1_000_000)
    for deviation, variance in ((4, 2.0), (2, 1.0)):
        keys = rng.random(len(counts))
        step = deviations(counts, keys, deviation=deviation, variance=variance, smallest=0)
        assert abs(step.mean()) < 5 * np.sqrt(variance / len(counts))
        assert step.var() == pytest.approx(variance, rel=0.01)
        assert np.abs(step).max() <= deviation


def test_moments_over_cells_with_real_keys(key_file):
    size = 60_000
    frame = pd.DataFrame({"cell": [f"c{i}" for i in range(size)], "n": 3 + np.arange(size) % 9})
    table = dc.Table.from_cells(frame, ["cell"], "n", count="n", statistic="count")
    noisy = dc.CellKey(key=key_file).hide(table, rng=dc.Randomness.seeded(1)).value
    step = noisy - table.value
    assert abs(step.mean()) < 5 * np.sqrt(2.0 / size)
    assert step.var() == pytest.approx(2.0, rel=0.05)


def test_same_cell_same_noise_across_tables_and_runs(key_file):
    people = random_table(8, (4, 3, 2)).source.dataset
    method = dc.CellKey(key=key_file)
    rules = [dc.MinimumFrequency(2)]

    def published(by):
        return dc.tabulate(people, by=by).protect(rules=rules, method=method).cells

    three, again = published(["d0", "d1", "d2"]), published(["d0", "d1", "d2"])
    pd.testing.assert_frame_equal(three, again)
    two = published(["d1", "d0"])
    joint = three[three.d2 == "Total"].merge(two, on=["d0", "d1"], suffixes=("_3", "_2"))
    assert len(joint) == len(two)
    assert (joint.value_3 == joint.value_2).all()


def test_same_records_same_noise_whatever_the_cell_is_called(key_file):
    """A group that is all of a coarser one must not be told twice."""
    frame = pd.DataFrame(
        {"a": ["x"] * 9 + ["y"] * 5, "b": ["only"] * 9 + ["u", "u", "w", "w", "w"]}
    )
    table = dc.tabulate(dc.read(frame), by=["a", "b"])
    noisy = table.protect(
        rules=[dc.MinimumFrequency(2)], method=dc.CellKey(key=key_file)
    ).cells.set_index(["a", "b"])
    assert noisy.loc[("x", "Total"), "value"] == noisy.loc[("x", "only"), "value"]
    assert noisy.loc[("Total", "only"), "value"] == noisy.loc[("x", "only"), "value"]


def test_another_key_gives_other_noise(tmp_path):
    table = random_table(8, (6, 5))
    counts = dc.tabulate(table.source.dataset, by=["d0", "d1"])
    found = []
    for text in ("a" * 40, "b" * 40):
        path = tmp_path / text[0]
        path.write_text(text)
        method = dc.CellKey(key=str(path))
        found.append(method.hide(counts, rng=dc.Randomness.seeded(1)).value)
    assert (found[0] != found[1]).any()


def test_magnitudes_stay_within_their_share(key_file):
    table = random_table(5, (4, 3))
    done = dc.CellKey(least=10, most=20, key=key_file).hide(table, rng=dc.Randomness.seeded(1))
    share = np.abs(done.value - table.value) / table.contributions[:, 0]
    assert (share >= 0.1 - 1e-9).all()
    assert (share <= 0.2 + 1e-9).all()
    assert (done.lower <= table.value + 1e-9).all()
    assert (done.upper >= table.value - 1e-9).all()


def test_the_key_never_leaves(tmp_path, key_file):
    table = dc.tabulate(salaries(), by=["sector", "region"])
    release = table.protect(rules=[dc.MinimumFrequency(3)], method=dc.CellKey(key=key_file))
    folder = release.write(tmp_path / "out")
    written = b"".join(file.read_bytes() for file in folder.iterdir())
    assert b"6f1c6f1c" not in written
    assert key_file.encode() not in written
    evidence = json.loads((folder / "evidence.json").read_text())
    assert evidence["settings"]["method"]["key"] == "kept secret"
    assert release.loss.additivity_gap >= 0


def test_key_files_are_checked(tmp_path):
    table = dc.tabulate(salaries(), by=["sector"])
    with pytest.raises(dc.InputError, match="no key file"):
        dc.CellKey(key=str(tmp_path / "none")).hide(table, rng=dc.Randomness.seeded(1))
    short = tmp_path / "short"
    short.write_text("abc")
    with pytest.raises(dc.InputError, match="can be guessed"):
        dc.CellKey(key=str(short)).hide(table, rng=dc.Randomness.seeded(1))


def test_weights_do_not_change_the_noise_of_records(key_file):
    people = random_table(8, (4, 3)).source.dataset.arrow().to_pandas()
    people["id"] = [f"p{n}" for n in range(len(people))]
    people["w"] = 1.0 + np.arange(len(people)) / 7
    method = dc.CellKey(key=key_file)
    plain = dc.tabulate(dc.read(people, unit="id"), ["d0", "d1"])
    weighted = dc.tabulate(dc.read(people, unit="id", weight="w"), ["d0", "d1"])
    step = method.hide(plain, rng=dc.Randomness.seeded(1)).value - plain.value
    moved = method.hide(weighted, rng=dc.Randomness.seeded(1)).value - weighted.value
    assert np.allclose(moved / (weighted.value / weighted.count), step)
    assert (step != 0).any()


def small_counts(method, n=3):
    frame = pd.DataFrame(
        {
            "r": ["Total"] * 3 + ["p"] * 3 + ["q"] * 3,
            "c": ["Total", "x", "y"] * 3,
            "n": [12, 5, 7, 6, 1, 5, 6, 4, 2],
        }
    )
    table = dc.Table.from_cells(frame, ["r", "c"], "n", count="n", statistic="count")
    return method.prepare(table, [dc.MinimumFrequency(n)])


@pytest.mark.parametrize(("deviation", "safe"), [(4, False), (10, True)])
def test_the_verdict_is_the_same_with_every_key(deviation, safe):
    method = dc.CellKey(deviation=deviation)
    marked, verdicts, by_draw = small_counts(method), set(), []
    for seed in range(60):
        done = method.hide(marked, rng=dc.Randomness.seeded(seed))
        verdicts.add(assess(done, method).safe)
        bounds = done.lower, done.upper
        drawn = audit_width(marked, published=done.upper <= done.lower, bounds=bounds)
        by_draw.append(drawn.safe)
    assert verdicts == {safe}
    # The control: what this draw leaves differs from key to key where noise reaches its edge.
    assert len(set(by_draw)) == (1 if safe else 2)


@pytest.mark.parametrize("deviation", [4, 5, 8, 10])
@pytest.mark.parametrize("n", [2, 3, 5])
def test_how_often_totals_narrow_a_count_is_not_understated(deviation, n):
    """Every draw of a count and its total: what is left to somebody who knows the other parts."""
    method = dc.CellKey(deviation=deviation)
    rows = np.array(transition(deviation, 2.0, 0))
    steps = range(-deviation, deviation + 1)
    for count, others in itertools.product((1, 2, 3, 4), (3, 40)):
        if count >= n:
            continue
        narrow = 0.0
        for own, total in itertools.product(steps, steps):
            low = max(own, total) - deviation + count
            high = min(own, total) + deviation + count
            chance = rows[count][own + deviation]
            chance *= rows[min(count + others, len(rows) - 1)][total + deviation]
            narrow += chance * (low > 1 or high < n)
        frame = pd.DataFrame({"s": ["Total", "a", "b"], "n": [count + others, count, others]})
        table = dc.Table.from_cells(frame, ["s"], "n", count="n", statistic="count")
        kept = method.kept(method.prepare(table, [dc.MinimumFrequency(n)]))
        assert not kept[1] or narrow <= 1e-3
        # Nor is it overstated by much: the two directions are counted apart.
        assert kept[1] or narrow > 0.5e-3


def test_totals_of_small_counts_and_linked_tables_have_a_verdict_of_their_own():
    """A sensitive total moves with one of its parts, and crossings narrow it further."""
    frame = pd.DataFrame(
        {"a": list("pppqqqqqqq"), "b": list("xxyxxyyzzz"), "c": list("uvuvuvuvuv")}
    )
    data = dc.read(frame)
    for by in (["a", "b"], [["a", "b"], ["b", "c"], ["a", "c"]]):
        tables = dc.tabulate(data, by)
        for deviation, safe in ((4, False), (10, True)):
            method = dc.CellKey(deviation=deviation)
            found = {
                dc.protect(tables, [dc.MinimumFrequency(3)], method, rng=dc.Randomness.seeded(s))
                .audit()
                .safe
                for s in range(5)
            }
            assert found == {safe}


def test_zeros_that_are_sensitive_are_not_kept():
    cells = pd.DataFrame({"s": ["Total", "a", "b"], "n": [9, 9, 0]})
    table = dc.Table.from_cells(cells, ["s"], "n", count="n", statistic="count")
    method = dc.CellKey()
    marked = method.prepare(table, [dc.ZeroCells()])
    assert method.kept(marked).tolist() == [True, True, False]


@pytest.mark.parametrize("shape", [(5, 4), (3, 2, 2)])
def test_the_verdict_on_sums_holds_with_every_key(shape):
    method, kept, judged = dc.CellKey(), 0, 0
    for seed in range(3):
        table = random_table(seed, shape)
        marked = method.prepare(table, [dc.PPercent(5)])
        verdicts = []
        for key in range(8):
            done = method.hide(marked, rng=dc.Randomness.seeded(key))
            bounds = done.lower, done.upper
            drawn = audit_width(marked, published=done.upper <= done.lower, bounds=bounds)
            audit = assess(done, method)
            verdicts.append(audit._safe.tolist())
            assert (drawn._safe | ~audit._safe).all()
        assert all(verdict == verdicts[0] for verdict in verdicts)
        kept += sum(verdicts[0])
        judged += len(verdicts[0])
    assert 0 < kept < judged


def test_a_total_of_one_large_contributor_narrows_a_sum():
    """The same contributor alone in a cell, and nearly alone in its total, has two noises."""
    method = dc.CellKey()
    for others, safe in ((5.5, False), (500.5, True)):
        frame = pd.DataFrame({"s": ["a", "b", "b", "b"], "v": [100.25, *[others / 3] * 3]})
        marked = method.prepare(dc.tabulate(dc.read(frame), ["s"], "v"), [dc.MinimumFrequency(2)])
        assert method.kept(marked)[marked.cell("a")] == safe
