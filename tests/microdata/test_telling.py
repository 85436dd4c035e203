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


@pytest.mark.parametrize("form", ["quotient", "product", "coded"])
def test_columns_that_tell_a_key_as_factors_or_in_a_code_are_refused(form):
    rng = np.random.default_rng(1)
    height, weight = rng.integers(150, 200, 600), rng.integers(45, 120, 600)
    made = {
        "quotient": {"weight": weight, "bmi": np.round(weight / (height / 100) ** 2, 1)},
        "product": {"weight": weight, "area": weight * height},
        "coded": {"weight": weight, "left": [f"L{w - h + 200:03d}" for w, h in zip(weight, height, strict=True)]},
    }[form]  # fmt: skip
    rows = pd.DataFrame({"height": height, **made, "ill": rng.choice(list("abc"), 600)})
    people = dc.read(
        rows,
        roles={**dict.fromkeys(rows.columns, "confidential"), "height": "quasi"},
        hierarchies={"height": {"grid": [10, 20]}},
    )
    with pytest.raises(dc.InputError) as raised:
        dc.anonymize(people, dc.KAnonymity(20))
    assert raised.value.code == "telling-column"
    assert dc.anonymize(
        people.replace(vouch=list(made)), dc.KAnonymity(20)
    ).safe  # whoever vouches decides


def test_a_product_of_columns_that_tells_a_masked_one_is_refused():
    rng = np.random.default_rng(2)
    hours, rate = rng.integers(5, 40, 400), rng.integers(10, 60, 400)
    rows = pd.DataFrame({"hours": hours, "rate": rate, "pay": hours * rate})
    roles = {"hours": "other", "rate": "other", "pay": "confidential"}
    with pytest.raises(dc.InputError) as raised:
        dc.mask(dc.read(rows, roles=roles), [dc.RankSwapping("pay", p=15)])
    assert raised.value.code == "telling-column"


def test_a_column_masked_less_than_the_one_it_tells_is_refused():
    """A tax rounded to 1 gives the pay away that is rounded to 5,000."""
    rng = np.random.default_rng(3)
    pay = rng.integers(10_000, 90_000, 300)
    people = dc.read(
        pd.DataFrame({"pay": pay, "tax": pay * 0.3}),
        roles={"pay": "confidential", "tax": "confidential"},
    )
    apart = dc.registry.members("job")["mask"]((dc.Rounding("pay", 5000), dc.Rounding("tax", 1)))
    for attempt in (apart.rehearse, apart.run):
        with pytest.raises(dc.InputError) as raised:
            attempt(people)
        assert raised.value.code == "telling-column"
        assert raised.value.column == "tax"
    alike = [dc.Rounding("pay", 5000), dc.Rounding("tax", 1500)]
    assert len(dc.mask(people, alike).frame) == 300


@pytest.mark.parametrize(
    "method",
    [dc.Rounding("pay", 1), dc.TopCoding("pay", value=1e9), dc.AdditiveNoise("pay", 1e-7)],
    ids=lambda method: method.name,
)
def test_the_verdict_names_columns_on_which_a_method_had_no_effect(method):
    rng = np.random.default_rng(4)
    rows = pd.DataFrame({"sex": rng.choice(["f", "m"], 200), "pay": rng.integers(1000, 6000, 200)})
    people = dc.read(rows, roles={"sex": "quasi", "pay": "confidential"})
    assert "pay is confidential and no model" in dc.mask(people, [method]).verdict
    assert "pay" not in dc.mask(people, [dc.Rounding("pay", 500)]).verdict


def test_two_nominal_columns_that_tell_a_key_together_are_refused():
    """No single one tells the postcode; school and practice together belong to one."""
    rng = np.random.default_rng(5)
    school, practice = rng.integers(0, 6, 900), rng.integers(0, 6, 900)
    zips = [f"{(a * 5 + b * 7 + a * b) % 18:02d}{'01'[(a + b) % 2]}" for a, b in zip(school, practice, strict=True)]  # fmt: skip
    rows = pd.DataFrame({"zip": zips, "school": [f"s{n}" for n in school], "practice": [f"p{n}" for n in practice]})  # fmt: skip
    people = dc.read(
        rows,
        roles={"zip": "quasi", "school": "other", "practice": "other"},
        hierarchies={"zip": {"prefixes": [1]}},
    )
    with pytest.raises(dc.InputError) as raised:
        dc.anonymize(people, dc.KAnonymity(30))
    assert raised.value.code == "telling-column"
