"""A column that leaves as it is and tells a key is refused: a class would hide nobody."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import discreet as dc

SIZE = 120


def frame():
    source = np.random.default_rng(2)
    return pd.DataFrame(
        {
            "age": source.integers(20, 80, SIZE),
            "town": source.choice(list("ABCD"), SIZE),
            "ill": source.choice(["flu", "gout", "none"], SIZE),
        }
    )


def released(role, values, **more):
    roles = {"age": "quasi", "town": "quasi", "ill": "confidential", "x": role}
    data = dc.read(frame().assign(x=values), roles=roles, name="people", **more)
    return dc.anonymize(data, dc.KAnonymity(3), method=dc.Mondrian())


DAYS = pd.to_datetime("2024-06-30") - pd.to_timedelta(frame().age * 365, unit="D")
TELLING = {
    "the year of birth": 2024 - frame().age,
    "a copy": frame().town,
    "a finer code": frame().town + (np.arange(SIZE) % 5).astype(str),
    "a copy with a mistake": frame().town.mask(np.arange(SIZE) == 7, "A"),
    "the day of birth": (DAYS + pd.to_timedelta(np.arange(SIZE) % 60, unit="D")).dt.date,
}


@pytest.mark.parametrize("role", ["other", "confidential"])
@pytest.mark.parametrize("name", TELLING)
def test_a_column_that_tells_a_key_is_refused_unless_vouched_for(name, role):
    with pytest.raises(dc.InputError) as caught:
        released(role, TELLING[name])
    # Each year of birth is that of two people, so that it is near-unique besides.
    near_unique = name in ("the day of birth", "the year of birth") and role == "other"
    assert caught.value.code == ("identifying-values" if near_unique else "telling-column")
    assert caught.value.column == "x"
    assert released(role, TELLING[name], vouch=["x"]).verdict.startswith("safe")


@pytest.mark.parametrize(
    "values",
    [
        np.random.default_rng(3).choice(["a", "b"], SIZE),  # nothing to do with the keys
        np.random.default_rng(4).normal(size=SIZE).round(3),  # all differ: agrees with anything
        frame().age // 30,  # coarser than the key
        frame().age * 100 + np.random.default_rng(5).integers(0, 4_000, SIZE),  # rises, roughly
        ["one"] * SIZE,
    ],
)
def test_other_columns_leave(values):
    assert released("confidential", values).verdict.startswith("safe")


def test_policies_and_commands_refuse_it_too():
    data = dc.read(
        frame().assign(x=2024 - frame().age),
        roles={"age": "quasi", "town": "quasi", "ill": "confidential", "x": "confidential"},
    )
    job = dc.Anonymize(models=(dc.KAnonymity(3),), method=dc.Mondrian())
    with pytest.raises(dc.InputError, match="telling-column"):
        job.check(data)


def test_a_key_that_nearly_all_share_is_told_by_nothing():
    """Any column agreed with 99 % of one value, and was refused for it."""
    source = np.random.default_rng(8)
    frame = pd.DataFrame(
        {
            "country": np.where(source.random(2_000) < 0.01, "B", "A"),
            "age": source.integers(20, 80, 2_000),
            "ill": source.choice(["flu", "gout", "none"], 2_000),
        }
    )
    roles = {"country": "quasi", "age": "quasi", "ill": "confidential"}
    made = dc.anonymize(dc.read(frame, roles=roles), dc.KAnonymity(3), method=dc.Mondrian())
    assert made.verdict.startswith("safe")


def test_records_of_one_person_are_one_piece_of_evidence():
    """Each has one pay and one age through all visits, which says nothing of others."""
    source = np.random.default_rng(9)
    ages, pays = source.integers(20, 80, 40), source.integers(1, 400, 40)
    who = np.repeat(np.arange(40), 6)
    frame = pd.DataFrame({"who": who, "age": ages[who], "pay": pays[who]})
    roles = {"who": "identifier", "age": "quasi", "pay": "confidential"}
    made = dc.anonymize(
        dc.read(frame, roles=roles, unit="who"), dc.KAnonymity(3), method=dc.Mondrian()
    )
    assert made.verdict.startswith("safe")


def _amounts():
    source = np.random.default_rng(10)
    pay, bonus = source.integers(900, 9_000, (2, 200)) * 10
    return pd.DataFrame({"pay": pay, "bonus": bonus, "tax": pay * 0.3, "total": pay + bonus})


@pytest.mark.parametrize("left", [["tax"], ["total", "bonus"]])
@pytest.mark.parametrize(
    "make",
    [
        lambda data: dc.mask(data, dc.AdditiveNoise("pay", 0.2)),
        lambda data: dc.synthesize(data, dc.PartiallySynthetic("pay")),
        lambda data: dc.synthesize(data, dc.IPSO(confidential=("pay",))),
    ],
    ids=["mask", "partially-synthetic", "ipso"],
)
def test_masked_and_drawn_values_are_not_told_by_columns_beside_them(make, left):
    frame = _amounts()[["pay", *left]]
    roles = dict.fromkeys(frame.columns, "confidential")
    with pytest.raises(dc.InputError) as caught:
        make(dc.read(frame, roles=roles))
    assert (caught.value.code, caught.value.facts["key"]) == ("telling-column", "pay")
    assert caught.value.column in left
    alone = dc.read(frame[["pay", "bonus"]] if "bonus" in left else frame[["pay"]].assign(x=1))
    alone = alone.replace(roles=dict.fromkeys(alone.columns, "confidential"))
    make(alone)


def _inside():
    source = np.random.default_rng(2)
    age = source.integers(20, 80, 600)
    towns, ills = list("ABCD"), ["flu", "gout", "none"]
    frame = pd.DataFrame({"age": age, "town": source.choice(towns, 600)})
    told = {
        "a letter for the last digit": [chr(97 + a % 10) for a in age],
        "a number that rises with it": age % 10 * 1000 + source.integers(0, 900, 600),
        "what is nearly it": age + source.integers(-1, 2, 600) / 2,
    }
    harmless = {
        "letters by lot": source.choice(list("abcdefghij"), 600),
        "rises roughly": (age * 100 + source.normal(0, 4_000, 600)).round(),
        "coarser than classes": age // 30,
    }
    return frame.assign(ill=source.choice(ills, 600)), told, harmless


MANY, INSIDE, HARMLESS = _inside()
METHODS = [dc.Mondrian(), dc.MicroaggregationToK(), dc.Generalization(suppression=0.1)]


def _beside(values, method, **more):
    data = dc.read(
        MANY.assign(x=values),
        roles={"age": "quasi", "town": "quasi", "ill": "confidential", "x": "confidential"},
        hierarchies={"age": {"widths": [10, 20, 40]}, "town": {"rare": 3}},
        name="people",
        **more,
    )
    return dc.anonymize(data, dc.KAnonymity(5), method=method)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
@pytest.mark.parametrize("name", INSIDE)
def test_the_verdict_says_what_the_order_of_a_column_tells_inside_classes(name, method):
    made = _beside(INSIDE[name], method, vouch=["x"])
    assert made.verdict.startswith("safe")
    assert "ordering by x inside the released classes finds" in made.verdict
    (told,) = made.ordered
    assert (told.column, told.key) == ("x", "age")
    assert told.words in str(made.evidence().risk["told inside classes"])
    assert "ordering by x" in made.page()
    # Whoever does it finds as many: the ages of a class are known, their order is that of x.
    if method.name == "generalization" and name != "what is nearly it":
        assert told.found == 1.0


@pytest.mark.parametrize("name", HARMLESS)
def test_the_verdict_says_nothing_of_columns_that_tell_little(name):
    for method in METHODS:
        assert "ordering by" not in _beside(HARMLESS[name], method).verdict


def test_incomes_of_classes_are_ordered_by_taxable_income(data_folder):
    rows = pd.read_csv(data_folder / "casc" / "census.csv")
    keys = ["AGI", "PTOTVAL", "WSALVAL", "ERNVAL"]
    data = dc.read(
        rows[[*keys, "TAXINC"]], roles={**dict.fromkeys(keys, "quasi"), "TAXINC": "confidential"}
    )
    made = dc.anonymize(data, dc.KAnonymity(3), method=dc.MicroaggregationToK())
    (told,) = made.ordered
    assert (told.column, told.key) == ("TAXINC", "AGI")
    assert told.found > 0.45
    assert told.guessing < 0.35
