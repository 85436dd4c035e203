"""Audits of files whose totals are called by another name, or not there at all."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from discreet.tables.totals import find_total

PUBLISHED = pd.DataFrame(
    {
        "row": ["1", "1", "1", "2", "2", "2", "3", "3", "3", "Alle", "Alle", "Alle"],
        "column": ["1", "2", "everything"] * 4,
        "value": [None, None, 7, None, None, 3, 3, 3, 6, 9, 7, 16],
    }
)


def test_totals_are_found_by_arithmetic_and_named():
    audit = dc.audit_published(PUBLISHED)
    assert audit.totals == {"row": "Alle", "column": "everything"}
    assert audit.intervals[["lower", "upper"]].values.tolist()[0] == [3.0, 6.0]
    assert ("totals", "row: Alle; column: everything") in audit.rows()[1]


def test_a_disclosure_under_another_name_of_the_total_is_found():
    told = PUBLISHED.assign(value=[None, 2, 7, *PUBLISHED["value"][3:]])
    assert not dc.audit_published(told).safe


@pytest.mark.parametrize("kept", ["no totals", "totals of nothing"])
def test_without_an_equation_nothing_is_judged(kept):
    inner = PUBLISHED[(PUBLISHED.row != "Alle") & (PUBLISHED.column != "everything")]
    if kept == "totals of nothing":
        inner = inner.assign(value=[None, None, None, None, 3, 8])
    with pytest.raises(dc.InputError, match="no equation was recognised") as caught:
        dc.audit_published(inner)
    assert caught.value.code == "no-equations"
    assert "--total" in caught.value.hint


ODD = pd.DataFrame(
    [(a, b, 10.0) for a in ("x", "y") for b in ("u", "v")]
    + [(a, "0", 20.0) for a in ("x", "y")]
    + [("Total", b, 20.0) for b in ("u", "v")]
    + [("Total", "0", 40.0)],
    columns=["a", "b", "value"],
)
#: Of b sectors are sums of their parts, and 0 of the sectors: no code is the sum of all others.
NESTED = pd.DataFrame(
    [
        (a, b, (2.0 if a == "Total" else 1.0) * number)
        for a in ("Total", "x", "y")
        for b, number in [
            ("0", 20),
            ("1", 8),
            ("2", 12),
            ("11", 3),
            ("12", 5),
            ("21", 7),
            ("22", 5),
        ]
    ],
    columns=["a", "b", "value"],
)


@pytest.mark.parametrize(("cells", "hidden"), [(ODD, "u"), (NESTED, "11")])
def test_a_table_is_not_safe_while_an_attribute_has_no_recognised_total(cells, hidden):
    """What is withheld is a subtraction, 20 - 10 or 8 - 5; it was called safe by the other attribute."""
    published = cells.assign(value=cells.value.where(cells.b != hidden))
    with pytest.raises(dc.InputError, match="no code of 'b'") as caught:
        dc.audit_published(published)
    assert caught.value.code == "no-total"
    parents = {"11": "1", "12": "1", "21": "2", "22": "2"}
    pairs = [(b, "" if b == "0" else parents.get(b, "0")) for b in dict.fromkeys(cells.b)]
    assert not dc.audit_published(published, {"b": dc.Hierarchy.from_pairs(pairs)}).safe
    assert dc.audit_published(published, total="Total").totals == {"a": "Total", "b": None}


def test_a_given_total_is_believed():
    cells = pd.DataFrame({"g": ["a", "b", "c", "whole"], "value": [None, None, 4, 10]})
    with pytest.raises(dc.InputError, match="no equation"):
        dc.audit_published(cells)
    audit = dc.audit_published(cells, total="whole")
    assert audit.totals == {"g": "whole"}


@pytest.mark.parametrize("word", ["Total", "Insgesamt"])
def test_a_word_for_totals_is_no_evidence(word):
    """The codes of g may be sums themselves: A = A1 + A2 = 60 and B2 = 20 are then subtractions."""
    cells = pd.DataFrame(
        {
            "g": [word, "A", "A1", "A2", "B", "B1", "B2"],
            "value": [100, None, 30, None, 40, 20, None],
        }
    )
    with pytest.raises(dc.InputError) as caught:
        dc.audit_published(cells)
    assert caught.value.code == "unproven-total"
    pairs = [(word, ""), ("A", word), ("B", word)]
    pairs += [("A1", "A"), ("A2", "A"), ("B1", "B"), ("B2", "B")]
    audit = dc.audit_published(cells, {"g": dc.Hierarchy.from_pairs(pairs)})
    assert audit.disclosed == 3


def printed(*values):
    place = [(row, column) for row in ("Total", "A", "B") for column in ("Total", "n", "s")]
    return pd.DataFrame(place, columns=["x", "y"]).assign(value=list(values))


def test_numbers_with_marks_of_thousands_are_read_or_refused(tmp_path):
    """They were taken for withheld cells, and a plain subtraction was called safe."""
    one = printed(
        "100,000", "45,000", "55,000", "40,000", "c", "35,000", "60,000", "40,000", "20,000"
    )
    with pytest.raises(dc.InputError, match="'100,000' in row 1") as caught:
        dc.audit_published(one)
    assert caught.value.code == "not-a-number"
    sure = one.assign(value=one.value.str.replace(",", " "))
    found = dc.audit_published(sure)
    assert not found.safe
    assert found.intervals[["lower", "upper"]].to_numpy().tolist() == [[5000.0, 5000.0]]
    commas = printed("100,5", "45,5", "55", "40", "c", "35,25", "60,5", "40,75", "19,75")
    commas.to_csv(tmp_path / "cells.csv", sep=";", index=False, encoding="latin-1")
    assert not dc.audit_published(tmp_path / "cells.csv").safe


@pytest.mark.parametrize("odd", ["<5", "40 e", "4-6", "(3)"])
def test_what_tells_something_of_a_value_is_no_mark(odd):
    with pytest.raises(dc.InputError, match="neither a number nor a mark"):
        dc.audit_published(printed(100, 45, 55, 40, odd, 35, 60, 40, 20))


def test_a_table_in_which_nothing_is_printed_is_not_judged():
    with pytest.raises(dc.InputError) as caught:
        dc.audit_published(printed(*"ccccccccc"), total="Total")
    assert caught.value.code == "nothing-printed"


def test_nothing_withheld_needs_no_equation():
    cells = pd.DataFrame({"g": ["a", "b"], "value": [1, 2]})
    assert dc.audit_published(cells).safe


def test_a_code_that_is_the_sum_once_only_is_no_total():
    lines = [("N",)] * 3 + [("S",)] * 3
    assert find_total(["a", "b", "c"] * 2, lines, np.array([1.0, 2, 3, 1, 2, 4])) is None
    assert find_total(["a", "b", "c"] * 2, lines, np.array([1.0, 2, 3, 2, 2, 4])) == "c"


def beside(values, numbers):
    """A published table with a column of counts; those of one sector are withheld."""
    place = [(s, r) for s in ("ALL", "it", "fin") for r in ("all", "n", "s")]
    frame = pd.DataFrame(place, columns=["s", "r"])
    return frame.assign(value=values, count=numbers)


def test_counts_beside_sums_do_not_make_means_of_them():
    """A foreign file prints sums and numbers of records: their product adds up to nothing."""
    numbers = [20, 9, 11, 8, 3, 5, 12, 6, 6]
    one = beside([100, 45, 55, 40, None, 35, 60, 40, 20], numbers)
    found = dc.audit_published(one)
    assert not found.safe
    assert not found.is_of_means
    assert found.intervals[["lower", "upper"]].to_numpy().tolist() == [[5.0, 5.0]]
    # Control: of means the product adds up.
    total = [100, 45, 55, 40, None, 35, 60, 40, 20]
    means = [None if v is None else v / n for v, n in zip(total, numbers, strict=True)]
    found = dc.audit_published(beside(means, numbers))
    assert found.is_of_means
    assert found.intervals[["lower", "upper"]].to_numpy().tolist() == [[5.0, 5.0]]
