"""Tables as people meet them: however they were made, they can be protected."""

import typing

import pandas as pd
import pytest
from tests.tables.instances import salaries

import discreet as dc
from discreet.data import table as cells
from discreet.tables.large import LargeRelease
from discreet.tables.release import TableRelease

CELLS = pd.DataFrame({"sector": ["Total", "IT", "Fin"], "value": [16.0, 7.0, 9.0]})


def test_protect_says_what_it_takes_and_returns():
    hints = typing.get_type_hints(dc.Table.protect, localns={"Ledger": dc.Ledger})
    assert hints["return"] == TableRelease | LargeRelease  # large by size
    ledger = {"ledger", "snapshot", "like", "patience"}
    assert set(hints) == {"rules", "method", "rng", "unsafe", "progress", "return"} | ledger
    assert not hasattr(cells.Table, "protect")  # what is below knows nothing of protecting


def test_tables_stay_protectable_whatever_is_done_to_them():
    one = dc.tabulate(salaries(), by=["sector"], measure="salary")
    several = dc.tabulate(salaries(), by=[["sector"], ["region"]], measure="salary")
    given = dc.Table.from_cells(CELLS, ["sector"], "value")
    for table in (one, *several, given, given.replace(value=given.value * 2)):
        assert isinstance(table, dc.Table)
        assert table.protect(
            method=dc.RecordNoise() if table is one else dc.ConventionalRounding(5)
        )


@pytest.mark.parametrize("by", [["sector"], "sector"])
def test_one_list_of_attributes_makes_one_table(by):
    table = dc.tabulate(salaries(), by=by)
    assert table.by == ("sector",)
    assert table.source is not None
    assert isinstance(dc.tabulate(salaries(), by=[["sector"]]), tuple)
