"""What methods tell of true values holds, and nothing sensitive is published for lack of a level."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from tests.tables.instances import random_table

import discreet as dc
from discreet.tables.assessment import assess
from discreet.tables.methods import Protected


def outside(done, table) -> int:
    slack = 1e-9 * np.maximum(1.0, np.abs(table.value))
    return int(((done.lower > table.value + slack) | (done.upper < table.value - slack)).sum())


@pytest.mark.parametrize("method", [dc.RecordNoise(), dc.CellKey()], ids=lambda m: m.name)
def test_contributions_of_both_signs(method):
    frame = pd.DataFrame({"g": list("aaabbbcc"), "x": [100.0, -99, 3, 50, 60, 70, -4, -5]})
    for part in (frame, frame[frame.g != "c"], frame[frame.g == "b"]):
        table = dc.tabulate(dc.read(part.assign(id=range(len(part))), unit="id"), ["g"], "x")
        for seed in range(30):
            assert not outside(method.hide(table, rng=dc.Randomness.seeded(seed)), table)
        assert table.protect([dc.MinimumFrequency(3)], method).verdict
    # Where all are of one sign, noise tells how large a cell is.
    assert np.isfinite(method.hide(table, rng=dc.Randomness.seeded(1)).upper).all()


ROUNDING = [dc.RandomRounding, dc.ControlledRounding, dc.ConventionalRounding]


@pytest.mark.parametrize("method", ROUNDING, ids=lambda m: m.name)
def test_rounded_weighted_counts_lie_where_the_audit_believes(method):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"g": rng.choice(list("abcdefgh"), 40), "w": rng.uniform(0.5, 3, 40)})
    table = dc.tabulate(dc.read(frame, weight="w"), ["g"])
    for seed in range(20):
        assert not outside(method(5).hide(table, rng=dc.Randomness.seeded(seed)), table)
    assert table.protect([dc.MinimumFrequency(3)], method(5)).verdict


@pytest.mark.parametrize("base", [1, 2, 3, 5, 10])
def test_rounded_whole_numbers_are_known_to_be_whole(base):
    number = np.arange(1, 60)
    cells = pd.DataFrame({"g": [f"c{n}" for n in number], "n": number})
    table = dc.Table.from_cells(cells, ["g"], "n", statistic="count")
    done = dc.ConventionalRounding(base).hide(table, rng=dc.Randomness.seeded(1))
    for printed in np.unique(done.value[:-base]):
        same = number[done.value == printed]
        which = int(np.flatnonzero(done.value == printed)[0])
        assert max(done.lower[which], 1) == same.min()
        assert done.upper[which] == same.max()


def test_cell_key_moves_weighted_counts_by_whole_records():
    frame = pd.DataFrame({"g": list("aaaabbbbbccccccdddddddd"), "w": 1000})
    table = dc.tabulate(dc.read(frame, weight="w"), ["g"])
    done = dc.CellKey().hide(table, rng=dc.Randomness.seeded(1))
    step = (done.value - table.value) / 1000
    assert (step == np.round(step)).all()
    assert (step != 0).any()


def flagged(**columns) -> dc.Table:
    cells = pd.DataFrame({"s": ["Total", "a", "b", "c"], "v": [63.0, 11, 21, 31], **columns})
    return dc.Table.from_cells(cells.assign(p=[0, 1, 0, 0]), ["s"], "v", primary="p")


@pytest.mark.parametrize("method", [dc.Intervals(), dc.ControlledTabularAdjustment()])
def test_sensitive_cells_without_levels_are_not_published(method):
    with pytest.raises(dc.InputError, match=r"no protection level.*such as a") as caught:
        flagged().protect(method=method)
    assert caught.value.code == "missing-levels"


@pytest.mark.parametrize("method", [dc.ConventionalRounding(1), dc.RandomRounding(1)])
def test_what_is_told_exactly_is_not_safe(method):
    audit = flagged().protect(method=method).audit()
    assert not audit.safe
    assert audit.disclosed == 1


@pytest.mark.parametrize("rule", [dc.MinimumFrequency(3), dc.ZeroCells(5)])
@pytest.mark.parametrize("method", [dc.Intervals(), dc.ControlledTabularAdjustment()])
def test_the_zero_of_a_single_contributor_is_not_published(rule, method):
    cells = pd.DataFrame(
        {"s": ["Total", "a", "b", "c"], "v": [52.0, 0, 21, 31], "n": [13, 1, 6, 6]}
    )
    table = dc.Table.from_cells(cells, ["s"], "v", count="n")
    release = table.protect([rule], method)
    assert release.audit().safe
    assert release.cells.value[1] != 0
    unmoved = Protected(release.table, table.value.copy(), np.full(4, np.int8(3)))
    if method.risk == "distance":
        assert not assess(unmoved, method).safe


def test_intervals_of_counts_do_not_tell_the_count():
    """Whoever knows how intervals are made finds several counts that give the same ones."""
    shown: dict[tuple[float, float], set[int]] = {}
    for count in range(1, 40):
        cells = pd.DataFrame({"s": ["Total", "a", "b"], "n": [count + 97, count, 97]})
        table = dc.Table.from_cells(cells, ["s"], "n", count="n", statistic="count")
        marked = table.replace(
            status=np.array([0, 2, 0], np.int8), lower=np.ones(3), upper=np.ones(3)
        )
        done = dc.Intervals().hide(marked, rng=dc.Randomness.seeded(1))
        assert done.lower[1] <= count - 1
        assert done.upper[1] >= count + 1
        shown.setdefault((done.lower[1], done.upper[1]), set()).add(count)
    inner = [found for ends, found in shown.items() if ends[0] > 0 and ends[1] < 39]
    assert min(len(found) for found in inner) >= 2


def test_no_end_of_an_interval_is_the_value():
    for seed in range(8):
        table = random_table(seed, (4, 3))
        try:
            done = table.protect([dc.PPercent(20)], dc.Intervals()).protected
        except dc.InfeasibleError:
            continue
        hidden = done.withheld
        assert (done.upper > table.value)[hidden].all()
        assert ((done.lower < table.value) | (table.value == 0))[hidden].all()


def test_cell_key_tells_that_a_cell_is_not_empty():
    """Zeros are kept, so that whatever is published above zero counts somebody."""
    number = np.tile(np.arange(0, 12), 200)
    cells = pd.DataFrame({"g": [f"c{n}" for n in range(len(number))], "n": number})
    table = dc.Table.from_cells(cells, ["g"], "n", count="n", statistic="count")
    done = dc.CellKey().hide(table, rng=dc.Randomness.seeded(1))
    assert not outside(done, table)
    for printed in np.unique(done.value):
        same = number[(done.value == printed) & (number > 0)]
        which = (done.value == printed) & (number > 0)
        if printed > 0:
            assert done.lower[which].min() == max(printed - 4, 1)
            assert same.min() >= 1
        else:
            assert (done.lower[which] == 0).all()


def test_intervals_of_whole_numbers_leave_several_however_small_the_level():
    cells = pd.DataFrame({"s": ["Total", "a", "b", "c"], "v": [40, 2, 18, 20], "p": [0, 1, 0, 0]})
    table = dc.Table.from_cells(cells.assign(l=0.2), ["s"], "v", primary="p", lower="l", upper="l")
    done = table.protect(method=dc.Intervals()).protected
    inner = (done.upper - done.lower)[done.withheld]
    assert (inner >= 4).all() or (done.lower[done.withheld] == 0).any()
    assert (inner >= 2).all()


@pytest.mark.parametrize(
    "wrong", [{"epsilon": np.inf}, {"bounds": (0.0, np.inf)}, {"bounds": (-np.inf, 5.0)}]
)
def test_dp_noise_without_end_is_refused(wrong):
    with pytest.raises(dc.InputError, match="finite") as caught:
        dc.DPTableNoise(**wrong)
    assert caught.value.code == "parameter-range"


def test_ready_made_contributions_are_ordered_by_size():
    """A loss of 100 is a larger contribution than a gain of 5."""
    cells = pd.DataFrame({"s": ["a"], "v": [-88.0], "x": [5.0], "y": [-100.0], "n": [4]})
    table = dc.Table.from_cells(cells, ["s"], "v", count="n", contributions=["x", "y"])
    assert table.contributions.tolist() == [[-100.0, 5.0]]
    records = pd.DataFrame({"s": "a", "x": [5.0, -100.0, 4.0, 3.0], "id": range(4)})
    own = dc.tabulate(dc.read(records, unit="id"), ["s"], "x")
    given = table.replace(magnitude=np.array([112.0]))
    for p in (6, 8, 50):
        found = dc.PPercent(p).judge(given)
        same = dc.PPercent(p).judge(own)
        cell = own.cell("a")
        assert found.sensitive[0] == same.sensitive[cell]
        assert found.upper[0] == pytest.approx(same.upper[cell])
    done = dc.CellKey(least=10, most=20).hide(table, rng=dc.Randomness.seeded(1))
    assert 10 <= abs(done.value[0] - table.value[0]) <= 20
