"""Without the extra `dp` nothing is opened, charged or drawn, and the error says what to install."""

from __future__ import annotations

import sys

import pytest

import discreet as dc
from discreet import demo
from discreet.dp.libraries import accounting, opendp


@pytest.fixture
def without_libraries(monkeypatch):
    for name in ("opendp", "opendp.prelude", "dp_accounting"):
        monkeypatch.setitem(sys.modules, name, None)
    opendp.cache_clear()
    accounting.cache_clear()
    yield
    opendp.cache_clear()
    accounting.cache_clear()


@pytest.mark.usefixtures("without_libraries")
def test_a_noisy_gateway_does_not_open():
    guard = dc.Perturbation(epsilon=5.0, per_query=1.0, bounds={"salary": (0, 500_000)})
    with pytest.raises(dc.InputError, match=r"discreet\[dp\]") as missing:
        dc.Gateway(demo.salaries(), guard=guard)
    assert missing.value.code == "missing-extra"


@pytest.mark.usefixtures("without_libraries")
def test_a_noisy_table_is_not_charged():
    table = dc.tabulate(demo.salaries(), by=["sector"])
    with dc.open_ledger() as ledger:
        ledger.set_grant("people", dc.Grant(1.0).to_dict())
        with pytest.raises(dc.InputError, match=r"discreet\[dp\]"):
            table.protect(method=dc.DPTableNoise(epsilon=0.7512345), ledger=ledger)
        assert {entry.kind for entry in ledger.entries()} <= {"grant", "snapshot"}


@pytest.mark.usefixtures("without_libraries")
def test_other_guards_and_tables_need_no_extra():
    with dc.Gateway(demo.salaries(), guard=dc.Restriction(k=3)) as gate:
        assert gate.ask("SELECT COUNT(*) FROM people", user="ana").kind == "exact"
    table = dc.tabulate(demo.salaries(), by=["sector", "region"], measure="salary")
    assert table.protect(rules=[dc.MinimumFrequency(3)], method=dc.Suppression()).audit().safe
