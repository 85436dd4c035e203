"""Utility-first: the weakest masking that meets the demand, or what would be feasible."""

import numpy as np
import pandas as pd
import pytest

import discreet as dc


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"age": rng.normal(50, 15, 300), "pay": rng.normal(3000, 500, 300)})
    return dc.read(frame, roles={"age": "quasi", "pay": "quasi"})


def test_the_demand_is_met_by_the_least_lossy(people):
    methods = [dc.Microaggregation(["age", "pay"], k=2), dc.RankSwapping(["age", "pay"], p=1)]
    safe = dc.strengthen(people, methods, until=dc.risk < 0.1)
    again = dc.risk(people, safe, measures=[dc.RecordLinkage("distance")])
    assert again.value < 0.15
    tried = safe.notes["tried"]
    assert {step["methods"][0]["name"] for step in tried} == {"microaggregation", "rank-swapping"}
    assert safe.evidence().settings["until"] == {"measure": "record-linkage", "below": 0.1}


def test_parameters_are_taken_back_to_the_weakest_that_do(people):
    demand = dc.risk["re-identification"] < 0.2
    safe = dc.strengthen(people, dc.Microaggregation(["age", "pay"], k=2), until=demand)
    assert safe.methods[0].k == 6 or safe.smallest_class in (5, 6)
    weaker = dc.mask(people, dc.Microaggregation(["age", "pay"], k=safe.methods[0].k - 1))
    assert not demand.holds(dc.risk(people, weaker, measures=[dc.ReIdentification()]))


def test_pipelines_grow_together(people):
    way = [dc.Rounding("age", 1.0), dc.Rounding("pay", 1.0)]
    safe = dc.strengthen(people, [way], until=dc.risk["re-identification"] < 0.5)
    assert safe.methods[0].base > 1
    assert safe.methods[1].base > 1


def test_impossible_demands_say_what_was_reached(people):
    with pytest.raises(dc.InfeasibleError) as caught:
        dc.strengthen(people, dc.TopCoding("age", 90), until=dc.risk < 0.01)
    assert caught.value.code == "risk-too-high"
    assert caught.value.facts["reached"] > 0.9
    assert "allow a risk of at least" in caught.value.hint


def test_mistakes_are_named(people):
    with pytest.raises(dc.InputError, match="no masking method"):
        dc.strengthen(people, [], until=dc.risk < 0.1)
    with pytest.raises(dc.InputError, match="no risk measure 'luck'"):
        dc.strengthen(people, dc.Rounding("age"), until=dc.risk["luck"] < 0.1)
