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


def test_gains_and_losses_of_one_contributor_cancel_out_before_rules_look(tmp_path):
    """Two firms give 90 % of what is given; the records of a third, of both signs, hid that."""
    frame = pd.DataFrame(
        {
            "u": ["a", "b", "c", "c", "d", "e", "f", "g"],
            "s": ["A"] * 5 + ["B"] * 3,
            "v": [80.0, -60.0, 90.0, -88.0, 14.0, 30.0, 31.0, 32.0],
        }
    )
    table = dc.tabulate(dc.read(frame, unit="u"), ["s"], "v")
    cell = table.cell("A")
    assert table.magnitude[cell] == 80 + 60 + 2 + 14
    marked = dc.Suppression().prepare(table, [dc.Dominance(2, 80.0)])
    assert marked.status[cell] == 2
    assert marked.upper[cell] == pytest.approx(140 * 100 / 80 - 156)


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


def _shown(count, seed, n=5):
    cells = pd.DataFrame({"s": ["Total", "a", "b"], "n": [100, count, 100 - count]})
    table = dc.Table.from_cells(cells, ["s"], "n", count="n", statistic="count")
    method = dc.Intervals()
    marked = method.prepare(table, [dc.MinimumFrequency(n)])
    done = method.hide(marked, rng=dc.Randomness.seeded(seed))
    return float(done.lower[1]), float(done.upper[1])


def test_intervals_of_small_counts_are_alike():
    """Whoever knows how intervals are made finds that every small count gives the same one.

    Values used to lie in the middle half of their interval, which pinned most small counts.
    """
    for seed in range(5):
        ends = {_shown(count, seed) for count in range(1, 5)}
        assert len(ends) == 1
        ((low, high),) = ends
        assert low == 1
        assert high >= 5


def test_values_lie_at_every_position_of_their_interval():
    cells = pd.DataFrame({"s": ["Total", "a", "b"], "v": [160.0, 60, 100], "p": [0, 1, 0]})
    table = dc.Table.from_cells(cells.assign(l=4.0), ["s"], "v", primary="p", lower="l", upper="l")
    place = []
    for seed in range(60):
        done = dc.Intervals().hide(table, rng=dc.Randomness.seeded(seed))
        low, high = done.lower[1], done.upper[1]
        assert low <= 60 <= high
        assert high - low >= 8
        place.append((60 - low) / (high - low))
    quarters = np.histogram(place, bins=4, range=(0, 1))[0]
    assert (quarters >= 4).all()


def test_pieces_are_widened_until_the_totals_leave_enough():
    for seed in range(4):
        table = random_table(seed, (4, 3))
        try:
            release = table.protect([dc.PPercent(20)], dc.Intervals())
        except dc.InfeasibleError:
            continue
        audit = release.audit(exact=True)
        assert audit.safe
        found = audit.intervals
        assert (found.upper - found.lower >= found.need_upper - found.need_lower - 1e-6).all()


def test_cell_key_tells_that_a_cell_is_not_empty():
    """Zeros are kept, so that whatever is published above zero counts somebody."""
    number = np.tile(np.arange(0, 12), 200)
    cells = pd.DataFrame({"g": [f"c{n}" for n in range(len(number))], "n": number})
    table = dc.Table.from_cells(cells, ["g"], "n", count="n", statistic="count")
    done = dc.CellKey(deviation=4).hide(table, rng=dc.Randomness.seeded(1))
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
    for _ in range(5):
        done = table.protect(method=dc.Intervals()).protected
        assert ((done.upper - done.lower)[done.withheld] >= 2).all()


def test_a_printed_zero_counts_somebody_where_empty_cells_are_left_out():
    counts = pd.DataFrame({"s": ["Total", "a", "b", "c"], "n": [40, 2, 18, 20]})
    for method in (dc.ConventionalRounding(5), dc.RandomRounding(5), dc.ControlledRounding(5)):
        table = dc.Table.from_cells(counts, ["s"], "n", count="n", statistic="count")
        done = method.hide(
            method.prepare(table, [dc.MinimumFrequency(3)]), rng=dc.Randomness.seeded(3)
        )
        assert done.lower[1] >= 1
    # Of 1 and 2 alone, which a printed 0 leaves, the verdict is not safe.
    release = table.protect([dc.MinimumFrequency(3)], dc.ConventionalRounding(5))
    assert release.cells.value[1] == 0
    assert not release.audit().safe
    # With a zero in the table a printed one may be one.
    more = pd.concat([counts, pd.DataFrame({"s": ["d"], "n": [0]})])
    table = dc.Table.from_cells(more, ["s"], "n", count="n", statistic="count")
    assert dc.ConventionalRounding(5).hide(table, rng=dc.Randomness.seeded(3)).lower[1] == 0


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
