"""The suppression method: what it is given and what it hands to the release."""

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from discreet.data.table import Status


@pytest.fixture
def table():
    rows = [("Total", "Total", 100), ("Total", "N", 45), ("Total", "S", 55)]
    rows += [("IT", "Total", 40), ("IT", "N", 5), ("IT", "S", 35)]
    rows += [("Fin", "Total", 60), ("Fin", "N", 40), ("Fin", "S", 20)]
    cells = pd.DataFrame(rows, columns=["sector", "region", "value"]).astype({"value": float})
    cells["primary"] = (cells["sector"] == "IT") & (cells["region"] == "N")
    cells["level"] = 2.0
    return dc.Table.from_cells(
        cells,
        by=["sector", "region"],
        value="value",
        primary="primary",
        lower="level",
        upper="level",
    )


def hide(table, **options):
    method = dc.Suppression(attacker="outsider", **options)
    return method.hide(table, rng=dc.Randomness.seeded(1))


def test_withheld_cells_have_no_value_and_a_status(table):
    done = hide(table, objective="value")
    assert np.isnan(done.value).tolist() == (done.status > 0).tolist()
    assert (done.status == Status.PRIMARY).sum() == 1
    assert (done.status == Status.SECONDARY).sum() == 3
    assert not done.facts  # neither how many are sensitive nor how cheap the pattern is
    assert done.confidential["audit"].safe


def test_optimal_says_that_it_is(table):
    assert hide(table, effort="optimal").confidential["optimal"] is True


def test_cells_are_named_by_codes(table):
    done = hide(table, objective="value", never=("Fin/*",))
    kept = [table.cell("Fin", region) for region in ("Total", "N", "S")]
    assert (done.status[kept] == Status.SAFE).all()


@pytest.mark.parametrize("never", [("Fin",), ("Fin/X",)])
def test_cells_that_do_not_exist_are_refused(table, never):
    with pytest.raises(dc.InputError):
        hide(table, never=never)


def test_secondaries_of_the_input_are_preferred(table):
    status = table.status.copy()
    wished = [table.cell("IT", "Total"), table.cell("Total", "N"), table.cell("Total", "Total")]
    status[wished] = Status.SECONDARY
    done = hide(table.replace(status=status), objective="value")
    assert np.flatnonzero(done.status == Status.SECONDARY).tolist() == sorted(wished)


def test_the_input_is_not_changed(table):
    before = table.value.copy(), table.status.copy()
    hide(table)
    assert np.array_equal(table.value, before[0])
    assert np.array_equal(table.status, before[1])
