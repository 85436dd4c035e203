"""Protecting tables: worked examples, linked tables, and tables that cannot be protected."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tables.instances import castro, random_table, salaries

import discreet as dc
from discreet.tables.table import Table

RULES = [dc.PPercent(10), dc.MinimumFrequency(3)]


def salary_table():
    return dc.tabulate(salaries(), by=["sector", "region"], measure="salary")


def test_salary_totals_as_printed():
    table = salary_table()
    printed = {
        ("IT", "BCN"): 852000,
        ("IT", "TGN"): 97000,
        ("Fin", "BCN"): 335000,
        ("Fin", "TGN"): 150000,
        ("HC", "BCN"): 379000,
        ("HC", "TGN"): 103000,
        ("Total", "Total"): 1916000,
        ("Fin", "Total"): 485000,
        ("Total", "TGN"): 350000,
    }
    for codes, value in printed.items():
        assert table.value[table.cell(*codes)] == value
    counts = dc.tabulate(salaries(), by=["sector", "region"])
    assert counts.statistic == "count"
    assert counts.value[counts.cell("Fin", "Total")] == 3


def test_feasibility_example_of_the_seeds():
    frame = pd.DataFrame(
        {
            "a2": ["1"] * 3 + ["2"] * 3 + ["3"] * 3 + ["Total"] * 3,
            "a1": ["1", "2", "Total"] * 4,
            "value": [None, None, 7, None, None, 3, 3, 3, 6, 9, 7, 16],
        }
    )
    found = dc.audit_published(frame).intervals
    first = found[(found.a2 == "1") & (found.a1 == "1")].iloc[0]
    assert (first.lower, first.upper) == (3, 6)


def test_salaries_suppressed_and_safe():
    release = salary_table().protect(rules=RULES, method=dc.Suppression())
    cells = release.cells.set_index(["sector", "region"])
    assert release.audit().safe
    assert cells.value.isna().sum() == 3 + release.loss.secondaries
    for codes in (("IT", "BCN"), ("Fin", "BCN"), ("Fin", "TGN")):
        assert cells.loc[codes, "status"] == "primary"
        assert cells.loc[codes, "conf_status"] == "C"
    assert set(cells.conf_status[cells.status == "secondary"]) <= {"D"}


def test_castro_suppression_protects_the_single_person():
    _, magnitudes = castro()
    release = magnitudes.protect(
        rules=[dc.MinimumFrequency(2)],
        method=dc.Suppression(objective="value", attacker="outsider"),
    )
    cells = release.cells.set_index(["town", "work"])
    assert cells.loc[("M2", "P3"), "status"] == "primary"
    assert release.audit(exact=True).safe
    # As few as the seed's pattern: one rectangle of four cells.
    assert int(cells.value.isna().sum()) == 4


def test_mean_is_protected_through_sum_and_count():
    table = dc.tabulate(salaries(), by=["sector", "region"], measure="salary", statistic="mean")
    assert table.mean[table.cell("IT", "TGN")] == pytest.approx(97000 / 3)
    release = table.protect(rules=RULES, method=dc.Suppression())
    cells = release.cells.set_index(["sector", "region"])
    assert cells.loc[("HC", "TGN"), "value"] == pytest.approx(103000 / 3)
    assert np.isnan(cells.loc[("Fin", "TGN"), "value"])
    assert np.isnan(cells.loc[("Fin", "TGN"), "count"])
    published = dc.audit_published(release.cells, total="Total")
    own = release.audit(attacker="outsider", exact=True)
    pd.testing.assert_frame_equal(
        own.intervals[["lower", "upper"]], published.intervals[["lower", "upper"]], rtol=1e-6
    )


def test_linked_tables_share_their_fate():
    people = salaries()
    tables = dc.tabulate(people, by=[["sector", "region"], ["sector"]], measure="salary")
    release = dc.protect(tables, RULES, dc.Suppression())
    assert release.audit().safe
    first, second = release.cells
    totals = first[first.region == "Total"].set_index("sector").status
    alone = second.set_index("sector").status
    assert (totals.sort_index() == alone.sort_index()).all()


def test_a_person_alone_in_two_linked_tables_is_one_attacker():
    frame = pd.DataFrame(
        {
            "who": ["ann", "bob", "cat", "dan", "eve", "ann"],
            "a": ["x", "y", "y", "y", "y", "x"],
            "b": ["u", "w", "w", "u", "w", "u"],
            "c": ["k", "l", "l", "l", "l", "k"],
            "v": [10.0, 20, 30, 40, 50, 5],
        }
    )
    people = dc.read(frame, unit="who")
    first, second = dc.tabulate(people, by=[["a", "b"], ["c", "b"]], measure="v")
    one = first.contributors[first.cell("x", "u"), 0]
    two = second.contributors[second.cell("k", "u"), 0]
    assert one == two
    others = set(first.contributors[first.cell("y", "w")]) - {-1}
    assert one not in others
    assert first.numbering is second.numbering


def test_linked_tables_that_disagree():
    one = pd.DataFrame({"sector": ["Total", "IT", "Fin"], "v": [10.0, 7.0, 3.0]})
    two = pd.DataFrame({"region": ["Total", "N", "S"], "v": [11.0, 5.0, 6.0]})
    tables = [Table.from_cells(one, ["sector"], "v"), Table.from_cells(two, ["region"], "v")]
    with pytest.raises(dc.InputError, match="Total"):
        dc.protect(tables, method=dc.ControlledRounding(5))


def test_totals_that_do_not_add_up_are_named():
    frame = pd.DataFrame({"sector": ["Total", "IT", "Fin"], "v": [11.0, 7.0, 3.0], "n": [5, 3, 2]})
    table = Table.from_cells(frame, ["sector"], "v", count="n")
    with pytest.raises(dc.InputError, match="Total") as error:
        table.protect(rules=[dc.MinimumFrequency(3)], method=dc.ControlledRounding(5))
    assert error.value.code == "table-not-additive"


def test_sensitive_grand_total_is_refused_by_name():
    frame = pd.DataFrame({"sector": ["Total", "IT", "Fin"], "v": [10.0, 7.0, 3.0], "n": [2, 1, 1]})
    table = Table.from_cells(frame, ["sector"], "v", count="n")
    with pytest.raises(dc.InfeasibleError, match="grand total Total") as error:
        table.protect(rules=[dc.MinimumFrequency(3)])
    assert error.value.hint
    assert error.value.facts["cells"] == ["Total"]


def test_no_safe_pattern_names_the_cells():
    frame = pd.DataFrame(
        {"sector": ["Total", "IT", "Fin"], "v": [10.0, 10.0, 0.0], "n": [9, 9, 0], "p": [0, 1, 0]}
    )
    frame["level"] = 2.0
    table = Table.from_cells(
        frame, ["sector"], "v", count="n", primary="p", lower="level", upper="level"
    )
    for method in (
        dc.Suppression(attacker="outsider", never=("Total",)),
        dc.ControlledTabularAdjustment(totals="fixed"),
    ):
        with pytest.raises(dc.InfeasibleError, match="IT"):
            table.protect(method=method)


def test_wrong_demands_are_explained():
    people = salaries()
    with pytest.raises(dc.InputError, match="nothing says which cells are sensitive"):
        salary_table().protect()
    assert salary_table().protect(method=dc.ControlledRounding(1000)).cells.shape[0] == 12
    with pytest.raises(dc.InputError, match="'regio'"):
        dc.tabulate(people, by=["regio"])
    with pytest.raises(dc.InputError, match="holds no numbers"):
        dc.tabulate(people, by=["region"], measure="sector")
    with pytest.raises(dc.InputError, match="mean needs a measure"):
        dc.tabulate(people, by=["region"], statistic="mean")
    with pytest.raises(dc.InputError, match="at least one attribute"):
        dc.tabulate(people, by=[])
    with pytest.raises(dc.InputError, match="attribute and the measure"):
        dc.tabulate(people, by=["salary"], measure="salary")


def test_weights_and_units():
    frame = pd.DataFrame(
        {
            "holding": [1, 1, 2, 3, 4],
            "act": ["A", "A", "A", "B", "B"],
            "x": [10.0, 20.0, 5.0, 7.0, 8.0],
            "w": [2.0, 2.0, 3.0, 1.0, 1.0],
        }
    )
    table = dc.tabulate(dc.read(frame, unit="holding", weight="w"), by=["act"], measure="x")
    cell = table.cell("A")
    assert table.value[cell] == 2 * 10 + 2 * 20 + 3 * 5
    assert table.count[cell] == 2  # holdings, not records
    assert table.contributions[cell].tolist() == [30, 5]


def test_the_same_draw_gives_the_same_pattern():
    table = random_table(5)
    first, again = (
        table.protect([dc.MinimumFrequency(3)], rng=dc.Randomness.seeded(1)).cells for _ in range(2)
    )
    pd.testing.assert_frame_equal(first, again)


def test_comparison_lists_every_method():
    from discreet.tables.methods import FAMILY

    found = dc.compare(salary_table(), RULES)
    assert {line.method for line in found.methods} == set(FAMILY.members())
    by_name = {line.method: line for line in found.methods}
    assert by_name["suppression"].safe
    assert by_name["controlled-rounding"].additive
    assert not by_name["conventional-rounding"].additive
    assert "bounds" in by_name["dp-noise"].note


def test_frames_come_back_in_the_type_that_went_in():
    import polars as pl

    frame = pl.DataFrame({"sector": ["IT"] * 9 + ["Fin"] * 9, "x": list(range(1, 19))})
    table = dc.tabulate(dc.read(frame), by=["sector"], measure="x")
    release = table.protect(rules=[dc.MinimumFrequency(3)], method=dc.ControlledRounding(5))
    assert isinstance(release.cells, pl.DataFrame)


PUBLISHED = (
    b"r,c,value,status\nTotal,Total,60,safe\nTotal,x,30,safe\nTotal,y,30,safe\na,Total,30,safe\n"
    b"a,x,,primary\na,y,,secondary\nb,Total,30,safe\nb,x,,secondary\nb,y,,secondary\n"
)
JUNK = st.sampled_from(
    [b"\x00", b"\xff", b",", b'"', b"\n", b"inf", b"1e400", b"-", b"\xef\xbb\xbf"]
)


@settings(max_examples=60, deadline=None)
@given(
    place=st.integers(0, len(PUBLISHED)), junk=JUNK | st.binary(max_size=6), cut=st.integers(0, 40)
)
def test_a_broken_published_file_is_a_clear_error(tmp_path_factory, place, junk, cut):
    file = tmp_path_factory.mktemp("published") / "cells.csv"
    file.write_bytes(PUBLISHED[:place] + junk + PUBLISHED[place + cut :])
    try:
        audit = dc.audit_published(file)
    except dc.InputError:
        return
    assert audit.unsafe <= audit.sensitive
