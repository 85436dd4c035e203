"""Who has a value in a confidential column is not told by what is answered and what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from discreet.errors import InputError

ROLES = {"key": "quasi", "viral_load": "confidential"}
GUARDS = {
    "restriction": (dc.Restriction(k=3), dc.Restriction(k=3, missing=("viral_load",))),
    "camouflage": (dc.Camouflage(bound=0.3), dc.Camouflage(bound=0.3, missing=("viral_load",))),
}


def people(seed=1, infected=0.3):
    """Return persons, of whom those who are infected have a viral load."""
    rng = np.random.default_rng(seed)
    load = np.where(rng.random(60) < infected, rng.normal(50_000, 15_000, 60).round(), np.nan)
    frame = pd.DataFrame({"key": range(60), "viral_load": load})
    return frame, dc.read(frame, roles=ROLES, name="people")


@pytest.mark.parametrize("name", GUARDS)
def test_gaps_that_nobody_declared_keep_a_gateway_from_opening(name):
    plain, declared = GUARDS[name]
    with pytest.raises(InputError) as failure:
        dc.Gateway(people()[1], guard=plain)
    assert (failure.value.code, failure.value.column) == ("undeclared-missing", "viral_load")
    assert "missing: [viral_load]" in failure.value.hint
    with dc.Gateway(people()[1], guard=declared) as gate:
        assert not gate.ask("SELECT SUM(viral_load) FROM people").refused
    with dc.Gateway(people(infected=1.0)[1], guard=plain) as gate:
        assert not gate.ask("SELECT SUM(viral_load) FROM people").refused


def test_what_refusals_tell_where_gaps_are_declared_public():
    # The control: refused means that the person has a value. Whoever declares this accepts it.
    frame, data = people()
    with dc.Gateway(data, guard=GUARDS["restriction"][1]) as gate:
        assert gate.ask("SELECT SUM(viral_load) FROM people").kind == "exact"
        refused = [
            gate.ask(f"SELECT SUM(viral_load) FROM people WHERE key <> {key}").refused
            for key in frame.key[:20]
        ]
    assert refused == (~frame.viral_load[:20].isna()).tolist()


def test_columns_that_are_refused_anyway_need_no_declaration():
    with dc.Gateway(people()[1], guard=dc.Restriction(k=3, categorical=("viral_load",))) as gate:
        assert gate.ask("SELECT SUM(viral_load) FROM people").code == "tells-values"
        assert gate.ask("SELECT COUNT(viral_load) FROM people").code == "tells-values"
        assert gate.ask("SELECT COUNT(*) FROM people").kind == "exact"


def test_gaps_of_public_columns_are_public():
    frame, _ = people(infected=1.0)
    frame["key"] = frame.key.where(frame.key > 3)
    with dc.Gateway(dc.read(frame, roles=ROLES, name="people"), guard=dc.Restriction(k=3)) as gate:
        assert gate.ask("SELECT SUM(viral_load) FROM people").kind == "exact"
