"""Attacks and utilities on synthetic files: controls come out as they must."""

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from discreet.errors import InputError
from discreet.microdata.copies import record_numbers, shared_beyond_chance
from discreet.microdata.judgement import Unpaired, synthetic_risk
from discreet.microdata.utilities import trained_model
from discreet.microdata.utilities.interval_overlap import shared
from discreet.randomness import Randomness


def people(size, seed):
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, size)
    return pd.DataFrame(
        {
            "age": age,
            "town": rng.choice([f"t{n}" for n in range(30)], size),
            "job": np.where(age > 65, "retired", rng.choice(["cook", "nurse", "pilot"], size)),
            "pay": (50 * age + rng.normal(0, 300, size)).round(),
        }
    )


INSIDE, OUTSIDE = people(800, 1), people(800, 2)


def judged(made):
    return dc.judge(made, INSIDE, OUTSIDE, rng=Randomness.seeded(1))


def lost(made):
    """Return the loss of pairs and of a model trained on the file."""
    measures = [dc.Marginals(bins=4), dc.TrainOnSynthetic("job")]
    file = Unpaired(dc.read(made))
    found = dc.utility(INSIDE, file, measures=measures, rng=Randomness.seeded(1))
    return found["marginals"].value, found["train-on-synthetic"].value


def test_a_bootstrap_passes_utility_and_fails_every_attack():
    found = judged(INSIDE.sample(800, replace=True, random_state=1))
    assert set(found.risk.leaks) >= {"membership", "replicated-uniques", "nearest-distance"}
    assert found.risk["membership"].facts["AUC"] >= 0.65
    assert found.utility["marginals"].value < found.independent + 0.1
    assert "leaks" in found.verdict


def test_other_people_leak_nothing():
    found = judged(people(800, 3))
    assert found.risk.leaks == ()
    assert abs(found.risk["membership"].facts["AUC"] - 0.5) < 0.05
    assert 1.0 < found.utility["pmse-ratio"].facts["ratio"] < 3.5  # a second sample: 2
    assert "none of the attacks" in found.verdict


def secrets(size, seed):
    """Columns of thirty values, and a yes or no that has nothing to do with them."""
    rng = np.random.default_rng(seed)
    rows = {f"a{n}": rng.integers(0, 30, size).astype(str) for n in range(4)}
    return pd.DataFrame({**rows, "ill": rng.choice(["yes", "no"], size)})


def test_a_secret_that_leaves_of_many_files_tell_is_found():
    """The nearest records say nothing: a model learns the shares of the leaves from all files."""
    rows = secrets(1_000, 1)
    roles = {**dict.fromkeys(rows.columns, "quasi"), "ill": "confidential"}
    made = dc.synthesize(dc.read(rows, roles=roles), dc.CART(), m=60, rng=Randomness.seeded(1))
    assert made.attacked == 60
    found = made.risk()["synthetic-attribute"]
    assert "synthetic-attribute" in made.risk().leaks
    assert found.facts["attack"] == "model"
    assert found.facts["surest hundred in the file"] > 0.65
    assert found.facts["surest hundred not in the file"] < 0.65
    others = dc.SyntheticAttribute("ill")
    files = Unpaired(dc.read(secrets(20_000, 2)))
    fresh = dc.risk(
        rows, files, measures=[others], holdout=secrets(1_000, 3), rng=Randomness.seeded(1)
    )["synthetic-attribute"]
    assert fresh.facts["low"] < 0


def test_secrets_of_many_values_and_missing_ones_are_guessed():
    rows = secrets(300, 1).assign(ill=[None, *(f"code {n}" for n in range(299))])
    others = secrets(300, 2).assign(ill=[None, *(f"code {n}" for n in range(299))])
    one, other = (dc.read(file, roles=dict.fromkeys(rows, "quasi")) for file in (rows, others))
    ways, rng = [dc.SyntheticAttribute("ill")], Randomness.seeded(1)
    for file in (one, other):
        found = dc.risk(one, Unpaired(file), measures=ways, holdout=other, rng=rng)
        assert (found["synthetic-attribute"].facts["low"] > 0.9) == (file is one)
    with pytest.raises(InputError, match="is an identifier"):
        dc.risk(rows, Unpaired(one), measures=ways, holdout=others)


@pytest.mark.parametrize(("many", "few"), [(300, 1), (300, 39), (39, 300)])
def test_of_few_people_no_attack_tells_anything(many, few):
    with pytest.raises(InputError) as caught:
        dc.judge(people(300, 3), people(many, 1), people(few, 2))
    assert caught.value.code == "too-few-records"


def test_columns_that_nothing_was_compared_with_are_named():
    named = INSIDE.assign(name=[f"person {n}" for n in range(800)])
    made = people(800, 3).assign(name=named["name"], old_pay=INSIDE["pay"])
    others = OUTSIDE.assign(name=[f"other {n}" for n in range(800)])
    found = dc.judge(made, named, others, rng=Randomness.seeded(1))
    assert found.unjudged == ("name", "old_pay")
    assert "nothing is said of 'name', 'old_pay'" in found.verdict
    assert any("old_pay" in str(row) for row in found.rows()[1])


def test_the_verdict_says_how_many_files_were_attacked(monkeypatch):
    monkeypatch.setattr("discreet.microdata.synthetic_release._ATTACKED_RECORDS", 0)
    made = dc.synthesize(dc.read(people(200, 1), rest="quasi"), dc.CART(), m=12)
    assert "10 of the 12 files were attacked together" in made.risk().verdict


def test_independent_columns_fail_utility():
    rng = np.random.default_rng(1)
    mixed = pd.DataFrame({name: rng.permutation(INSIDE[name]) for name in INSIDE})
    useless, other = lost(mixed), lost(people(800, 3))
    assert useless[0] > 1.3 * other[0]
    assert useless[1] > other[1]


def test_one_record_in_a_hundred_copied_verbatim_is_caught():
    clean, inside, outside = people(6000, 4), people(6000, 5), people(6000, 6)
    copied = pd.concat([inside.iloc[:60], clean.iloc[60:]])
    ways = [dc.ReplicatedUniques(), dc.Membership()]
    found = {}
    for word, made in (("copied", copied), ("clean", clean)):
        file = Unpaired(dc.read(made))
        report = dc.risk(inside, file, measures=ways, holdout=outside, rng=Randomness.seeded(1))
        found[word] = [report[way.name].facts for way in ways]
    assert found["copied"][0]["low"] > 0
    assert found["clean"][0]["low"] <= 0
    early = "TPR at 1 % FPR"
    assert found["copied"][1][early] > found["clean"][1][early]


def test_without_a_holdout_no_attack_is_tried():
    found = dc.judge(people(500, 3), INSIDE)
    assert found.risk is None
    assert "needs a holdout" in found.verdict


def test_measures_that_need_corresponding_records_are_skipped():
    report = dc.risk(INSIDE, Unpaired(dc.read(people(700, 3))), rng=Randomness.seeded(1))
    assert "record-linkage" in report.skipped
    assert "membership" in report.skipped  # without a holdout
    lost = dc.utility(INSIDE, Unpaired(dc.read(people(700, 3))), rng=Randomness.seeded(1))
    assert {c.measure for c in lost.comparisons} >= {"marginals", "pmse-ratio", "propensity"}


def test_users_own_regression_works_on_files_of_another_length():
    found = dc.utility(
        INSIDE,
        Unpaired(dc.read(people(700, 3))),
        measures=[dc.Regression("pay", on=["age", "job"])],
    )
    assert 0 <= found["regression"].value < 0.6


def test_intervals_of_a_formula_overlap_as_karr_writes_it():
    """By hand: (0, 2) and (1, 3) share 1 of 2; (0, 2) and (2, 8) share nothing, (0, 1) and (2, 3) less."""
    assert shared((1, 1), (2, 1)) == 0.5
    assert shared((1, 1), (5, 3)) == 0
    assert shared((0.5, 0.5), (2.5, 0.5)) == -1
    found = dc.utility(
        INSIDE,
        Unpaired(dc.read(people(700, 3))),
        measures=[dc.IntervalOverlap("pay ~ age + job"), dc.Regression("pay", on=["age", "job"])],
    )
    own, other = found["interval-overlap"].facts, found["regression"].facts
    assert list(own) == list(other)
    assert all(max(own[n]["overlap"], 0) == pytest.approx(other[n]["overlap"]) for n in own)
    with pytest.raises(InputError):
        dc.utility(INSIDE, INSIDE, measures=[dc.IntervalOverlap("pay")])


def test_files_of_other_tools_are_judged(tmp_path):
    """Whole numbers as decimals, another order of columns, more columns, fewer records, other codes."""
    made = people(500, 3)[["pay", "job", "age", "town"]].assign(age=lambda f: f.age + 0.0)
    made[".imp"] = 1
    made.loc[:3, "job"] = "astronaut"
    made.to_csv(tmp_path / "synthetic.csv", index=False)
    INSIDE.to_csv(tmp_path / "people.csv", index=False)
    OUTSIDE.to_csv(tmp_path / "others.csv", index=False)
    names = ("synthetic.csv", "people.csv", "others.csv")
    found = dc.judge(*(str(tmp_path / name) for name in names), rng=Randomness.seeded(1))
    assert found.risk.leaks == ()
    assert found.utility["marginals"].facts["tv1"] < 0.1
    assert set(found.to_frame().kind) == {"utility", "control", "risk", "not judged"}


@pytest.mark.parametrize(
    ("holdout", "shared"),
    [
        (INSIDE, 800),
        (INSIDE.iloc[:400], 400),
        (pd.concat([OUTSIDE, INSIDE.iloc[:80]]), 80),
        (INSIDE.assign(age=INSIDE.age + 0.0).sample(800, random_state=1), 800),
    ],
)
def test_a_holdout_of_people_in_the_file_is_refused(holdout, shared):
    """A verbatim copy would seem harmless: nobody is outside the file."""
    with pytest.raises(InputError, match=f"^{shared} of the {len(holdout)} records") as caught:
        dc.judge(INSIDE, INSIDE, holdout)
    assert caught.value.code == "overlapping-holdout"


def test_equal_records_of_different_people_are_no_overlap():
    """Coarse records of two halves agree by chance: half of all pairs of equal records do."""
    for seed in range(20):
        rows = people(1600, seed)[["age", "town"]]
        one, two = (dc.read(part).arrow() for part in (rows.iloc[:800], rows.iloc[800:]))
        assert shared_beyond_chance(two, one, ["age", "town"]) == 0
        assert np.isin(*record_numbers(two, one, names=["age", "town"])).mean() > 0.2


def test_a_copy_in_other_types_is_found():
    """Numbers, days and truth values as texts: the copy is still a copy."""
    more = {"day": pd.Timestamp("2020-01-01"), "old": lambda f: f.age > 65}
    rows, others = INSIDE.assign(**more), OUTSIDE.assign(**more)
    found = dc.judge(rows.astype(str), rows, others.astype(str), rng=Randomness.seeded(1))
    assert {"membership", "replicated-uniques"} <= set(found.risk.leaks)
    assert found.utility["marginals"].value == 0


def test_codes_that_a_file_holds_as_numbers_are_found():
    rows, others = (f.assign(town=f.town.str[1:]) for f in (INSIDE, OUTSIDE))
    for kind in ("int64", "float64"):
        made = rows.astype({"town": kind})
        found = dc.judge(made, rows, others, rng=Randomness.seeded(1))
        assert "replicated-uniques" in found.risk.leaks


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (lambda f: f, lambda f: f.assign(pay="€ " + f.pay.astype(str))),
        (lambda f: f.assign(town=f.town.str[1:].str.zfill(3)), lambda f: f.astype({"town": int})),
        (lambda f: f.assign(day=pd.Timestamp("2020-01-01")), lambda f: f.assign(day="new year")),
    ],
)
def test_values_that_cannot_be_compared_are_refused(before, after):
    rows = before(INSIDE)
    with pytest.raises(InputError) as caught:
        dc.judge(after(rows), rows, before(OUTSIDE))
    assert caught.value.code == "type-mismatch"


def test_texts_that_all_differ_do_not_cost_a_tree_each(monkeypatch):
    """A boosted model grows a tree per class and round: 800 classes took more than a minute."""
    learned = []

    class Learner:
        def fit(self, rows, values):
            assert len(rows) == len(values)
            learned.append(np.unique(values, return_counts=True))
            return self

        def predict(self, rows):
            return np.zeros(len(rows))

    monkeypatch.setattr(trained_model, "learner", lambda *_, **__: Learner())
    rows = np.random.default_rng(1).normal(size=(1200, 2))
    values = np.arange(1200.0)
    assert trained_model.accuracy(rows, values, rows, values, False) == 1 / 1200
    assert not learned  # nothing can be learned of classes seen once
    values[:600] = np.arange(600) % 150
    trained_model.accuracy(rows, values, rows, values, False)
    classes, counts = learned.pop()
    assert len(classes) == 50
    assert counts.min() == 4
    few = np.arange(1200.0) % 41
    trained_model.accuracy(rows, few, rows, few, False)
    assert sum(learned.pop()[1]) == 1200  # as before where classes are few


def test_files_with_nothing_in_common():
    with pytest.raises(InputError) as caught:
        dc.judge(pd.DataFrame({"x": [1, 2]}), INSIDE)
    assert caught.value.code == "no-shared-columns"


def test_missing_values_and_dates_are_compared():
    rows = INSIDE.assign(pay=INSIDE.pay.where(INSIDE.age > 30), day=pd.Timestamp("2020-01-01"))
    others = OUTSIDE.assign(pay=OUTSIDE.pay.where(OUTSIDE.age > 30), day=pd.Timestamp("2020-01-02"))
    found = synthetic_risk(dc.read(rows), dc.read(rows), dc.read(others), rng=Randomness.seeded(1))
    assert found["membership"].facts["AUC"] > 0.9


def test_synthesizers_stand_beside_masking_on_one_map():
    data = dc.read(INSIDE, roles=dict.fromkeys(INSIDE.columns, "quasi"))
    found = dc.frontier(
        data,
        [dc.CART(min_leaf=1), dc.CART(min_leaf=50), dc.RankSwapping(("age", "pay"), p=2.0)],
        rng=Randomness.seeded(1),
    )
    risks = {c.name: c.risk for c in found.candidates}
    assert risks["cart min_leaf=1"] > risks["cart min_leaf=50"]
    assert risks["rank-swapping p=2"] > risks["cart min_leaf=50"]
    assert found.policy("cart min_leaf=50")["releases"][0]["kind"] == "synthesize"
    assert "cart" in found.page()


@pytest.mark.parametrize(("made", "others"), [(0, 50), (50, 0)])
def test_empty_files_are_not_judged(made, others):
    rows = people(50, 1)
    with pytest.raises(InputError, match="holds no records"):
        dc.judge(rows[:made], rows, people(50, 2)[:others])
