"""Risk measures against brute force, closed forms and simulation."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import nbinom

import discreet as dc
from discreet.microdata.pair import Pair
from discreet.microdata.risks.attribute_disclosure import AttributeDisclosure
from discreet.microdata.risks.individual_risk import IndividualRisk, benedetti_franconi
from discreet.microdata.risks.inference_risk import InferenceRisk
from discreet.microdata.risks.interval_disclosure import IntervalDisclosure
from discreet.microdata.risks.k_map_risk import KMapRisk
from discreet.microdata.risks.population_uniqueness import (
    pitman,
    slide_negative_binomial,
    zayatz,
)
from discreet.microdata.risks.re_identification import ReIdentification
from discreet.microdata.risks.suda2 import special_uniques

RNG = dc.Randomness.seeded(1)


def brute_minimal_uniques(rows):
    """Every minimal unique of every record, by the definition."""
    found = []
    axes = range(rows.shape[1])
    for record in range(len(rows)):
        mine = []
        for size in range(1, rows.shape[1] + 1):
            for chosen in itertools.combinations(axes, size):
                if (rows[record, list(chosen)] < 0).any():
                    continue
                same = (rows[:, list(chosen)] == rows[record, list(chosen)]).all(1).sum() == 1
                if same and not any(set(m) <= set(chosen) for m in mine):
                    mine.append(chosen)
        found.append(mine)
    return found


@given(
    n=st.integers(1, 12), axes=st.integers(1, 4), top=st.integers(1, 3), seed=st.integers(0, 2**32)
)
@settings(max_examples=60, deadline=None)
def test_suda2_finds_all_minimal_uniques(n, axes, top, seed):
    rows = np.random.default_rng(seed).integers(-1, top, size=(n, axes))
    found = special_uniques(list(rows.T), n, axes, 0.1)
    expected = brute_minimal_uniques(rows)
    scores = [sum(math.factorial(axes - len(m)) for m in mine) for mine in expected]
    assert found.score.tolist() == scores
    sizes = [sum(len(m) == s for mine in expected for m in mine) for s in range(axes + 1)]
    assert found.by_size.tolist() == sizes


# Statistical disclosure control for microdata: a practice guide for sdcMicro (World Bank), table
# "Illustrating the calculation of SUDA and DIS-SUDA scores": residence, gender, education, labour.
GUIDE = [
    ("urban", "female", "secondary incomplete", "employed", 0, 0.0),
    ("urban", "female", "secondary incomplete", "employed", 0, 0.0),
    ("urban", "female", "primary incomplete", "non-LF", 6, 0.0051),
    ("urban", "male", "secondary complete", "employed", 0, 0.0),
    ("rural", "female", "secondary complete", "unemployed", 12, 0.0107),
    ("urban", "male", "secondary complete", "employed", 0, 0.0),
    ("urban", "female", "primary complete", "non-LF", 6, 0.0051),
    ("urban", "male", "post-secondary", "unemployed", 10, 0.0088),
    ("urban", "female", "secondary incomplete", "non-LF", 0, 0.0),
    ("urban", "female", "secondary incomplete", "non-LF", 0, 0.0),
]


def test_suda2_scores_are_those_of_the_guide_to_sdcmicro():
    keys = [np.unique([row[j] for row in GUIDE], return_inverse=True)[1] for j in range(4)]
    found = special_uniques(keys, len(GUIDE), 3, 0.01)
    assert found.score.tolist() == [row[4] for row in GUIDE]
    # The guide's DIS-SUDA column was computed with the scores of the first implementation.
    shared = special_uniques(keys, len(GUIDE), 3, 0.01, scores="ihsn").dis_score
    assert shared.round(4).tolist() == [row[5] for row in GUIDE]


def test_suda2_contributions_are_those_of_sdcmicro_s_own_test():
    rows = pd.DataFrame({"a": [2, 1, 1], "b": [0, 3, 0], "c": [0, 6, 0]})
    found = dc.SUDA2().measure(Pair.of(rows, keys=["a", "b", "c"]), rng=RNG)
    assert found.facts["share of the score by key"] == {"a": 0.5, "b": 0.375, "c": 0.375}


def people_and_sample():
    everyone = pd.DataFrame(
        {"age": [20] * 6 + [30] * 4 + [40] * 2 + [50], "sex": [*list("fm" * 6), "f"]}
    )
    return everyone, everyone.iloc[[0, 1, 6, 10, 12]]


def test_a_population_file_says_how_many_people_fit(tmp_path):
    everyone, sample = people_and_sample()
    path = tmp_path / "everyone.csv"
    everyone.to_csv(path, index=False)
    for given_as in (everyone, dc.read(everyone), str(path)):
        report = dc.risk(sample, keys=["age", "sex"], population=given_as)
        # 20 f: 3 people, 20 m: 3, 30 f: 2, 40 f: 1, 50 f: 1
        assert report["k-map-risk"].facts["fewest people"] == 1.0
        assert report["re-identification"].facts["journalist, highest"] == 1.0
        assert report["re-identification"].facts["journalist, mean"] == pytest.approx(
            (1 / 3 + 1 / 3 + 1 / 2 + 1 + 1) / 5
        )


def test_the_population_is_recoded_as_the_release_was():
    everyone, sample = people_and_sample()
    released = sample.assign(age=["young", "young", "young", "old", "old"])
    pair = Pair.of(sample, released, keys=["age", "sex"], population=everyone)
    # young f: 3 + 2, young m: 3 + 2, old f: 1 + 1
    assert pair.people.tolist() == [5.0, 5.0, 5.0, 2.0, 2.0]


def test_a_population_cannot_follow_changes_record_by_record():
    everyone, sample = people_and_sample()
    released = sample.assign(age=[20, 30, 30, 40, 50])
    pair = Pair.of(sample, released, keys=["age"], population=everyone)
    with pytest.raises(dc.InputError) as caught:
        KMapRisk(3).measure(pair, rng=RNG)
    assert caught.value.code == "unlike-population"


def test_suda2_stops_at_the_size_asked_for():
    rows = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    assert special_uniques(list(rows.T), 4, 1, 0.1).by_size.sum() == 0
    assert special_uniques(list(rows.T), 4, 2, 0.1).by_size.tolist() == [0, 0, 4]


def test_dis_scores_average_to_dis_over_the_uniques():
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 6, size=(300, 3))
    found = special_uniques(list(rows.T), 300, 3, 0.05)
    unique = found.score > 0
    assert 0 < found.dis < 1
    assert found.dis_score[unique].mean() <= found.dis + 1e-9
    assert (found.dis_score[~unique] == 0).all()


@given(f=st.integers(1, 8), people=st.floats(1.0, 500))
@settings(max_examples=60, deadline=None)
def test_individual_risk_is_the_mean_of_one_over_the_class(f, people):
    total = f * people
    share = f / total
    sizes = np.arange(f, f + 200_000)
    odds = nbinom.pmf(sizes - f, f, share)
    expected = float((odds / sizes).sum())
    found = benedetti_franconi(np.array([float(f)]), np.array([total]))[0]
    assert found == pytest.approx(expected, rel=1e-6)


def test_individual_risk_of_a_census_is_one_over_the_class():
    frame = pd.DataFrame({"age": [1, 1, 2]})
    found = IndividualRisk().measure(Pair.of(frame, keys=["age"], population=3), rng=RNG)
    assert found.records.tolist() == pytest.approx([0.5, 0.5, 1.0])
    assert found.facts["expected re-identifications"] == pytest.approx(2.0)


def test_weights_of_the_schema_are_used():
    people = dc.read(
        pd.DataFrame({"age": [1, 1, 2], "w": [10.0, 20.0, 5.0]}), roles={"age": "quasi"}, weight="w"
    )
    pair = Pair.of(people)
    assert KMapRisk(10).measure(pair, rng=RNG).value == pytest.approx(1 / 3)
    journalist = ReIdentification().measure(pair, rng=RNG).facts["journalist, highest"]
    assert journalist == pytest.approx(0.2)


def test_population_uniqueness_is_near_the_truth():
    rng = np.random.default_rng(7)
    population = np.minimum(rng.zipf(1.6, 60_000), 10**9)
    truth = (np.unique(population, return_counts=True)[1] == 1).sum()
    sample = rng.choice(population, 12_000, replace=False)
    counts = np.bincount(np.unique(sample, return_counts=True)[1]).astype(float)
    for estimate in (pitman, slide_negative_binomial, zayatz):
        assert estimate(counts, 60_000) == pytest.approx(truth, rel=0.6), estimate.__name__


def test_slide_negative_binomial_recovers_its_own_model():
    rng = np.random.default_rng(7)
    sizes = 1 + rng.negative_binomial(0.8, 0.2, 40_000)
    drawn = rng.binomial(sizes, 0.3)
    counts = np.bincount(drawn).astype(float)
    counts[0] = 0
    assert slide_negative_binomial(counts, sizes.sum()) == pytest.approx(
        (sizes == 1).sum(), rel=0.1
    )


def test_uniqueness_of_files_without_uniques_is_nothing():
    counts = np.array([0.0, 0.0, 5.0])
    assert zayatz(counts, 100) == pitman(counts, 100) == slide_negative_binomial(counts, 100) == 0.0


def test_attribute_disclosure_counts_homogeneous_classes_and_narrow_ranges():
    people = dc.read(
        pd.DataFrame({"age": [1, 1, 2, 2], "ill": ["a", "a", "a", "b"], "pay": [0.0, 100, 50, 51]}),
        roles={"age": "quasi", "ill": "confidential", "pay": "confidential"},
    )
    found = AttributeDisclosure().measure(Pair.of(people), rng=RNG)
    assert found.value == 1.0
    assert found.facts["ill"]["disclosed"] == 0.5
    assert found.facts["ill"]["mean confidence"] == 0.75
    assert found.facts["pay"]["disclosed"] == 0.5


@pytest.mark.parametrize("by", ["deviation", "rank"])
def test_intervals_hold_what_did_not_move(by):
    raw = pd.DataFrame({"pay": np.arange(100.0)})
    safe = raw.copy()
    safe.loc[:49, "pay"] = 1000.0
    found = IntervalDisclosure(by=by).measure(Pair.of(raw, safe, keys=["pay"]), rng=RNG)
    assert found.value == 0.5


def test_inference_finds_nothing_where_there_is_nothing():
    rng = np.random.default_rng(1)
    people = dc.read(
        pd.DataFrame({"age": rng.integers(18, 90, 400), "ill": rng.choice(["a", "b"], 400)}),
        roles={"age": "quasi", "ill": "confidential"},
    )
    raw = InferenceRisk().measure(Pair.of(people), rng=RNG).value
    masked = dc.mask(people, dc.PRAM("ill", retention=0.5, invariant=False), rng=RNG)
    assert InferenceRisk().measure(Pair.of(people, masked), rng=RNG).value < raw


def test_every_finding_says_who_the_intruder_is():
    people = dc.read(
        pd.DataFrame({"age": [1, 2, 3] * 10, "pay": np.arange(30.0)}),
        roles={"age": "quasi", "pay": "confidential"},
    )
    report = dc.risk(
        people, dc.mask(people, dc.RankSwapping("pay", p=20)), population=1000, rng=RNG
    )
    assert len(report.findings) == 12
    for finding in report.findings:
        assert len(finding.scenario) > 50
        assert 0 <= finding.value <= 1
        assert finding.records is None or len(finding.records) == 30
    assert "records" not in report.findings[0].to_dict()  # a record's own risk stays in the house
    with pytest.raises(dc.InputError, match="'suda2'"):
        report["suda"]


def test_the_report_says_what_it_skips_and_why():
    people = dc.read(pd.DataFrame({"age": [20, 20, 30]}), roles={"age": "quasi"})
    report = dc.risk(people)
    assert report.skipped["individual-risk"] == "sampling weights or the size of the population"
    assert "confidential" in report.skipped["attribute-disclosure"]
    measured = {finding.measure.partition(":")[0] for finding in report.findings}
    assert not measured & set(report.skipped)
    assert "individual-risk" not in dc.risk(people, population=100).skipped
    _, lines = report.not_measured()
    assert len(lines) == len(report.skipped)


def test_six_keys_of_many_values_are_measured_with_progress():
    rng = np.random.default_rng(2)
    size = 1500
    frame = pd.DataFrame(
        {f"key{j}": rng.integers(0, 900, size).astype(str) for j in range(6)}
        | {"pay": rng.normal(size=size)}
    )
    roles = {**{f"key{j}": "quasi" for j in range(6)}, "pay": "confidential"}
    seen = []
    report = dc.risk(
        dc.read(frame, roles=roles), rng=RNG, progress=lambda _, done, total: seen.append(done)
    )
    assert report["record-linkage: one-to-one"].value == 1.0
    assert seen == sorted(seen)
    assert len(seen) > len(report.findings)
