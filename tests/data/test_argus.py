"""tau-Argus files: cells of status P stay published under every method that withholds or moves."""

import numpy as np
import pytest

import discreet as dc

RDA = """<SEPARATOR> ","
s
 <RECODEABLE>
 <TOTCODE> "Total"
v
 <NUMERIC>
n
 <FREQUENCY>
st
 <STATUS>
lo
 <LOWERPL>
up
 <UPPERPL>
"""
CELLS = """Total,100,40,s,0,0
a,10,2,u,3,3
b,20,10,p,0,0
c,30,12,s,0,0
d,40,16,s,0,0
e,0,0,s,0,0
"""


def kept_table(folder):
    (folder / "t.tab").write_text(CELLS)
    (folder / "t.rda").write_text(RDA)
    return dc.Table.from_argus(folder / "t.tab")


@pytest.mark.parametrize("effort", ["fast", "balanced", "optimal"])
@pytest.mark.parametrize("attacker", ["outsider", "contributors"])
def test_cells_of_status_p_are_never_withheld(tmp_path, effort, attacker):
    """The cheapest partner of a would be b, whichever the objective."""
    table = kept_table(tmp_path)
    assert table.never.tolist() == [False, False, True, False, False]
    method = dc.Suppression(objective="value", effort=effort, attacker=attacker)
    release = table.protect(method=method)
    withheld = release.protected.withheld
    assert withheld[table.cell("a")]
    assert not withheld[table.cell("b")]
    # Control: without the status it is withheld.
    free = table.replace(never=None).protect(method=method)
    assert free.protected.withheld[table.cell("b")]


def test_they_stay_as_they_are_in_intervals_and_adjustments(tmp_path):
    table = kept_table(tmp_path)
    for seed in range(5):
        for method in (dc.Intervals(), dc.ControlledTabularAdjustment()):
            done = table.protect(method=method, rng=dc.Randomness.seeded(seed)).protected
            assert done.value[table.cell("b")] == 20


def test_an_apriori_file_and_linked_tables_keep_them_too(tmp_path):
    table = kept_table(tmp_path).replace(never=None)
    (tmp_path / "a.hst").write_text("b, p\n")
    from discreet.data.apriori import read_apriori

    given = read_apriori(tmp_path / "a.hst", table).table
    assert np.flatnonzero(given.never).tolist() == [table.cell("b")]
    both = dc.protect([given, given], method=dc.Suppression(objective="value"))
    assert not both.releases[0].protected.withheld[table.cell("b")]
