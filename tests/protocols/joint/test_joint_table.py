"""A joint table as a member of its family: the same question, however it is asked."""

from __future__ import annotations

import numpy as np
import pytest

import discreet as dc
from discreet.errors import DiscreetError, InputError
from discreet.protocols.joint.demand import read_demand
from discreet.protocols.joint.methods.joint_table import JointTable
from discreet.protocols.joint.rehearsal import rehearse_protocol
from discreet.registry import members
from tests.laws import protocol as laws
from tests.protocols.joint.here import here
from tests.protocols.joint.rehearsed import policy_for
from tests.protocols.joint.test_joint import AGREED, OWNERS

TABLE = {"joint-table": {"by": ["icd", "ward"], "measures": ["cost"], "totals": True}}
SQL = "SELECT icd, ward, COUNT(*) AS count, SUM(cost) AS sum FROM stays GROUP BY icd, ward"


def test_a_member_a_statement_and_an_agreed_computation_are_one_question():
    with here(OWNERS, **AGREED, computations={"costs": {"protocol": TABLE}}) as joint:
        asked = joint.ask(SQL, totals=True)
        assert 0 < asked.withheld < len(asked.frame)
        for other in (
            joint.ask(JointTable(("icd", "ward"), ("cost",), totals=True)),
            joint.table(["icd", "ward"], "cost"),
            joint.run("costs"),
        ):
            assert other.frame.equals(asked.frame)
            assert [dict(one) for one in other.opened] == [dict(one) for one in asked.opened]
            assert other.leakage == asked.leakage


def test_conditions_means_and_margins_are_those_of_sql():
    policy = policy_for(3, **AGREED)
    for table, sql, wanted in (
        (JointTable(("icd",), ("cost",), "age < 40", means=True),
         "SELECT icd, COUNT(*) AS count, SUM(cost) AS sum, AVG(cost) AS mean FROM stays "
         "WHERE age < 40 GROUP BY icd", {}),
        (JointTable(("icd", "ward"), ("cost",), margins=True), SQL, {"margins": True}),
        (JointTable(measures=("cost",)), "SELECT COUNT(*) AS count, SUM(cost) AS sum FROM stays",
         {}),
    ):  # fmt: skip
        mine, theirs = table.demand(policy), read_demand(sql, policy, **wanted)
        assert (mine.digest, mine.outputs) == (theirs.digest, theirs.outputs)
        for item in ("keys", "measures", "judged", "condition", "totals", "margins"):
            assert getattr(mine, item) == getattr(theirs, item)
        again = JointTable.of(theirs).demand(policy)
        assert (again.digest, again.outputs) == (theirs.digest, theirs.outputs)


def test_a_condition_is_nothing_more():
    policy = policy_for(3, **AGREED)
    for where in ("age < 40 GROUP BY ward --", "age < 40) OR (age > 1", "name = 'x'"):
        with pytest.raises(DiscreetError):
            JointTable(("icd",), ("cost",), where).demand(policy)


@pytest.mark.parametrize(
    "entry",
    [
        {"protocol": {"joint-table": {"by": ["name"]}}},
        {"protocol": {"joint-table": {"by": ["icd"], "rules": [{"minimum-frequency": 9}]}}},
        {"protocol": {"joint-table": {"by": ["icd"], "totals": True, "margins": True}}},
        {"protocol": TABLE, "columns": {"owner1": ["cost"]}},
    ],
)
def test_tables_that_owners_do_not_offer_are_not_agreed_on(entry):
    with pytest.raises(DiscreetError):
        policy_for(3, **AGREED, computations={"costs": entry})


def test_an_agreed_table_has_no_second_way_past_the_memory_of_tables():
    with here(OWNERS, **AGREED, computations={"costs": {"protocol": TABLE}}) as joint:
        with pytest.raises(InputError) as caught:
            joint._run("costs")
        assert caught.value.code == "unknown-computation"
        joint.ask("SELECT icd, COUNT(*) AS n FROM stays WHERE age < 40 GROUP BY icd")
        with pytest.raises(DiscreetError) as caught:
            joint.run("costs")
        assert caught.value.code == "joint-history"


@pytest.mark.parametrize("place", range(4))
def test_laws_judge_tables_of_which_some_cells_are_withheld(place):
    table = JointTable.examples()[place]
    found = rehearse_protocol(table, laws.inputs(table, 0)).shown
    assert 0 < found["withheld"].sum() < len(found["withheld"])
    assert len(found["count"]) == (found["withheld"] == 0).sum()


def test_margins_are_rehearsed_and_have_no_plain_formula():
    table = JointTable(("key",), ("value",), margins=True)
    given = laws.inputs(table, 0)
    found = rehearse_protocol(table, given).shown
    whole = np.concatenate(list(given.values()))
    assert found["withheld"].sum() >= 2
    # The total is opened last or first, and is right.
    assert len(whole) in found["count"]
    assert np.isclose(found["sum"], whole[:, 1].sum()).any()
    with pytest.raises(InputError):
        table.plain(given)


def test_the_public_name_is_the_protocol():
    assert dc.JointTable is JointTable
    assert dc.JointTable.name in {one.name for one in members("protocol").values()}


def test_the_column_of_what_is_withheld_is_no_other():
    policy = policy_for(3, keys={"icd": ["A"]}, measures={"cost": {"bound": 10}})
    with pytest.raises(InputError):
        read_demand("SELECT icd, SUM(cost) AS status FROM stays GROUP BY icd", policy)
