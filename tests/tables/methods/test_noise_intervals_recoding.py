"""Record noise, differentially private noise, published intervals and recoding."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.laws.table_method import table as small_table
from tests.tables.instances import random_table, salaries

import discreet as dc
from discreet.audit.sensitivity import mark
from discreet.tables.methods import FAMILY

SEEDED = dc.Randomness.seeded


def test_record_noise_moves_single_contributors_and_adds_up():
    table = dc.tabulate(salaries(), by=["sector", "region"], measure="salary")
    done = dc.RecordNoise(least=10, most=20).hide(table, rng=SEEDED(3))
    cell = table.cell("Fin", "TGN")
    assert 0.1 <= abs(done.value[cell] / 150000 - 1) <= 0.2
    assert np.abs(table.equations @ done.value).max() < 1e-6
    assert (done.lower <= table.value).all()
    assert (done.upper >= table.value).all()


def test_record_noise_pushes_all_records_of_a_unit_the_same_way():
    frame = pd.DataFrame({"unit": [1, 1, 2, 2], "g": list("abab"), "x": [10.0, 20.0, 5.0, 6.0]})
    frame["who"] = frame["unit"].map({1: "one", 2: "two"})
    table = dc.tabulate(dc.read(frame, unit="unit"), by=["g", "who"], measure="x")
    done = dc.RecordNoise().hide(table, rng=SEEDED(1))
    factor = done.value / table.value
    for unit in ("one", "two"):
        cells = [table.cell(g, unit) for g in ("a", "b", "Total")]
        assert np.ptp(factor[cells]) < 1e-12


def test_record_noise_is_unbiased():
    frame = pd.DataFrame({"g": "a", "x": 1.0, "unit": range(20_000)})
    table = dc.tabulate(dc.read(frame, unit="unit"), by=["g"], measure="x")
    done = dc.RecordNoise().hide(table, rng=SEEDED(2))
    assert done.value[0] / 20_000 == pytest.approx(1, abs=0.005)


def test_record_noise_needs_records():
    table = dc.Table.from_cells(pd.DataFrame({"a": ["x"], "v": [1.0]}), ["a"], "v")
    with pytest.raises(dc.InputError, match="needs the records"):
        dc.RecordNoise().hide(table, rng=SEEDED(1))


@pytest.mark.parametrize("totals", ["levels", "bottom-up"])
def test_dp_noise_adds_up_over_the_whole_cube(totals):
    frame = pd.DataFrame({"a": ["x"] * 50 + ["y"] * 40, "b": ["u"] * 60 + ["w"] * 30})
    table = dc.tabulate(dc.read(frame), by=["a", "b"])
    assert len(table) < 9  # x × w is empty
    done = dc.DPTableNoise(epsilon=2.0, totals=totals).hide(table, rng=dc.Randomness.secure())
    assert len(done.table) == 9
    assert np.abs(done.table.equations @ done.value).max() < 1e-9
    assert done.facts["views"] == (4 if totals == "levels" else 1)
    assert "ε = 2" in done.facts["promise"]


def test_dp_noise_has_the_scale_it_promises():
    size = 4000
    frame = pd.DataFrame({"a": [f"c{i}" for i in range(size)], "n": 10})
    total = pd.DataFrame({"a": ["Total"], "n": [10 * size]})
    table = dc.Table.from_cells(pd.concat([total, frame]), ["a"], "n", count="n", statistic="count")
    done = dc.DPTableNoise(epsilon=1.0, totals="bottom-up").hide(table, rng=dc.Randomness.secure())
    step = (done.value - table.value)[1:]
    # Discrete Laplace of scale 1: the variance is 2e/(e−1)².
    assert step.var() == pytest.approx(2 * np.e / (np.e - 1) ** 2, rel=0.25)
    assert abs(step.mean()) < 0.15
    assert (step == np.round(step)).all()


def test_dp_noise_clips_and_demands_bounds():
    table = dc.tabulate(salaries(), by=["sector"], measure="salary")
    with pytest.raises(dc.InputError, match="needs bounds"):
        dc.DPTableNoise().hide(table, rng=dc.Randomness.secure())
    done = dc.DPTableNoise(epsilon=1e6, bounds=(0, 50_000)).hide(table, rng=dc.Randomness.secure())
    clipped = sum(min(50, s) for s in [300, 35, 150]) * 1000
    assert done.value[done.table.cell("Fin")] == pytest.approx(clipped, abs=5)
    with pytest.raises(dc.InputError, match="smaller first"):
        dc.DPTableNoise(bounds=(5.0, 1.0))


def test_dp_noise_refuses_weights():
    frame = pd.DataFrame({"a": list("xyx"), "w": [2.0, 3.0, 900.0]})
    table = dc.tabulate(dc.read(frame, weight="w"), by=["a"])
    with pytest.raises(dc.InputError, match="weighted"):
        dc.DPTableNoise().hide(table, rng=dc.Randomness.secure())


def test_dp_noise_refuses_units_with_more_records_than_promised():
    frame = pd.DataFrame({"who": [1, 1, 2], "a": list("xyx")})
    table = dc.tabulate(dc.read(frame, unit="who"), by=["a"])
    with pytest.raises(dc.InputError, match="at most 1 records"):
        dc.DPTableNoise().hide(table, rng=dc.Randomness.secure())
    assert dc.DPTableNoise(records=2).hide(table, rng=dc.Randomness.secure()).value.size


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_intervals_hold_the_truth_and_protect(seed):
    table = random_table(seed, (4, 3))
    try:
        release = table.protect(
            rules=[dc.PPercent(20), dc.MinimumFrequency(2)], method=dc.Intervals()
        )
    except dc.InfeasibleError:
        return
    done = release.protected
    assert (done.lower <= table.value + 1e-9).all()
    assert (done.upper >= table.value - 1e-9).all()
    assert release.audit(exact=True).safe
    withheld = done.withheld
    assert (done.lower[~withheld] == done.value[~withheld]).all()


@pytest.mark.parametrize("seed", [1, 5, 7, 10])
def test_no_interval_is_a_single_value(seed):
    # One more withheld cell of a pattern may follow from published ones: it is printed.
    marked = mark(small_table(4, "count"), [dc.MinimumFrequency(3)])
    done = dc.Intervals().hide(marked, rng=SEEDED(seed))
    assert (done.lower < done.upper)[done.withheld].all()


def test_the_middle_of_an_interval_is_not_the_value():
    hits = total = 0
    for seed in range(15):
        table = random_table(seed, (4, 3))
        try:
            done = table.protect(rules=[dc.PPercent(20)], method=dc.Intervals()).protected
        except dc.InfeasibleError:
            continue
        cells = np.flatnonzero(done.withheld)
        middle = (done.lower + done.upper)[cells] / 2
        hits += int((np.abs(middle - table.value[cells]) < 1e-6).sum())
        total += len(cells)
    assert total > 20
    assert hits <= total / 5


def test_recoding_merges_until_nothing_is_sensitive():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "unit": rng.integers(0, 300, 400),
            "a": rng.choice(list("ABCDEF"), 400, p=[0.4, 0.3, 0.2, 0.08, 0.01, 0.01]),
            "b": rng.choice(["u", "v", "w"], 400),
            "x": rng.lognormal(3, 1, 400),
        }
    )
    table = dc.tabulate(dc.read(frame, unit="unit"), by=["a", "b"], measure="x")
    rules = [dc.MinimumFrequency(5), dc.PPercent(10)]
    assert (mark(table, rules).status == 2).any()
    release = table.protect(rules=rules, method=dc.Recoding())
    assert release.loss.merged > 0
    assert not (release.table.status == 2).any()
    # The recoded table is what the records say, contributors of several cells counted once.
    again = dc.tabulate(release.table.source.dataset, by=["a", "b"], measure="x")
    assert np.allclose(np.sort(again.value), np.sort(release.table.value))
    assert release.protected.facts["merged"]["a"]


def test_recoding_then_suppression():
    table = random_table(6, (6, 4))
    rules = [dc.PPercent(15), dc.MinimumFrequency(2)]
    release = table.protect(
        rules=rules, method=dc.Recoding(percent=15, then=dc.Suppression(), keep=("d1",))
    )
    assert release.audit().safe
    assert set(release.table.dimensions[1].codes) == set(table.dimensions[1].codes)


def test_recoding_is_judged_by_the_method_that_follows():
    table = random_table(6, (6, 4))
    release = table.protect(
        rules=[dc.PPercent(15), dc.MinimumFrequency(2)],
        method=dc.Recoding(percent=15, then=dc.ControlledTabularAdjustment()),
    )
    assert (release.table.status == 2).any()
    assert release.audit().safe
    assert "moved by at least" in release.verdict
    noisy = table.protect(
        rules=[dc.MinimumFrequency(2)],
        method=dc.Recoding(percent=20, then=dc.RandomRounding()),
        rng=SEEDED(1),
    )
    assert noisy.randomness == "seeded"


def test_recoding_says_when_it_is_not_enough():
    table = random_table(6, (4, 3))
    with pytest.raises(dc.InfeasibleError, match="still sensitive"):
        table.protect(rules=[dc.MinimumFrequency(10)], method=dc.Recoding(keep=("d0", "d1")))
    with pytest.raises(dc.InputError, match="no attribute"):
        table.protect(rules=[dc.MinimumFrequency(3)], method=dc.Recoding(keep=("d9",)))


# top-down takes counts alone; the laws of the family try it on them.
@pytest.mark.parametrize("name", sorted({*FAMILY.members()} - {"top-down"}))
def test_every_method_leaves_its_input_alone(name):
    table = mark(random_table(12, (4, 3)), [dc.PPercent(20)])
    before = [a.copy() for a in (table.value, table.status, table.lower, table.contributions)]
    kind = FAMILY.get(name)
    method = kind(bounds=(0.0, 1e5)) if name == "dp-noise" else kind()
    try:
        done = method.hide(table, rng=dc.Randomness.secure())
    except dc.InfeasibleError:
        assert name == "recoding"
        return
    after = (table.value, table.status, table.lower, table.contributions)
    assert all(np.array_equal(b, a) for b, a in zip(before, after, strict=True))
    assert len(done.value) == len(done.status) == len(done.table)
    shown = ~done.withheld
    assert np.isfinite(done.value[shown]).all()


def test_recoding_says_what_it_cannot_merge():
    one = dc.Hierarchy.from_pairs(
        [("Total", ""), ("p", "Total"), ("q", "Total"), ("a", "p"), ("b", "q")]
    )
    other = dc.Hierarchy.from_pairs([("Total", ""), ("s", "Total"), ("a", "s"), ("b", "s")])
    frame = pd.DataFrame({"r": ["a", "a", "b", "b"] * 3, "c": ["x"] * 6 + ["y"] * 6})
    data = dc.read(frame, hierarchies={"r": [one, other]})
    with pytest.raises(dc.InputError, match="several hierarchies, as those of r do") as caught:
        dc.protect(dc.tabulate(data, ["r"]), [dc.MinimumFrequency(8)], dc.Recoding())
    assert caught.value.code == "recoding-several-hierarchies"
    with pytest.raises(dc.InfeasibleError, match=r"\(r: several hierarchies, not merged\)"):
        dc.protect(dc.tabulate(data, ["r", "c"]), [dc.MinimumFrequency(8)], dc.Recoding())


def several_records() -> dc.Dataset:
    frame = pd.DataFrame(
        {"who": [1, 1, 1, 1, 2, 3, 4, 5], "a": list("xyxyxyxy"), "b": list("uuwwuuww")}
    )
    return dc.read(frame.assign(w=100.0, x=np.arange(8) + 1.5), unit="who", weight="w")


def test_dp_noise_makes_no_promise_for_linked_tables():
    """Joined tables have no records behind them to check the promise with."""
    tables = dc.tabulate(several_records(), by=[["a", "b"], ["b"]])
    with pytest.raises(dc.InputError, match="several linked tables") as caught:
        dc.protect(tables, [], dc.DPTableNoise())
    assert caught.value.code == "linked-method"


def test_dp_noise_does_not_follow_recoding():
    with pytest.raises(dc.InputError, match="cannot keep its promise"):
        dc.Recoding(then=dc.DPTableNoise())
    with pytest.raises(dc.InputError, match="cannot keep its promise"):
        dc.Recoding(then=dc.Recoding(then=dc.DPTableNoise()))


def test_dp_noise_says_which_codes_come_from_the_records():
    frame = pd.DataFrame({"a": list("xxyy"), "b": list("uvuv")})
    data = dc.read(frame, hierarchies={"b": dc.Hierarchy.flat(["u", "v", "w"])})
    release = dc.tabulate(data, ["a", "b"]).protect([], dc.DPTableNoise())
    assert "the codes of a, found in the records" in release.evidence().verdict
    told = dc.tabulate(data, ["b"]).protect([], dc.DPTableNoise()).evidence().verdict
    assert "found in" not in told


def test_dp_sums_do_not_depend_on_the_order_of_records():
    """One record changes a sum by no more than its bound, last bits included."""
    rng = np.random.default_rng(1)
    amount = np.append(rng.uniform(0, 1, 5000), 3e9)
    low, high = 0.0, 1.0
    sums = []
    for order in (np.arange(5001), rng.permutation(5001), np.argsort(amount)):
        frame = pd.DataFrame({"g": "a", "x": amount[order]})
        table = dc.tabulate(dc.read(frame), ["g"], "x")
        method = dc.DPTableNoise(bounds=(low, high))
        sums.append(method._clipped(table, table.source).value[0])
    assert len(set(sums)) == 1
    assert sums[0] == pytest.approx(np.clip(amount, low, high).sum(), rel=1e-6)


def test_dp_noise_adds_nothing_for_missing_amounts():
    frame = pd.DataFrame({"g": list("aab"), "x": [10.0, None, 20.0]})
    table = dc.tabulate(dc.read(frame), ["g"], "x")
    clipped = dc.DPTableNoise(bounds=(5, 50))._clipped(table, table.source)
    assert clipped.value[clipped.cell("a")] == pytest.approx(10, rel=1e-6)


@pytest.mark.parametrize("method", [dc.CellKey, dc.RecordNoise], ids=lambda m: m.name)
def test_linked_tables_get_the_noise_they_get_alone(tmp_path, method):
    key = tmp_path / "key"
    key.write_text("ab" * 32)
    people = random_table(8, (4, 3, 2)).source.dataset
    tables = dc.tabulate(people, by=[["d0", "d1"], ["d1", "d2"], ["d1"]], measure="amount")
    kept = method(key=str(key))
    together = dc.protect(tables, [dc.MinimumFrequency(2)], kept)
    for table, cells in zip(tables, together.cells, strict=True):
        pd.testing.assert_frame_equal(cells, table.protect([dc.MinimumFrequency(2)], kept).cells)
    # Without a key file the tables still share one.
    drawn = dc.protect(tables, [dc.MinimumFrequency(2)], method())
    both = drawn.cells[0].query("d0 == 'Total'").merge(drawn.cells[2], on="d1", suffixes=("", "_1"))
    assert np.allclose(both.value, both.value_1)
    assert drawn.joint.loss.distance > 0
    drawn.write(tmp_path / "out", unsafe=True)
    seeded = dc.protect(tables, [], method(), rng=SEEDED(1))
    with pytest.raises(dc.RefusedError):
        seeded.write(tmp_path / "seeded")


def recodable(**changes) -> pd.DataFrame:
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(
        {
            "g": rng.choice(list("abcdef"), 80, p=[0.4, 0.3, 0.2, 0.06, 0.02, 0.02]),
            "h": rng.choice(list("uv"), 80),
            "x": rng.lognormal(3, 1, 80),
        }
    )
    return frame.assign(**changes)


def test_recoding_remembers_who_asked_for_protection():
    frame = recodable()
    frame["ask"] = frame.x == frame.x.max()
    table = dc.tabulate(dc.read(frame), ["g", "h"], "x", request="ask")
    rules = [dc.Request(20), dc.MinimumFrequency(4)]
    release = table.protect(rules, dc.Recoding(percent=5, then=dc.Suppression()))
    assert release.loss.merged > 0
    assert release.table.requested.max() == frame.x.max()
    asked = mark(release.table, [dc.Request(20)]).status == 2
    assert release.protected.withheld[asked].all()


def test_recoding_keeps_missing_values_together():
    frame = recodable()
    frame.loc[:5, "g"] = None
    table = dc.tabulate(dc.read(frame), ["g", "h"], "x", missing="?")
    release = table.protect([dc.MinimumFrequency(6)], dc.Recoding(percent=5, then=dc.Suppression()))
    total = frame.x.sum()
    assert release.table.value[release.table.cell("Total", "Total")] == pytest.approx(total)
    assert any("?" in code for code in release.table.dimensions[0].codes)


def test_recoding_of_codes_with_a_plus_in_their_name():
    names = {"a": "x + y", "b": "z", "c": "q", "d": "w", "e": "x", "f": "y"}
    frame = recodable()
    plain = dc.tabulate(dc.read(frame), ["g", "h"], "x")
    named = dc.tabulate(dc.read(frame.assign(g=frame.g.map(names))), ["g", "h"], "x")
    rules = [dc.MinimumFrequency(6)]
    for table in (plain, named):
        release = table.protect(rules, dc.Recoding())
        single = [c for c in release.table.dimensions[0].codes if c in table.dimensions[0].index]
        for code in single:  # what was not merged is as it was
            assert release.table.value[release.table.cell(code, "Total")] == pytest.approx(
                table.value[table.cell(code, "Total")]
            )


MEANS = [
    dc.Intervals(),
    dc.ControlledRounding(10_000),
    dc.RandomRounding(10_000),
    dc.ConventionalRounding(10_000),
    dc.ControlledTabularAdjustment(),
]


@pytest.mark.parametrize("method", MEANS, ids=lambda m: m.name)
def test_means_do_not_tell_how_many_records_they_are_of(method):
    """Sums that are multiples of a number, divided by a count, would."""
    frame = pd.DataFrame(
        {
            "g": list("aabbbccccddddddd"),
            "x": [1000.0 * n for n in (41, 1, 3, 50, 7, *range(20, 31))],
        }
    )
    table = dc.tabulate(dc.read(frame), ["g"], "x", "mean")
    release = table.protect([dc.PPercent(10), dc.MinimumFrequency(3)], method)
    cells = release.cells
    if release.withholds:
        numbers = cells.loc[cells.value.isna(), ["lower", "upper"]].stack()
        digits = {f"{number:e}".split("e")[0].rstrip("0").rstrip(".") for number in numbers}
        assert all(len(digit.replace(".", "").lstrip("-")) <= 2 for digit in digits)
    else:
        assert (cells.value % release.protected.grid == 0).all()


def test_intervals_of_means_hold_them_and_can_be_audited(tmp_path):
    table = dc.tabulate(salaries(), ["sector", "region"], "salary", "mean")
    release = table.protect([dc.PPercent(10), dc.MinimumFrequency(3)], dc.Intervals())
    cells = release.cells
    truth = table.mean
    assert (cells.lower <= truth + 1e-6).all()
    assert (cells.upper >= truth - 1e-6).all()
    folder = release.write(tmp_path / "out")
    found = dc.audit_published(folder / "cells.csv").intervals
    both = found.merge(table.to_frame()[["sector", "region", "value"]])
    assert ((both.lower <= both.value + 1e-3) & (both.value <= both.upper + 1e-3)).all()


@pytest.mark.parametrize("name", ["status", "value", "count", "weight", "lower", "unit_1"])
def test_attributes_called_as_our_own_columns_are_refused(name):
    frame = recodable().rename(columns={"g": name})
    with pytest.raises(dc.InputError, match=f"cannot be called '{name}'") as caught:
        dc.tabulate(dc.read(frame), [name, "h"], "x")
    assert caught.value.code == "reserved-name"


def test_ready_made_attributes_called_as_our_own_columns_are_refused():
    cells = pd.DataFrame({"status": ["Total", "a", "b"], "n": [9, 7, 2]})
    table = dc.Table.from_cells(cells, ["status"], "n", count="n", statistic="count")
    with pytest.raises(dc.InputError, match="cannot be called 'status'"):
        table.protect([dc.MinimumFrequency(3)], dc.RandomRounding())


def test_linked_means_are_printed_as_those_of_one_table():
    tables = dc.tabulate(
        salaries(), [["sector", "region"], ["region"]], measure="salary", statistic="mean"
    )
    rules = [dc.PPercent(10), dc.MinimumFrequency(3)]
    together = dc.protect(tables, rules, dc.Intervals())
    shared = together.cells[0].query("sector == 'Total'").merge(together.cells[1], on="region")
    assert (shared.lower_x == shared.lower_y).all()
    assert (shared.upper_x == shared.upper_y).all()
    rounded = dc.protect(tables, rules, dc.ControlledRounding(10_000))
    assert rounded.releases[1].protected.facts["base"] == 10_000
    assert (rounded.cells[1].value % 10_000 == 0).all()


def _firms(**more):
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "g": list("aabbbccc"),
            "firm": [f"f{i}" for i in range(8)],
            "turnover": rng.uniform(50, 90, 8),
        }
    )
    return frame.assign(staff=frame.turnover * 3, **more)


@pytest.fixture
def secret(tmp_path):
    key = tmp_path / "key"
    key.write_text("ab" * 32)
    return str(key)


def test_every_measure_has_factors_of_its_own(secret):
    """Public staff numbers would otherwise give the factor, and with it the turnover, exactly."""
    data = dc.read(_firms(), unit="firm")
    factor = []
    for measure in ("turnover", "staff"):
        table = dc.tabulate(data, ["g"], measure)
        factor.append(dc.RecordNoise(key=secret).hide(table, rng=SEEDED(1)).value / table.value)
    assert (np.abs(factor[0] - factor[1]) > 1e-6).all()


@pytest.mark.parametrize("method", [dc.RecordNoise, dc.CellKey], ids=lambda m: m.name)
def test_an_amount_that_changed_has_another_factor(tmp_path, method):
    """With one factor for both years the ratio of two printed sums would be the exact growth."""
    key = tmp_path / "secret.key"
    key.write_text("5e" * 32)
    frame = pd.DataFrame({"u": list("abcd"), "s": list("AABD"), "v": [100.0, 200.0, 300.0, 8123.0]})
    printed = []
    for last in (8123.0, 9000.0, 8123.0):
        records = dc.read(frame.assign(v=[100.0, 200.0, 300.0, last]), unit="u")
        made = dc.tabulate(records, ["s"], "v").protect(method=method(key=str(key)))
        printed.append(made.published.set_index("s")["value"])
    assert abs(printed[1]["D"] / printed[0]["D"] - 9000 / 8123) > 1e-6
    assert (printed[0] == printed[2]).all()
    # Those whose amounts are as they were have the noise they had.
    assert printed[0]["A"] == printed[1]["A"]


@pytest.mark.parametrize("method", [dc.RecordNoise, dc.CellKey], ids=lambda m: m.name)
def test_irrelevant_columns_do_not_redraw_noise(secret, method):
    """One more column, and the same table could be averaged with itself."""
    roles = {"g": "quasi", "firm": "quasi", "turnover": "confidential", "staff": "other"}
    values = []
    for more in ({}, {"note": [f"n{i % 3}" for i in range(8)]}):
        given = roles | dict.fromkeys(more, "other")
        table = dc.tabulate(dc.read(_firms(**more), roles=given), ["g"], "turnover")
        values.append(method(key=secret).hide(table, rng=SEEDED(1)).value)
    assert (values[0] == values[1]).all()


def test_the_verdict_on_noise_does_not_depend_on_the_draw():
    """A verdict that did would tell what was drawn: "safe" left one contributor within 1.1 %."""
    frame = pd.DataFrame({"g": list("abbbcccc"), "x": [100.5, 40, 50, 60, 9, 8, 7, 6.5]})
    table = dc.tabulate(dc.read(frame.assign(id=range(8)), unit="id"), ["g"], "x")
    for least, most, safe in ((5, 20, True), (10, 20, False), (10, 12.5, False), (10, 30, True)):
        found = {
            table.protect([dc.PPercent(10)], dc.RecordNoise(least, most), rng=SEEDED(s))
            .audit()
            .safe
            for s in range(12)
        }
        assert found == {safe}


def test_noise_on_small_whole_numbers_is_not_called_safe():
    """Of 2 pushed by a fifth at most only 2 is a whole number."""
    frame = pd.DataFrame({"g": list("abbbcccc"), "x": [2, 40, 50, 60, 9, 8, 7, 6]})
    table = dc.tabulate(dc.read(frame.assign(id=range(8)), unit="id"), ["g"], "x")
    assert not table.protect([dc.PPercent(10)], dc.RecordNoise()).audit().safe


def test_averaging_over_crossings_goes_as_far_as_the_page_says():
    """The sum of parts in each of m crossings into k parts estimates a total: variance V/(1 + m/k)."""
    rng = np.random.default_rng(3)
    columns = {f"c{i}": rng.choice(["x", "y"], 400) for i in range(4)}
    data = dc.read(pd.DataFrame(columns).assign(id=range(400)), unit="id")
    tables = [dc.tabulate(data, [name]) for name in columns]
    error = []
    for seed in range(50):
        method, direct, sums = dc.CellKey(), None, []
        for table in tables:
            noisy = method.hide(table, rng=SEEDED(seed)).value
            total = table.cell("Total")
            direct = noisy[total]  # the same in every table
            sums.append(noisy.sum() - noisy[total])
        k, m = 2, len(tables)
        estimate = (direct + sum(sums) / k) / (1 + m / k)
        error.append(estimate - 400)
    assert np.var(error) == pytest.approx(2.0 / (1 + 4 / 2), rel=0.6)
    assert np.var(error) < 1.2  # far less than one noise
