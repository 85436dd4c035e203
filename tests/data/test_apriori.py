"""A-priori files of tau-Argus."""

from __future__ import annotations

import pandas as pd
import pytest

import discreet as dc
from discreet.data.apriori import read_apriori
from discreet.data.table import Status, Table


def table():
    rows = [["Total", "Total", 32], ["Total", "A", 10], ["Total", "B", 22], ["X", "Total", 9]]
    rows += [["X", "A", 3], ["X", "B", 6], ["Y", "Total", 23], ["Y", "A", 7], ["Y", "B", 16]]
    return Table.from_cells(pd.DataFrame(rows, columns=["r", "c", "v"]), ["r", "c"], "v")


def test_statuses_costs_and_levels_are_taken_over(tmp_path):
    file = tmp_path / "given.hst"
    file.write_text("X, A, u\nX,A,pl,2,4\nY,A,c,0.5\nY, B, p\nTotal,A,U\nTotal,A,s\n")
    found = read_apriori(file, table())
    cell = found.table.cell
    assert (found.table.status == Status.PRIMARY).nonzero()[0].tolist() == [cell("X", "A")]
    assert found.table.lower[cell("X", "A")] == 2
    assert found.table.upper[cell("X", "A")] == 4
    assert found.table.cost[cell("Y", "A")] == 0.5
    assert found.table.cost[cell("X", "B")] == 6
    assert found.never == (("Y", "B"),)


def test_the_table_stays_as_it_was(tmp_path):
    given = table()
    (tmp_path / "a.hst").write_text("X;A;u\n")
    read_apriori(tmp_path / "a.hst", given)
    assert given.status is None


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("X,A", "ragged-row"),
        ("X,A,q", "unknown-status"),
        ("X,Z,u", "unknown-code"),
        ("X,A,c", "not-a-number"),
        ("X,A,c,five", "not-a-number"),
        ("X,A,pl,3", "not-a-number"),
        ("X,A,pl,3,-1", "not-a-number"),
        ("X,A,u,3", "not-a-number"),
    ],
)
def test_mistakes_name_file_and_line(tmp_path, line, code):
    file = tmp_path / "given.hst"
    file.write_text(f"Y,B,u\n{line}\n")
    with pytest.raises(dc.InputError) as caught:
        read_apriori(file, table(), separator=",")
    assert caught.value.code == code
    assert "given.hst" in str(caught.value)
    assert "2" in str(caught.value)
