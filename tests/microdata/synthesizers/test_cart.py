"""CART: rules, point masses, missing values, limits, and what it refuses."""

import itertools

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import discreet as dc
from discreet.errors import InputError
from discreet.microdata.columns import codes
from discreet.microdata.synthesizers._variables import Variable, folded
from discreet.randomness import Randomness


def people(size=3000, seed=1):
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 90, size)
    marital = np.where(age < 16, "single", rng.choice(["single", "married", "widowed"], size))
    gain = np.where(rng.random(size) < 0.8, 0.0, np.exp(rng.normal(5, 1, size)).round(2))
    pay = (100 + 3 * age + rng.normal(0, 10, size)).round(1)
    pay[rng.random(size) < 0.15] = np.nan
    return pd.DataFrame({"age": age, "marital": marital, "gain": gain, "pay": pay})


def read(frame, **more):
    return dc.read(frame, roles=dict.fromkeys(frame.columns, "quasi"), **more)


def drawn(method, frame=None, n=None, **more):
    data = read(people() if frame is None else frame, **more)
    return dc.synthesize(data, method, n=n, rng=Randomness.seeded(1)).frame


def test_rules_hold_in_every_record():
    found = drawn(dc.CART(rules={"marital": ("age < 16", "single")}), n=20_000)
    assert (found.marital[found.age < 16] == "single").all()
    assert found.marital[found.age >= 16].nunique() == 3


def test_conditions_may_be_joined():
    rules = {"marital": [("age < 16 or age = 20", "single"), ("not (age <= 80)", "widowed")]}
    found = drawn(dc.CART(rules=rules))
    assert (found.marital[(found.age < 16) | (found.age == 20)] == "single").all()
    assert (found.marital[found.age > 80] == "widowed").all()


def test_point_masses_missing_shares_and_limits_are_kept():
    raw = people()
    found = drawn(dc.CART(semicontinuous={"gain": 0}), n=20_000)
    assert abs((found.gain == 0).mean() - (raw.gain == 0).mean()) < 0.03
    assert abs(found.pay.isna().mean() - raw.pay.isna().mean()) < 0.03
    assert found.pay.between(raw.pay.min(), raw.pay.max())[found.pay.notna()].all()
    ends = {found.pay.min(), found.pay.max()}  # means of five records each
    assert set(found.pay.dropna()) - ends <= set(raw.pay.dropna())


def test_the_verdict_counts_values_of_single_people():
    """The largest income of a town tells who is in the file, whatever stands around it."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"sex": rng.choice(["f", "m"], 400), "pay": 1000.0 + np.arange(400) // 2})
    frame.loc[0, "pay"] = 9_999_999.0
    data = read(frame, bounds={"pay": (0, 10_000_000)})
    plain, smooth = (
        dc.synthesize(data, method, n=20_000, rng=Randomness.seeded(1))
        for method in (dc.CART(), dc.CART(smoothing={"pay": "density"}))
    )
    assert 9_999_999.0 not in {*plain.frame["pay"], *smooth.frame["pay"]}
    assert plain.evidence().risk["values of one record"] == {}
    kept = dc.synthesize(data, dc.CART(tails=0), n=20_000, rng=Randomness.seeded(1))
    assert kept.evidence().risk["values of one record"] == {"pay": 2}
    assert "values that one record alone had stand in the file: 2 of pay" in kept.verdict


@pytest.mark.parametrize(
    ("values", "fewest", "wanted"),
    [
        ([1, 2, 2, 3, 50.5, 60], 2, [2, 2, 2, 3, 55.2, 55.2]),
        ([1, 2, 2, 2, 50], 3, [2, 2, 2, 2, 2]),
        ([7, 7, 7, 8, 8, 8], 3, [7, 7, 7, 8, 8, 8]),
        ([1.25, 2.75], 5, [2.0, 2.0]),
    ],
)
def test_extremes_are_never_one_persons(values, fewest, wanted):
    column = pa.chunked_array([pa.array([float(v) for v in values])])
    places, known = codes(column)
    found = folded(Variable("x", known, places, True), fewest)
    assert found.scale[found.places].tolist() == pytest.approx(wanted)
    assert (np.bincount(found.places)[[0, -1]] >= min(fewest, len(values))).all()


def test_smoothed_numbers_are_new_within_limits_and_as_precise():
    raw = people()
    found = drawn(
        dc.CART(smoothing={"pay": "density", "gain": "density"}, semicontinuous={"gain": 0}),
        bounds={"pay": (90, 400)},
        n=5000,
    )
    known = found.pay.dropna()
    assert not set(known) <= set(raw.pay.dropna())
    assert known.between(90, 400).all()
    assert np.allclose(known, known.round(1))
    assert abs((found.gain == 0).mean() - 0.8) < 0.04
    assert abs(known.mean() - raw.pay.mean()) < 5


def test_pairs_are_kept_in_any_order():
    raw = people()
    for visit in ([], ["pay", "gain"], "codes"):
        found = drawn(dc.CART(min_leaf=20, visit=visit), raw)
        assert list(found.columns) == list(raw.columns)
        assert abs(found.corr(numeric_only=True).loc["age", "pay"] - 0.99) < 0.02


def test_a_split_that_changes_no_majority_is_kept():
    # rpart drops it, and the shares of the two groups become one.
    rng = np.random.default_rng(3)
    sex = rng.choice(["f", "m"], 8000)
    high = rng.random(8000) < np.where(sex == "m", 0.4, 0.1)
    found = drawn(dc.CART(), pd.DataFrame({"sex": sex, "high": np.where(high, "y", "n")}))
    shares = found.groupby("sex").high.apply(lambda s: (s == "y").mean())
    assert abs(shares["m"] - 0.4) < 0.04
    assert abs(shares["f"] - 0.1) < 0.04


def test_dates_booleans_and_many_codes():
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(
        {
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, 500), "D"),
            "yes": rng.random(500) < 0.3,
            "code": rng.choice([f"c{n}" for n in range(80)], 500),
        }
    )
    data = dc.read(frame, roles=dict.fromkeys(frame, "quasi"), vouch=["code"])
    found = dc.synthesize(data, dc.CART(), rng=Randomness.seeded(1)).frame
    assert [str(t) for t in found.dtypes][1] == "bool"
    assert found.day.between(frame.day.min(), frame.day.max()).all()
    assert set(found.code) <= set(frame.code)


def test_fixed_predictors_are_the_only_ones():
    raw = people()
    found = drawn(dc.CART(min_leaf=20, predictors={"pay": ["marital"]}), raw)
    assert abs(found.corr(numeric_only=True).loc["age", "pay"]) < 0.8


@pytest.mark.parametrize(
    ("method", "code"),
    [
        (dc.CART(rules={"marital": ("age <", "single")}), "malformed-rule"),
        (dc.CART(rules={"marital": ("pay > 3", "single")}), "rule-order"),
        (dc.CART(rules={"marital": ("age < 16", "sngle")}), "unknown-value"),
        (dc.CART(rules={"marital": ("upper(age) < 16", "single")}), "malformed-rule"),
        (dc.CART(rules={"colour": ("age < 16", "single")}), "unknown-column"),
        (
            dc.CART(rules={"marital": [("age < 30", "single"), ("age < 9", "married")]}),
            "rules-contradict",
        ),
        (dc.CART(visit=["agee"]), "unknown-column"),
        (dc.CART(smoothing={"marital": "density"}), "not-numeric"),
        (dc.CART(semicontinuous={"marital": 0}), "not-numeric"),
        (dc.CART(predictors={"age": ["pay"]}), "rule-order"),
    ],
)
def test_mistakes_are_our_own_errors(method, code):
    with pytest.raises(InputError) as caught:
        drawn(method)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        (pd.DataFrame({"a": [1, 2], "b": [1, 2], "c": [1, 2]}), "too-few-records"),
        (pd.DataFrame({"a": [1.0]}), "too-few-records"),
        (pd.DataFrame({"a": [1, 2, 3], "b": pd.Series([None] * 3, dtype=float)}), "all-missing"),
    ],
)
def test_files_that_cannot_be_learned_from(frame, code):
    with pytest.raises(InputError) as caught:
        drawn(dc.CART(), frame)
    assert caught.value.code == code


def test_errors_show_no_value_of_the_file():
    with pytest.raises(InputError) as caught:
        drawn(dc.CART(rules={"marital": ("age < 16", "sngle")}))
    assert "married" not in str(caught.value)


@pytest.mark.slow
def test_adult_is_kept_as_the_manual_says(data_folder):
    frame = pd.read_csv(data_folder / "adult" / "adult.csv", sep=";")
    order = np.random.default_rng(0).permutation(len(frame))
    data = read(frame.iloc[order[:24_129]])
    rng = np.random.default_rng(5)
    late = [name for name in frame.columns if name != "age"] + ["age"]
    for visit in [[], late, *(rng.permutation(frame.columns).tolist() for _ in range(4))]:
        found = []
        for seed in range(5):
            method = dc.CART(min_leaf=50, visit=visit)
            made = dc.synthesize(data, method, rng=Randomness.seeded(seed))
            facts = dc.utility(data, made, measures=[dc.Marginals()])["marginals"].facts
            found.append((facts["tv2"], facts["worst tv2"]))
        pairs, worst = np.mean(found, axis=0)
        assert pairs <= 0.018, visit
        assert worst <= 0.04, visit


def test_every_pair_of_codes_has_been_seen_or_is_rare():
    rng = np.random.default_rng(6)
    a = rng.integers(0, 5, 4000)
    frame = pd.DataFrame({"a": a.astype(str), "b": (a // 2).astype(str)})
    found = drawn(dc.CART(min_leaf=5), frame)
    seen = set(itertools.product(frame.a, frame.b)) & set(zip(frame.a, frame.b, strict=True))
    assert set(zip(found.a, found.b, strict=True)) <= seen


def test_the_page_does_not_deny_copies_and_the_curator_counts_them(tmp_path):
    """Leaves of five records copy most people whole; the page must not say that nobody is copied."""
    rng = np.random.default_rng(1)
    pay = rng.lognormal(10, 0.5, 400).round(2)
    rows = pd.DataFrame({"age": rng.integers(16, 90, 400), "pay": pay})
    made = dc.synthesize(read(rows), dc.CART(min_leaf=5), m=2)
    people = set(rows.itertuples(index=False, name=None))
    whole = [sum(r in people for r in s.itertuples(index=False, name=None)) for s in made.sets]
    assert list(made.copies) == whole
    assert min(whole) > 200
    page = (made.write(tmp_path / "out") / "report.html").read_text()
    assert "anybody" not in page
    assert "may equal an original record" in page


@pytest.mark.parametrize("name", ["n", "m"])
@pytest.mark.parametrize("value", [2.5, 5.0, "5", True, float("nan"), [3]])
def test_numbers_of_records_and_files_are_whole(name, value):
    with pytest.raises(InputError, match="whole number") as caught:
        dc.synthesize(read(people(100)), dc.CART(), **{name: value})
    assert caught.value.code == "parameter-type"
    assert caught.value.facts["parameter"] == name


def test_files_that_no_memory_holds_are_refused_before_anything_is_learned():
    for more in ({"n": 10**10}, {"n": 10**7, "m": 100}):
        with pytest.raises(InputError) as caught:
            dc.synthesize(read(people(100)), dc.CART(), **more)
        assert (caught.value.code, caught.value.facts["parameter"]) == ("parameter-range", "n")


@pytest.mark.parametrize(
    "method",
    [dc.CART(), dc.MultipleImputation(), dc.PartiallySynthetic([f"c{n}" for n in range(1500)])]
    + [make(epsilon=1) for make in (dc.MST, dc.AIM)],
)
def test_thousands_of_columns_are_refused_at_once(method):
    rows = pd.DataFrame({f"c{n}": [0, 1] for n in range(3000)})
    with pytest.raises(InputError) as caught:
        dc.synthesize(read(rows), method)
    assert caught.value.code == "too-many-columns"


def test_named_predictors_let_more_columns_be_drawn():
    rows = pd.DataFrame({f"c{n}": np.arange(1100) % (2 + n % 3) for n in range(1100)})
    names = list(rows)
    near = {name: names[max(0, n - 1) : n] for n, name in enumerate(names)}
    dc.CART(predictors=near).check(read(rows))
    with pytest.raises(InputError):
        dc.CART().check(read(rows))


def of_many_small_effects(records=12_000):
    """A yes or no that ten predictors move a little each: no single tree tells their sum."""
    rng = np.random.default_rng(8)
    seen = rng.integers(0, 2, (records, 10))
    rows = pd.DataFrame(seen, columns=[f"x{n}" for n in range(10)])
    odds = 1 / (1 + np.exp(-1.2 * (seen.sum(axis=1) - 5)))
    return rows.assign(y=np.where(rng.random(records) < odds, "yes", "no"))


def test_sums_of_small_effects_on_a_column_of_two_values_are_kept(monkeypatch):
    rows = of_many_small_effects()

    def kept():
        made = drawn(dc.CART(min_leaf=50), rows)
        many = made.filter(like="x").sum(axis=1)
        return (made.y == "yes")[many == 8].mean(), (made.y == "yes")[many == 2].mean()

    def truth(many):
        return (rows.y == "yes")[rows.filter(like="x").sum(axis=1) == many].mean()

    away = [abs(found - truth(many)) for found, many in zip(kept(), (8, 2), strict=True)]
    monkeypatch.setattr("discreet.microdata.synthesizers._score._FEWEST", 10**9)
    before = [abs(found - truth(many)) for found, many in zip(kept(), (8, 2), strict=True)]
    assert sum(away) < 0.04
    assert sum(before) > 2 * sum(away)


def test_rare_values_come_as_often_as_they_should():
    """By a score they came a third too seldom."""
    rng, size = np.random.default_rng(1), 12_000
    rows = pd.DataFrame({"day": rng.integers(0, 900, size)})
    rows["code"] = rng.integers(0, 300, size).astype(str)
    rows["z"] = rng.normal(size=size).round(2)
    rows["rare"] = np.where(rng.permutation(size) < 60, "r", "s")
    data = read(rows)
    many = [
        (dc.synthesize(data, dc.CART(), rng=Randomness.seeded(seed)).frame.rare == "r").sum()
        for seed in range(4)
    ]
    assert np.mean(many) == pytest.approx(60, abs=12)


def test_scores_do_not_depend_on_the_order_of_records():
    rows = of_many_small_effects()
    one, two = (drawn(dc.CART(), r) for r in (rows, rows.sample(frac=1, random_state=3)))
    pd.testing.assert_frame_equal(one, two)


def test_scores_leave_as_many_donors_in_each_leaf():
    from discreet.microdata.synthesizers._leaves import grow

    rows = of_many_small_effects()
    seen = rows.filter(like="x").to_numpy(np.float32)
    target = (rows.y == "yes").to_numpy().astype(np.int64)
    every = np.arange(len(rows))
    leaves = grow(
        seen, target, every, numeric=False, min_leaf=50, scores=True, rng=Randomness.seeded(1)
    )
    assert leaves.score is not None
    assert leaves.count[leaves.count > 0].min() >= 50
    assert np.sort(leaves.donors).tolist() == every.tolist()


def test_scores_are_for_coarse_leaves_of_large_files_without_units():
    rows = of_many_small_effects()
    assert dc.CART().plan(read(rows)).scored == {("y", True)}
    assert not dc.CART(min_leaf=5).plan(read(rows)).scored  # a tree of small leaves tells as much
    assert not dc.CART().plan(read(rows[:9_000])).scored
    shared = rows.assign(person=np.arange(len(rows)) // 2)
    roles = {**dict.fromkeys(rows.columns, "quasi"), "person": "identifier"}
    # Boosted trees would count records, and not units.
    assert not dc.CART().plan(dc.read(shared, roles=roles, unit="person")).scored


@pytest.mark.parametrize(
    "method",
    [dc.CART(), dc.CART(proper=True), dc.CART(visit="codes"), dc.MultipleImputation(m=1)],
)
def test_attacks_are_tried_on_the_generator_that_was_released(method, monkeypatch):
    """Half of the file is below the sizes at which leaves become larger and scores are used."""
    for name in ("_sequence._SMALL", "_score._FEWEST"):
        monkeypatch.setattr(f"discreet.microdata.synthesizers.{name}", 1_500)
    rows = of_many_small_effects(2_200).astype({f"x{n}": "string" for n in range(10)})
    monkeypatch.setattr("discreet.microdata.synthesizers._score._RARER", 500)
    made = dc.synthesize(read(rows), method, rng=Randomness.seeded(1))
    fitted = []
    kind = type(made.model)
    again = kind.again
    monkeypatch.setattr(kind, "again", lambda *a, **k: fitted.append(again(*a, **k)) or fitted[-1])
    monkeypatch.setattr("discreet.microdata.judgement.synthetic_risk", lambda *a, **k: None)
    made.risk()
    one, two = made.model._plan, fitted[0]._plan
    assert two.records == 1_100
    assert two.min_leaf == one.min_leaf == 50
    assert two.scored == one.scored
    assert len(two.scored) > 5
    assert [v.name for v in two.order] == [v.name for v in one.order]
    steps = two.grown(Randomness.seeded(1))
    found = {s.variable.name for s in steps for stage in s.stages if stage.leaves.score}
    assert found == {name for name, _ in one.scored}


def test_whole_numbers_of_numpy_count():
    made = dc.synthesize(read(people(100)), dc.CART(), n=np.int64(7), m=np.int32(2))
    assert [len(file) for file in made.sets] == [7, 7]


def rows_of_persons():
    """A person of 300 records is alone in a place, and three of the highest pays are another's."""
    rng = np.random.default_rng(5)
    person = np.concatenate([np.repeat(np.arange(600), 3), np.full(300, 600)])
    rows = pd.DataFrame({"person": person, "place": rng.choice(["x", "y"], person.size)})
    rows["pay"] = rng.normal(3000, 300, person.size).round()
    rows.loc[rows.person == 600, ["place", "pay"]] = ["z", 4000.0]
    rows.loc[rows.person == 7, "pay"] = 900_000.0
    roles = {"person": "identifier", "place": "quasi", "pay": "confidential"}
    return rows, dc.read(rows, roles=roles, unit="person")


def test_leaves_and_tails_count_persons_and_not_their_records():
    rows, data = rows_of_persons()
    made = dc.synthesize(data, dc.CART(min_leaf=50), rng=Randomness.seeded(1)).frame
    # Five persons' highest pays have the mean of five people, whoever has more records.
    highest = rows.groupby("person")["pay"].max().nlargest(5)
    assert made["pay"].max() <= highest.mean() + 1
    # One person's records are no leaf: records of that place are drawn like others', too.
    assert (made.loc[made["place"] == "z", "pay"] != 4000).mean() > 0.5
    once = dc.read(rows.drop(columns="person"), roles={"place": "quasi", "pay": "confidential"})
    alone = dc.synthesize(once, dc.CART(min_leaf=50), rng=Randomness.seeded(1)).frame
    assert (alone.loc[alone["place"] == "z", "pay"] == 4000).all()


def attacked(monkeypatch, made):
    """Return the halves and the file that the attacks of a release see."""
    from discreet.microdata import judgement

    seen = []
    monkeypatch.setattr(
        judgement, "synthetic_risk", lambda one, again, other, **_: seen.extend([one, again, other])
    )
    made.risk()
    return [file.frame for file in seen]


def test_attacks_see_all_files_and_no_person_in_both_halves(monkeypatch):
    rng = np.random.default_rng(6)
    own = rng.permutation(300) * 1.5  # tells the person
    rows = pd.DataFrame({"person": np.repeat(np.arange(300), 2), "own": np.repeat(own, 2)})
    rows["job"] = rng.choice(["x", "y"], 600)
    roles = {"person": "identifier", "own": "quasi", "job": "confidential"}
    data = dc.read(rows, roles=roles, unit="person")
    made = dc.synthesize(data, dc.CART(tails=0), m=3, rng=Randomness.seeded(1))
    one, again, other = attacked(monkeypatch, made)
    assert not set(one["own"]) & set(other["own"])
    assert len(one) == len(other)
    assert len(again) == 3 * len(one)


def test_no_extreme_value_makes_nearly_all_of_the_mean_that_is_told():
    pay = np.r_[np.arange(1_000, 2_000, 2.0), 1e9]
    data = dc.read(pd.DataFrame({"pay": pay, "sex": ["f", "m"] * 250 + ["f"]}), rest="quasi")
    made = dc.synthesize(data, dc.CART(), n=5_000, rng=Randomness.seeded(1)).frame
    assert made.pay.max() < 2_000  # a mean with it, times five, would be that person's pay


def test_means_of_extreme_dates_are_days_where_all_dates_are():
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(400) ** 2 % 397, "D")
    data = dc.read(pd.DataFrame({"day": days, "sex": ["f", "m"] * 200}), rest="quasi")
    made = dc.synthesize(data, dc.CART(), n=2_000, rng=Randomness.seeded(1)).frame
    assert (made.day == made.day.dt.normalize()).all()


@pytest.mark.parametrize(
    "method",
    [dc.CART(), dc.MultipleImputation(m=2), dc.IPSO("pay"), dc.Hybrid(["pay"], k=20)],
)
def test_infinite_values_are_told_by_column(method):
    rng = np.random.default_rng(1)
    rows = pd.DataFrame({"age": rng.normal(size=90), "pay": np.r_[np.inf, rng.normal(size=89)]})
    with pytest.raises(InputError) as error:
        dc.synthesize(dc.read(rows, rest="quasi"), method)
    assert error.value.code == "not-finite"


def test_a_partial_file_draws_something_anew():
    data = dc.read(pd.DataFrame({"age": [20, 60] * 50, "pay": [1, 2] * 50}), rest="quasi")
    with pytest.raises(InputError, match="would leave as they are"):
        dc.synthesize(data, dc.PartiallySynthetic([]))
