"""Utility measures: nothing lost is 0, known losses have their value."""

import numpy as np
import pandas as pd
import pyarrow.csv
import pytest

import discreet as dc
from discreet.data.hierarchy import Hierarchy
from discreet.microdata.comparison import default_measures
from discreet.microdata.pair import Pair

RNG = dc.Randomness.seeded(1)


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(1)
    n = 400
    age = rng.integers(18, 90, n)
    frame = pd.DataFrame(
        {
            "age": age,
            "job": rng.choice(["cook", "pilot", "nurse"], n),
            "pay": age * 10 + rng.normal(0, 50, n),
            "ill": np.where(age > 50, "gout", "cold"),
        }
    )
    roles = {"age": "quasi", "job": "quasi", "pay": "confidential", "ill": "confidential"}
    return dc.read(frame, roles=roles, types={"age": "numeric"}, vouch=["age"])


def test_nothing_is_lost_by_doing_nothing(people):
    uses = [dc.Regression("pay", on=["age", "job"]), dc.ContingencyTables(by=["job", "ill"])]
    report = dc.utility(people, people, analyses=uses, rng=RNG)
    assert report.value == 0
    for found in report.comparisons:
        if found.measure != "propensity":
            assert found.value == pytest.approx(0, abs=1e-9), found.measure
    assert report["propensity"].facts["U"] > 0.75


def test_every_measure_notices_a_destroyed_file(people):
    wrecked = people.frame.copy()
    wrecked["age"] = 50
    wrecked["job"] = "cook"
    wrecked["pay"] = wrecked["pay"].sample(frac=1, random_state=1).to_numpy() * 3
    wrecked["ill"] = "cold"
    uses = [dc.Regression("pay", on=["age"])]
    report = dc.utility(people, wrecked, analyses=uses, rng=RNG)
    for found in report.comparisons:
        if found.measure != "class-metrics":  # equal values are no coarser ones
            assert found.value > 0.2, found.measure


def test_changes_are_counted(people):
    safe = dc.mask(people, [dc.Sampling(size=300), dc.TopCoding("age", 60)])
    facts = dc.utility(people, safe).comparisons[0].facts
    frame = people.frame
    assert facts["suppressed records"] == 100
    assert facts["modified values"] == facts["modified records"] > 0
    assert facts["changed by column"]["pay"] == 0
    assert frame["age"].gt(60).sum() >= facts["modified values"]


def test_mean_and_variance_are_reported_beside_each_other(people):
    safe = dc.mask(people, dc.AdditiveNoise("pay", 1.0), rng=RNG)
    facts = dc.utility(people, safe)["moments"].facts
    assert facts["pay"]["variance ratio"] == pytest.approx(2.0, abs=0.4)
    assert facts["age"]["variance ratio"] == 1.0
    assert facts["IL1s"] > 0.2
    assert facts["eigenvalues"] > 0


def test_loss_of_generalisation_is_that_of_arx():
    tree = Hierarchy.from_levels({"*": {"N": ["n1", "n2"], "S": ["s1", "s2"]}})
    frame = pd.DataFrame({"region": ["n1", "n2", "s1", "s2"], "sex": ["f", "f", "m", "m"]})
    people = dc.read(
        frame,
        roles={"region": "quasi", "sex": "quasi"},
        hierarchies={"region": tree, "sex": Hierarchy.flat(["f", "m"], total="*")},
    )
    safe = dc.mask(people, dc.GlobalRecoding("region", level=1))
    found = dc.utility(people, safe)["class-metrics"]
    # v = 2/4, scaled (1/2 - 1/4) / (1 - 1/4) = 1/3; geometric mean with the untouched sex.
    assert found.value == pytest.approx((4 / 3) ** 0.5 - 1)
    assert found.facts["discernibility"] == 8
    assert found.facts["average class size"] == 2


def test_arx_loss_on_adult(data_folder):
    names = ["sex", "age", "race", "marital-status", "education"]
    node = [0, 3, 0, 0, 2]
    trees = {
        name: Hierarchy.from_arx(data_folder / "adult" / f"adult_hierarchy_{name}.csv")
        for name in names
    }
    rows = pyarrow.csv.read_csv(
        data_folder / "adult" / "adult.csv", parse_options=pyarrow.csv.ParseOptions(delimiter=";")
    ).select(names)
    people = dc.read(rows, roles=dict.fromkeys(names, "quasi"), hierarchies=trees)
    steps = [dc.GlobalRecoding(n, level=lv) for n, lv in zip(names, node, strict=True) if lv]
    found = dc.utility(people, dc.mask(people, steps), measures=[dc.ClassMetrics()])
    expected = 1.0
    for name, level in zip(names, node, strict=True):
        tree = trees[name]
        row = {leaf: place for place, leaf in enumerate(tree.leaves)}
        column = tree.levels[:, level]
        covers = np.bincount(column, minlength=len(tree))[column]
        values = [covers[row[str(v)]] for v in rows[name].to_pylist()]
        width = len(tree.leaves)
        norm = (np.mean(values) / width - 1 / width) / (1 - 1 / width)
        expected *= 1 + norm
    assert found.comparisons[0].value == pytest.approx(expected ** (1 / len(names)) - 1, abs=1e-10)


def test_users_own_figures(people):
    safe = dc.mask(people, dc.TopCoding("pay", quantile=0.9))
    use = dc.Analysis("pay by job", lambda frame: frame.groupby("job")["pay"].mean())
    found = dc.utility(people, safe, measures=[use]).comparisons[0]
    assert found.measure == "analysis: pay by job"
    assert set(found.facts) == {"cook", "pilot", "nurse"}
    assert 0 < found.value < 0.2


def test_regressions_name_what_is_missing(people):
    with pytest.raises(dc.InputError, match="not in the release"):
        dc.utility(people, people, analyses=[dc.Regression("pay", on=["agee"])])
    with pytest.raises(dc.InputError, match="explains a number"):
        dc.utility(people, people, analyses=[dc.Regression("job", on=["age"])])


@pytest.mark.parametrize("model", ["trees", "logistic"])
def test_propensity_tells_noise_apart(people, model):
    far = people.frame.assign(pay=people.frame["pay"] + 5000)
    found = dc.Propensity(model=model).compare(Pair.of(people, far), rng=RNG)
    assert found.facts["U"] < 0.2
    assert found.facts["pMSE"] <= 0.25


def test_models_trained_on_the_release_are_compared_with_two_others(people):
    safe = dc.mask(people, dc.PRAM("ill", retention=0.5, invariant=False), rng=RNG)
    facts = dc.TrainedModel("ill").compare(Pair.of(people, safe), rng=RNG).facts
    assert facts["original"] > 0.95 > facts["release"]
    assert 0.4 < facts["most frequent value"] < 0.7


def test_defaults_cover_the_family():
    assert {m.name for m in default_measures()} >= {
        "changes", "class-metrics", "contingency-tables", "moments", "propensity", "trained-model",
        "value-loss",
    }  # fmt: skip


def test_what_was_missing_before_is_no_loss():
    frame = pd.DataFrame({"job": ["a", "b", None, "c"], "pay": [1.0, None, 2.0, 3.0]})
    people = dc.read(frame, roles={"job": "quasi", "pay": "confidential"})
    safe = dc.mask(people, [])
    assert safe.loss.value == 0
    assert safe.loss["class-metrics"].value == 0
    gone = people.frame.assign(job=None)
    assert dc.utility(people, gone, measures=[dc.ValueLoss()]).value == pytest.approx(0.375)


def test_an_empty_file_loses_nothing_and_can_be_written(tmp_path):
    empty = dc.read(pd.DataFrame({"pay": [1.0]}).iloc[:0], roles={"pay": "confidential"})
    safe = dc.mask(empty, [])
    assert safe.loss.value == 0
    assert (safe.write(tmp_path / "out") / "data.csv").exists()


def test_models_take_codes_as_codes_up_to_as_many_as_they_can(monkeypatch):
    from discreet.microdata.learning import one_thread
    from discreet.microdata.utilities import trained_model

    taken, inner = [], trained_model.learner
    monkeypatch.setattr(
        trained_model, "learner", lambda **how: taken.append(how["categories"]) or inner(**how)
    )
    rng = np.random.default_rng(1)
    rows = np.stack([rng.integers(0, size, 600) for size in (50, 50, 400)], axis=1).astype(float)
    rows[0, 2], odd = 399.0, rows[:, 0] % 2 == 1
    unseen = np.array([[400.0, 1.0, 400.0], [np.nan] * 3])
    with one_thread():
        for codes in ((True, False, True), ()):
            assert trained_model.accuracy(rows, odd, rows, odd, False, codes) > 0.9
            trained_model.accuracy(rows, odd, unseen, np.array([True, False]), False, codes)
    assert taken == [[0], [0], [], []]
