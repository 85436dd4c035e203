"""People are protected, not rows: whoever owns several records still counts once."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from discreet.errors import InfeasibleError, InputError
from discreet.microdata.frequency_set import FrequencySet
from discreet.randomness import Randomness

AGE = {"20-39": ["20", "30"], "40-59": ["40", "50"]}
METHODS = [
    dc.Generalization(suppression=1.0),
    dc.Generalization(suppression=1.0, keep=True),
    dc.Mondrian(),
    dc.Mondrian(relaxed=True),
    dc.LocalSuppression(missing="category"),
    dc.MicroaggregationToK(),
]


def stays(people: dict[str, list[tuple[Any, ...]]]) -> dc.Dataset:
    """Records (age, sex, illness) by person."""
    rows = [(person, *record) for person, records in people.items() for record in records]
    frame = pd.DataFrame(rows, columns=["person", "age", "sex", "illness"])
    return dc.read(
        frame,
        roles={"person": "identifier", "age": "quasi", "sex": "quasi", "illness": "confidential"},
        hierarchies={
            "age": dc.Hierarchy.from_levels({"Total": AGE}),
            "sex": dc.Hierarchy.from_levels({"Total": ["f", "m"]}),
        },
        unit="person",
    )


def people_per_class(safe: Any, data: dc.Dataset, keys: list[str]) -> int:
    """The fewest different people behind one combination of released keys, by brute force."""
    released = safe.dataset.numbered()
    after = released.arrow([*keys, "__row"]).to_pylist()
    persons = data.numbered().arrow(["person"]).column(0).to_pylist()
    found: dict[tuple[Any, ...], set[str]] = {}
    for row in after:
        if all(row[key] == "*" for key in keys):
            continue
        found.setdefault(tuple(row[key] for key in keys), set()).add(persons[row["__row"]])
    return min((len(owners) for owners in found.values()), default=10**9)


def test_five_rows_of_one_person_are_not_five_people() -> None:
    data = stays({"ana": [("20", "f", "flu")] * 5})
    check = dc.KAnonymity(5).check(data)
    assert not check.holds
    assert check.value == 1
    with pytest.raises(InfeasibleError) as error:
        dc.anonymize(data, [dc.KAnonymity(2)])
    assert error.value.code == "too-few-records"


def test_a_person_with_several_values_is_not_diversity() -> None:
    data = stays({"ana": [("20", "f", ill) for ill in ("flu", "asthma", "gout")]})
    assert not dc.LDiversity("illness", 3).check(data).holds
    assert not dc.LDiversity("illness", 3, kind="entropy").check(data).holds
    assert not dc.LDiversity("illness", 2, kind="recursive").check(data).holds


def test_a_value_counts_once_per_person() -> None:
    data = stays(
        {
            "ana": [("20", "f", "flu")] * 98,
            "ben": [("20", "f", "gout")],
            "cleo": [("20", "f", "asthma")],
        }
    )
    # By records one value has 98 % of the class; by people each has a third.
    assert dc.LDiversity("illness", 3, kind="entropy").check(data).value == pytest.approx(3)
    table = FrequencySet.of(data, models=[dc.TCloseness("illness", 0.1)])
    assert table.cells["illness"].domain.shares.tolist() == pytest.approx([1 / 3] * 3)


@pytest.mark.parametrize(
    "model",
    [
        dc.LDiversity("illness", 3),
        dc.LDiversity("illness", 2, kind="entropy"),
        dc.LDiversity("illness", 2, kind="recursive", c=4.0),
    ],
    ids=lambda model: model.kind,
)
def test_one_person_s_many_values_do_not_hide_what_everybody_has(model, tmp_path) -> None:
    """All four have hiv; one of them has three more illnesses."""
    alike = {f"p{n}": [("20", "f", "hiv")] for n in range(3)}
    many = {"p3": [("20", "f", ill) for ill in ("hiv", "flu", "gout", "none")]}
    others = {
        f"q{n}": [("40", "m", ill)] for n, ill in enumerate(["hiv", "flu", "gout", "none"] * 2)
    }
    data = stays(alike | many | others)
    check = model.check(data)
    assert not check.holds
    assert dc.KAnonymity(4).check(data).holds
    safe = dc.anonymize(data, [dc.KAnonymity(4), model], method=dc.Mondrian())
    assert "20" not in set(safe.frame["age"])
    safe.write(tmp_path / "out")  # the verifier agrees


@pytest.mark.parametrize(
    "method", METHODS, ids=lambda m: f"{m.name}-{list(m.settings().values())[1:]}"
)
def test_every_method_hides_each_person_among_k_people(method: dc.Anonymization) -> None:
    rng = np.random.default_rng(1)
    people = {
        f"p{i}": [
            (str(rng.choice(["20", "30", "40", "50"])), str(rng.choice(["f", "m"])), "flu")
            for _ in range(int(rng.integers(1, 9)))
        ]
        for i in range(14)
    }
    people["hermit"] = [("50", "m", "gout")] * 30
    data = stays(people)
    safe = dc.anonymize(data, [dc.KAnonymity(4)], method=method)
    assert "person" not in safe.dataset.columns
    assert people_per_class(safe, data, ["age", "sex"]) >= 4
    assert safe.safe
    assert safe.checks[0].value >= 4


def test_the_optimum_over_people_is_found() -> None:
    """The lattice search against brute force over every generalisation, spanning people included."""
    rng = np.random.default_rng(2)
    for _ in range(6):
        people = {
            f"p{i}": [
                (str(rng.choice(["20", "30", "40", "50"])), str(rng.choice(["f", "m"])), "flu")
                for _ in range(int(rng.integers(1, 4)))
            ]
            for i in range(12)
        }
        data = stays(people)
        safe = dc.anonymize(data, [dc.KAnonymity(3)], method=dc.Generalization())
        best = None
        rows = data.arrow(["person", "age", "sex"]).to_pylist()
        parent = {leaf: group for group, leaves in AGE.items() for leaf in leaves}
        for a, s in itertools.product(range(3), range(2)):
            groups: dict[Any, set[str]] = {}
            for row in rows:
                age = (row["age"], parent[row["age"]], "*")[a]
                sex = (row["sex"], "*")[s]
                groups.setdefault((age, sex), set()).add(row["person"])
            if min(map(len, groups.values())) >= 3:
                cost = (1 + (0, 1 / 3, 1)[a]) * (1 + s)
                best = cost if best is None else min(best, cost)
        assert best is not None
        assert safe.score == pytest.approx(best**0.5 - 1)


def test_wildcards_are_refused_where_people_own_several_records() -> None:
    data = stays({"ana": [("20", "f", "flu")] * 3, "ben": [("20", "f", "flu")]})
    with pytest.raises(InputError) as error:
        dc.anonymize(data, [dc.KAnonymity(2)], method=dc.LocalSuppression())
    assert error.value.code == "model-not-supported"
    assert "category" in str(error.value)


def test_risk_counts_people() -> None:
    data = stays(
        {
            "ana": [("20", "f", "flu")] * 4,
            "ben": [("30", "m", "flu")],
            "cleo": [("30", "m", "gout")],
        }
    )
    report = dc.risk(data)
    facts = report["re-identification"].facts
    assert facts["smallest class"] == 1
    assert facts["sample uniques"] == 4  # every record of the only person of that class
    assert report["record-linkage: exact"].records is not None
    assert report["record-linkage: exact"].records[:4].tolist() == [1.0] * 4
    assert report["suda2"].facts["special uniques"] >= 4


def test_masking_says_how_many_people_share_a_class() -> None:
    data = stays({"ana": [("20", "f", "flu")] * 4, "ben": [("30", "f", "flu")] * 2})
    safe = dc.mask(data, [dc.GlobalRecoding("age", level=2)])
    assert "k = 2" in safe.verdict
    alone = dc.mask(data, [dc.GlobalRecoding("sex", level=1)])
    assert "not k-anonymous" in alone.verdict


def test_nobody_owns_a_permuted_group() -> None:
    frame = pd.DataFrame(
        {
            "person": ["ana"] * 6 + ["ben", "cleo", "dan", "eve"] * 2,
            "age": range(14),
            "pay": [1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60, 70, 80],
        }
    )
    data = dc.read(
        frame,
        roles={"person": "identifier", "age": "quasi", "pay": "confidential"},
        unit="person",
        vouch=["age"],
    )
    safe = dc.permute(data, sensitive="pay", k=3, rng=Randomness.seeded(1))
    assert safe.facts is not None
    owner = dict(zip(frame["pay"], frame["person"], strict=True))
    for _, group in safe.frame.groupby("group_id"):
        assert len({owner[value] for value in group["pay"]}) >= 3
    assert safe.facts.people_reached == 3
    assert "of at least 3 people" in safe.evidence().verdict
    with pytest.raises(InfeasibleError) as error:
        dc.permute(data, sensitive="pay", k=6)
    assert error.value.code == "too-few-records"


def test_a_household_is_one_where_it_is_the_unit() -> None:
    """A class of one family does not hide it, however many children it has."""
    frame = pd.DataFrame(
        {
            "person": range(9),
            "household": ["a"] * 5 + ["b", "c", "d", "e"],
            "town": ["X"] * 5 + ["Y"] * 4,
            "pay": range(10, 19),
        }
    )
    roles = {
        "person": "identifier",
        "household": "identifier",
        "town": "quasi",
        "pay": "confidential",
    }
    trees = {"town": dc.Hierarchy.from_levels({"Total": ["X", "Y"]})}
    persons, homes = (
        dc.read(frame, roles=roles, hierarchies=trees, unit=unit)
        for unit in ("person", "household")
    )
    assert dc.KAnonymity(4).check(persons).holds
    assert dc.KAnonymity(4).check(homes).value == 1
    safe = dc.anonymize(homes, dc.KAnonymity(4))
    assert set(safe.frame["town"]) <= {"Total", "*", "Y"}
    hidden = dc.permute(homes, sensitive="pay", k=4)
    assert hidden.facts.people_reached >= 4


def test_a_missing_unit_is_one_unknown_person() -> None:
    frame = pd.DataFrame({"person": [None, None, None, "ana"], "age": [20] * 4})
    data = dc.read(frame, roles={"person": "identifier", "age": "quasi"}, unit="person")
    assert dc.KAnonymity(2).check(data).value == 2


@pytest.mark.parametrize("role", ["quasi", "confidential", "other"])
def test_the_column_that_says_whose_a_record_is_never_leaves(role):
    frame = pd.DataFrame({"person": ["a", "a", "b", "b"], "age": [1, 2, 3, 4], "ill": list("xyxy")})
    roles = {"person": role, "age": "quasi", "ill": "confidential"}
    data = dc.read(frame, roles=roles, unit="person")
    for release in (
        lambda: dc.anonymize(data, dc.TCloseness("ill", 0.9), method=dc.Mondrian()),
        lambda: dc.mask(data, [dc.RankSwapping("age", p=50)]),
    ):
        with pytest.raises(InputError) as caught:
            release()
        assert caught.value.code == "contradicting-roles"
    assert "person" in dc.permute(data, sensitive="ill", k=2).facts.dropped


def test_the_verdict_says_that_records_were_counted_where_no_unit_is_declared():
    rows = pd.DataFrame({"age": [30] * 6, "who": [1] * 6, "icd": ["a", "b"] * 3})
    told = {}
    for unit in (None, "who"):
        people = dc.read(
            rows.assign(who=range(6)) if unit else rows,
            roles={"age": "quasi", "who": "identifier", "icd": "confidential"},
            unit=unit,
        )
        safe = dc.anonymize(people, models=[dc.KAnonymity(5)], method=dc.Mondrian())
        told[unit] = safe.verdict
    assert "each record counted as one person" in told[None]
    assert "each record" not in told["who"]


@pytest.mark.parametrize("other", ["P1 ", "\ufeffP1", "P1\u200b", "P\u00a01", "\tP1"])
def test_one_person_s_id_in_two_spellings_is_refused(other):
    rows = pd.DataFrame({"who": ["P1", other, "P2"], "age": [20, 20, 20]})
    with pytest.raises(dc.InputError) as raised:
        dc.read(rows, unit="who", roles={"who": "identifier", "age": "quasi"})
    assert raised.value.code == "ambiguous-units"


def test_ids_with_spaces_that_nobody_shares_are_read():
    rows = pd.DataFrame({"who": ["P1 ", "P2", "P 3"], "age": [20, 20, 20]})
    assert len(dc.read(rows, unit="who", roles={"age": "quasi"})) == 3
