"""Measures that tell of each other, and people who all have nothing."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from discreet.audit.sensitivity import mark
from discreet.errors import InputError, RefusedError
from discreet.ledger.entry import Draft
from discreet.ledger.opening import open_ledger
from discreet.protocols.joint.summary import require_parts_declared
from tests.protocols.joint.here import here

#: pay = salary + bonus; in A one bonus is nearly all of them, which only the bonus tells.
PAID = [
    pd.DataFrame(
        {
            "icd": ["A"] * 4 + ["B"] * 4,
            "salary": [50.0, 52, 48, 51, 50, 49, 53, 50],
            "bonus": [big, 0, 0, 0, 5, 6, 5, 7],
        }
    ).assign(pay=lambda frame: frame.salary + frame.bonus)
    for big in (40.0, 0.0, 0.0)
]
AGREED = {
    "keys": {"icd": ["A", "B", "C"]},
    "rules": [{"minimum-frequency": 3}, {"p-percent": 15}],
}
BY_ICD = "SELECT icd, SUM({}) AS s FROM stays GROUP BY icd"
BOUNDS = {name: {"bound": 1e6, "decimals": 0} for name in ("salary", "bonus", "pay")}


def test_what_few_have_between_two_measures_must_be_a_measure_itself():
    # Sums of pay and salary: nobody else in A has a bonus, so the difference is that person's.
    two = {name: BOUNDS[name] for name in ("salary", "pay")}
    with pytest.raises(InputError) as caught, here(PAID, measures=two, **AGREED):
        pass
    assert caught.value.code == "undeclared-part"
    assert "pay less salary" in str(caught.value)
    assert "40" not in str(caught.value)


def test_a_deduction_of_one_record_does_not_hide_what_few_have():
    frames = [frame.assign(pay=frame.salary + frame.bonus) for frame in PAID]
    frames[1].loc[7, "pay"] = frames[1].salary[7] - 1
    two = {name: BOUNDS[name] for name in ("salary", "pay")}
    with pytest.raises(InputError) as caught, here(frames, measures=two, **AGREED):
        pass
    assert caught.value.code == "undeclared-part"


def paid(bonus, n=60):
    """Records of which the eighth has a bonus."""
    rng = np.random.default_rng(5)
    salary, overtime = np.round(rng.lognormal(8, 0.3, n)), np.round(rng.lognormal(4, 1, n))
    extra = np.where(np.arange(n) == 7, bonus, 0.0)
    return pd.DataFrame(
        {
            "icd": ["A", "B"] * (n // 2),
            "salary": salary,
            "overtime": overtime,
            "bonus": extra,
            "raised": np.round(1.02 * salary) + rng.integers(0, 3, n) + extra,
            "all": salary + overtime + extra,
            "net": 0.6 * (salary + extra) + 100,
        }
    )


@pytest.mark.parametrize(
    "names", [["salary", "raised"], ["salary", "overtime", "all"], ["net", "salary"]]
)
def test_what_few_have_beyond_a_near_relation_must_be_a_measure_itself(names):
    # SUM(raised) less 1.02 times SUM(salary) is the one bonus of the cell, within a few coins.
    few = {name: {"bound": 1e7} for name in names}
    frames = [paid(800.0), paid(0.0), paid(0.0)]
    with pytest.raises(InputError) as caught, here(frames, measures=few, **AGREED):
        pass
    assert caught.value.code == "undeclared-part"
    assert "800" not in str(caught.value)
    # Declared, the bonus is judged; where nobody has one, the relation tells nothing.
    require_parts_declared(dc.read(frames[0], name="stays"), [*names, "bonus"])
    require_parts_declared(dc.read(frames[1], name="stays"), names)


def test_measures_that_follow_from_each_other_are_withheld_together():
    with here(PAID, measures=BOUNDS, **AGREED) as joint:
        answers = [joint.ask(BY_ICD.format(m)).frame.set_index("icd") for m in BOUNDS]
        assert all(one.s.isna()["A"] and not one.s.isna()["B"] for one in answers)
        with pytest.raises(RefusedError):  # counts alone are judged apart, and were not asked for
            joint.ask("SELECT icd, COUNT(*) AS n FROM stays GROUP BY icd", totals=True)
    # Owners that declare them unrelated see their mistake when they start, and nobody else does.
    apart = [["salary", "pay"], ["bonus"]]
    with (
        pytest.raises(InputError) as caught,
        here(PAID, measures=BOUNDS, together=apart, **AGREED),
    ):
        pass
    assert caught.value.code == "dependent-measures"


def test_measures_that_have_nothing_to_do_with_each_other_are_judged_apart():
    frames = [f.assign(age=np.arange(8) % 3 + 20.0) for f in PAID]
    bounds = {"bonus": BOUNDS["bonus"], "age": BOUNDS["pay"]}
    with here(frames, measures=bounds, together=[["bonus"], ["age"]], **AGREED) as joint:
        assert joint.ask(BY_ICD.format("age")).withheld == 0
        assert joint.ask(BY_ICD.format("bonus")).withheld == 1


def test_what_was_opened_before_measures_were_grouped_counts():
    # The history of an owner whose earlier policy judged bonus by itself.
    with here(PAID, measures=BOUNDS, **AGREED) as joint:
        joint.ask(BY_ICD.format("pay"))
        for place in joint.files.values():
            with open_ledger(place) as ledger:
                entry = next(e for e in ledger.entries() if e.details.get("stage") == "started")
                details = {**entry.details, "session": "old", "judged": ["salary"],
                           "measures": ["salary"]}  # fmt: skip
                ledger.record(Draft("stays", "analyst", "joint", "q", "old", "p", details))
        with pytest.raises(RefusedError) as caught:
            joint.ask(BY_ICD.format("pay"))
        assert caught.value.code == "joint-history"


def test_a_cell_of_people_who_all_have_nothing_is_withheld_by_its_rule():
    frames = [
        pd.DataFrame({"icd": list("AAAABBBB"), "cost": [0.0] * 4 + [5, 6, 7, 8]}) for _ in range(3)
    ]
    sql = BY_ICD.format("cost")
    bounds = {"cost": BOUNDS["pay"]}
    for more, shown in (([], 0.0), (["zero-cells"], None)):
        rules = [*AGREED["rules"], *more]
        with here(frames, measures=bounds, **AGREED | {"rules": rules}) as joint:
            found = joint.ask(sql).frame.set_index("icd").s
        assert found["A"] == shown or (shown is None and np.isnan(found["A"]))
        assert found["B"] == 78
        assert found["C"] == 0  # nobody is there, and that is no secret under these rules


@pytest.mark.parametrize("sql", ["COUNT(*) AS s", "SUM(cost) AS s"])
def test_a_count_of_which_one_contributor_has_most_is_withheld(sql):
    # 102 stays of three people: whoever stayed once knows that somebody stayed about a hundred times.
    stays = ["a"] * 100 + list("bc") + list("defgh") * 2
    frames = [
        pd.DataFrame(
            {
                "icd": ["A"] * 102 + ["B"] * 10,
                "cost": 1.0,
                "who": [f"{one}{place}" for one in stays],
            }
        )
        for place in range(3)
    ]
    frames[1:] = [frame[frame.icd == "B"] for frame in frames[1:]]
    bounds = {"cost": BOUNDS["pay"]}
    with here(frames, unit="who", measures=bounds, **AGREED) as joint:
        found = joint.ask(f"SELECT icd, {sql} FROM stays GROUP BY icd").frame.set_index("icd").s
        assert pd.isna(found["A"])
        assert found["B"] == 30
    central = dc.tabulate(dc.read(pd.concat(frames), name="stays"), by=["icd"], unit="who")
    marked = mark(central, joint.policy.rules)
    sensitive = {marked.labels(place)[0] for place in np.flatnonzero(marked.status == 2)}
    assert "A" in sensitive
    assert "B" not in sensitive
