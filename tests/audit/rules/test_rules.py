"""Sensitivity rules: the seeds' examples, the formulas, and demands that cannot be met."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from tests.tables.instances import castro, salaries

import discreet as dc
from discreet.audit.exposure import expose
from discreet.audit.sensitivity import mark
from discreet.data.table import Table


def one_cell(value, top, count=5, **more):
    frame = pd.DataFrame({"a": ["x"], "value": [float(value)], "n": [count]})
    for rank, amount in enumerate(top):
        frame[f"top{rank}"] = float(amount)
    names = [f"top{rank}" for rank in range(len(top))]
    return Table.from_cells(frame, ["a"], "value", count="n", contributions=names, **more)


def test_salaries_mark_exactly_the_printed_cells():
    table = dc.tabulate(salaries(), by=["sector", "region"], measure="salary")
    marked = mark(table, [dc.PPercent(10), dc.MinimumFrequency(3)])
    found = {marked.labels(int(i)) for i in np.flatnonzero(marked.status == 2)}
    assert found == {("IT", "BCN"), ("Fin", "BCN"), ("Fin", "TGN")}


def test_salaries_attacks_in_words():
    table = dc.tabulate(salaries(), by=["sector", "region"], measure="salary")
    marked = mark(table, [dc.PPercent(10), dc.MinimumFrequency(3)])
    attacks = {e.cell: e for e in expose(marked).cells}
    assert attacks["IT", "BCN"].attack == "dominance"
    assert "within 6.4 %" in attacks["IT", "BCN"].text
    assert attacks["Fin", "TGN"].attack == "external"
    assert "150,000" in attacks["Fin", "TGN"].text
    assert attacks["Fin", "BCN"].attack == "internal"


def test_castro_attacks():
    _, magnitudes = castro()
    assert magnitudes.value[magnitudes.cell("Total", "Total")] == 8620
    external = expose(magnitudes, [magnitudes.cell("M2", "P3")]).cells[0]
    assert (external.attack, "22" in external.text) == ("external", True)
    dominance = expose(magnitudes, [magnitudes.cell("M3", "P5")]).cells[0]
    assert dominance.attack == "dominance"
    assert "the other 4 have at most 13 together" in dominance.text
    internal = expose(magnitudes, [magnitudes.cell("M1", "P1")]).cells[0]
    assert internal.attack == "internal"
    sensitive = dc.Dominance(1, 50).judge(magnitudes).sensitive
    assert sensitive[magnitudes.cell("M3", "P5")]
    assert dc.Pq(50, 100).judge(magnitudes).sensitive[magnitudes.cell("M3", "P5")]


def test_levels_by_formula():
    table = one_cell(120, [90, 20])
    p = dc.PPercent(20).judge(table)
    assert p.upper[0] == pytest.approx(0.2 * 90 - (120 - 90 - 20))
    pq = dc.Pq(20, 50).judge(table)
    assert pq.upper[0] == pytest.approx(0.4 * 90 - 10)
    dominance = dc.Dominance(1, 60).judge(table)
    assert dominance.upper[0] == pytest.approx(90 * 100 / 60 - 120)
    assert not dc.Dominance(1, 75).judge(table).sensitive[0]  # exactly 75 %
    assert not dc.PPercent(11).judge(one_cell(120.9, [90, 21])).sensitive[0]  # 9.9 of 9.9


def test_p_percent_is_pq_with_everything_unknown():
    rng = np.random.default_rng(3)
    for _ in range(200):
        top = np.sort(rng.lognormal(2, 2, 2))[::-1]
        table = one_cell(top.sum() + rng.lognormal(0, 2), top)
        one, two = dc.PPercent(15).judge(table), dc.Pq(15, 100).judge(table)
        assert one.sensitive[0] == two.sensitive[0]
        assert one.upper[0] == two.upper[0]


def test_rules_combine_to_the_greatest_need():
    table = one_cell(100, [95, 4], count=2)
    alone = [dc.PPercent(10), dc.MinimumFrequency(3, range=20), dc.Dominance(1, 60)]
    together = mark(table, alone)
    assert together.upper[0] == max(rule.judge(table).upper[0] for rule in alone)
    assert together.lower[0] <= 100  # nothing below zero can be asked for


def test_given_statuses_are_kept():
    frame = pd.DataFrame(
        {"a": ["Total", "x", "y"], "v": [10.0, 4, 6], "s": [0, 1, 0], "l": [9.0, 2.0, 9.0]}
    )
    table = Table.from_cells(frame, ["a"], "v", primary="s", lower="l", upper="l")
    marked = mark(table)
    assert marked.status.tolist() == [0, 2, 0]
    assert marked.upper.tolist() == [0, 2, 0]  # levels of cells that are not sensitive mean nothing


def test_negative_contributions_count_with_their_size():
    frame = pd.DataFrame({"g": list("aaabb"), "x": [100.0, -99.0, 1.0, 5.0, 6.0]})
    table = dc.tabulate(dc.read(frame), by=["g"], measure="x")
    cell = table.cell("a")
    assert table.value[cell] == 2
    assert table.magnitude[cell] == 200
    # By the value alone −197 would be left of the cell; in truth nobody is alone in it.
    assert dc.PPercent(10).judge(table).sensitive[cell]
    assert not dc.PPercent(0.9).judge(table).sensitive[cell]


def test_request_rule_through_records():
    frame = pd.DataFrame(
        {
            "good": ["oil"] * 3 + ["gas"] * 3,
            "x": [80.0, 10, 10, 80, 10, 10],
            "asked": [1, 0, 0, 0, 1, 0],
        }
    )
    table = dc.tabulate(dc.read(frame), by=["good"], measure="x", request="asked")
    sensitive = dc.Request(70).judge(table).sensitive
    assert sensitive.tolist() == [table.labels(i) == ("oil",) for i in range(3)]


def test_zero_cells():
    frame = pd.DataFrame({"g": list("aab"), "x": [3.0, 4.0, 0.0]})
    table = dc.tabulate(dc.read(frame), by=["g"], measure="x")
    found = dc.ZeroCells(level=2).judge(table)
    assert found.sensitive.tolist() == [table.labels(i) == ("b",) for i in range(3)]
    assert found.upper.max() == 2
    assert not dc.MinimumFrequency(1).judge(table).sensitive.any()


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: dc.MinimumFrequency(0), "n must be at least 1"),
        (lambda: dc.Dominance(1, 120), "k must be"),
        (lambda: dc.Dominance(0, 75), "n must be"),
        (lambda: dc.PPercent(0), "p must be above 0"),
        (lambda: dc.Pq(30, 20), "p must be below q"),
        (lambda: dc.Request(100), "share must be"),
        (lambda: dc.PPercent("10"), "must be a number"),
    ],
)
def test_impossible_parameters(make, word):
    with pytest.raises(dc.InputError, match=word):
        make()


def test_rules_say_what_a_table_lacks():
    table = Table.from_cells(pd.DataFrame({"a": ["x"], "v": [1.0]}), ["a"], "v")
    with pytest.raises(dc.InputError, match="number of contributors"):
        dc.MinimumFrequency(3).judge(table)
    with pytest.raises(dc.InputError, match="2 largest contributions, the table has 0"):
        dc.PPercent(10).judge(table)
    with pytest.raises(dc.InputError, match="asked"):
        dc.Request(70).judge(table)
    with pytest.raises(dc.InputError, match="no code"):
        dc.Manual(("nowhere",)).judge(table)
    with pytest.raises(dc.InputError, match="2 codes"):
        dc.Manual(("x/y",)).judge(table)
