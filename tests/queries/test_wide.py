"""Gateways over wide tables count only the columns that somebody may ask about."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from discreet.data.engines.driver import metering
from discreet.errors import EngineError, InputError

ROWS = 600


def wide(limit: str | None = None) -> dc.Dataset:
    number = np.arange(ROWS)
    frame = pd.DataFrame(
        {
            "region": number % 3,
            "age": number % 7,
            "exact_birth": number,
            "postcode": number * 31 % 997,
            "salary": 1000 + number * 37 % 911,
            "bonus": np.where(number % 5 == 0, np.nan, number * number % 709),
        }
    )
    roles = dict.fromkeys(("region", "age", "exact_birth", "postcode"), "quasi")
    roles |= dict.fromkeys(("salary", "bonus"), "confidential")
    return dc.read(frame, roles=roles, name="people", driver_limit=limit)


ASKED = ["region", "age", "salary"]


def test_profiles_are_of_askable_columns_only():
    with (
        metering() as meter,
        dc.Gateway(wide(), guard=dc.Restriction(k=3, missing=("bonus",)), columns=ASKED) as gate,
    ):
        assert gate.notices == ()
        assert gate.ask("SELECT region, SUM(salary) FROM people GROUP BY region").kind == "exact"
        hidden = gate.ask("SELECT COUNT(*) FROM people WHERE postcode > 3")
        assert (hidden.kind, hidden.code) == ("refused", "unknown-column")
    found = {part.kind: part.rows for part in meter.outflow().parts}
    assert found["profiles"] == 21
    with (
        metering() as meter,
        dc.Gateway(wide(), guard=dc.Restriction(k=3, missing=("bonus",))) as gate,
    ):
        assert "600 of 600 records" in gate.notices[0]
        assert "columns: […]" in gate.notices[0]
    found = {part.kind: part.rows for part in meter.outflow().parts}
    assert found["profiles"] == ROWS


def test_people_with_columns_of_their_own_see_those():
    policies = {"user:eva": dc.Policy(columns=("postcode", "salary"))}
    with dc.Gateway(
        wide(), guard=dc.Restriction(k=3, missing=("bonus",)), columns=ASKED, policies=policies
    ) as gate:
        asked = "SELECT SUM(salary) FROM people WHERE postcode > 3"
        assert gate.ask(asked, user="eva").kind == "exact"
        assert gate.ask(asked, user="ana").code == "unknown-column"
        assert gate.data.askable == {*ASKED, "postcode"}


def test_columns_that_were_answered_about_stay_in_the_history(tmp_path: Path):
    ledger, guard = tmp_path / "ledger.db", dc.Restriction(k=30, missing=("bonus",))
    with dc.Gateway(wide(), guard=guard, ledger=ledger) as gate:
        # All but twenty records, told by a column that is hidden later.
        assert gate.ask("SELECT SUM(salary) FROM people WHERE exact_birth >= 20").kind == "refused"
        assert gate.ask("SELECT SUM(salary) FROM people WHERE exact_birth >= 100").kind == "exact"
    with dc.Gateway(wide(), guard=guard, ledger=ledger, columns=ASKED) as gate:
        assert gate.data.askable == {*ASKED, "exact_birth"}
        assert gate.ask("SELECT SUM(salary) FROM people").kind == "exact"


def test_another_gateway_with_more_columns_is_noticed(tmp_path: Path):
    ledger, guard = tmp_path / "ledger.db", dc.Restriction(k=3, missing=("bonus",))
    with (
        dc.Gateway(wide(), guard=guard, ledger=ledger, columns=ASKED) as narrow,
        dc.Gateway(wide(), guard=guard, ledger=ledger) as full,
    ):
        assert narrow.ask("SELECT SUM(salary) FROM people").kind == "exact"
        assert full.ask("SELECT SUM(salary) FROM people WHERE postcode > 300").kind == "exact"
        assert narrow.ask("SELECT SUM(salary) FROM people WHERE age > 3").code == "other-columns"


def test_unknown_columns_are_the_curators_mistake():
    with pytest.raises(InputError, match="write 'region'"):
        dc.Gateway(wide(), guard=dc.Restriction(k=3, missing=("bonus",)), columns=["regoin"])


def test_too_many_profiles_are_refused_before_they_are_fetched():
    with pytest.raises(EngineError, match="600 profiles") as caught:
        dc.Gateway(wide("10kB"), guard=dc.Restriction(k=3, missing=("bonus",)))
    assert caught.value.code == "too-large-for-driver"
    with dc.Gateway(
        wide("10kB"), guard=dc.Restriction(k=3, missing=("bonus",)), columns=ASKED
    ) as gate:
        assert gate.ask("SELECT SUM(salary) FROM people").kind == "exact"
