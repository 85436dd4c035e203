"""Methods: properties of their output, missing values, options, refusals."""

import math
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dc
from tests.microdata import brute_force as brute

REGION = dc.Hierarchy.from_levels({"N": ["N1", "N2"], "S": ["S1", "S2"]})
AGE = dc.Hierarchy.from_intervals(width=(10, 20), low=0, high=100, values=range(100))


def people(size=60, seed=1, *, missing=False, library=pd.DataFrame):
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 40, size).tolist()
    region = rng.choice(["N1", "N2", "S1", "S2"], size).tolist()
    if missing:
        age[::7] = [None] * len(age[::7])
        region[::9] = [None] * len(region[::9])
    columns = {
        "name": [f"person {i}" for i in range(size)],
        "age": age,
        "region": region,
        "ill": rng.choice(["flu", "asthma", "none"], size).tolist(),
        "other": rng.random(size).round(3).tolist(),
    }
    return library(columns) if library is not pa.table else pa.table(columns)


def dataset(frame, **changes):
    return dc.read(
        frame,
        roles={
            "name": "identifier",
            "age": "quasi",
            "region": "quasi",
            "ill": "confidential",
            "other": "other",
        },
        vouch=["other"],
        hierarchies={"age": AGE, "region": REGION},
        **changes,
    )


def smallest(frame, columns=("age", "region")):
    return frame.groupby(list(columns), dropna=False).size().min()


METHODS = [
    dc.Generalization(suppression=0.1),
    dc.Mondrian(),
    dc.Mondrian(relaxed=True),
    dc.LocalSuppression(missing="category"),
    dc.MicroaggregationToK(),
]


@pytest.mark.parametrize("method", METHODS, ids=lambda m: f"{m.name}-{getattr(m, 'relaxed', '')}")
@pytest.mark.parametrize("missing", [False, True], ids=["whole", "missing"])
def test_every_method_gives_k_anonymity_and_leaves_the_rest_alone(method, missing):
    frame = people(missing=missing)
    safe = dc.anonymize(dataset(frame), dc.KAnonymity(4), method=method)
    out = safe.frame
    assert smallest(out) >= 4
    assert "name" not in out.columns
    assert len(out) == len(frame) - safe.suppressed
    assert set(zip(out["ill"], out["other"], strict=True)) <= set(
        zip(frame["ill"], frame["other"], strict=True)
    )
    assert safe.safe


@pytest.mark.parametrize(
    "library", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"]
)
def test_frames_come_back_in_the_type_that_went_in(library):
    frame = people(library=library)
    safe = dc.anonymize(dataset(frame), dc.KAnonymity(3))
    assert type(safe.frame) is type(frame)


def test_kept_records_are_starred_and_say_nothing():
    frame = people(30, seed=3)
    frame.loc[:2, "age"] = [70, 80, 90]
    method = dc.Generalization(suppression=0.3, highest={"age": 1, "region": 1}, keep=True)
    safe = dc.anonymize(dataset(frame), [dc.KAnonymity(5), dc.LDiversity("ill", 2)], method=method)
    assert safe.suppressed > 0
    out = safe.frame
    assert len(out) == len(frame)
    starred = out[(out["age"] == "*") & (out["region"] == "*")]
    assert len(starred) == safe.suppressed
    assert starred["ill"].isna().all()
    shown = out.drop(starred.index)
    assert smallest(shown) >= 5
    assert (shown["other"] == frame["other"][shown.index]).all()


def test_a_missing_value_stays_missing_below_the_root():
    frame = pd.DataFrame({"region": ["N1", "N2", None, None, "S1", "S2"]})
    data = dc.read(frame, roles={"region": "quasi"}, hierarchies={"region": REGION})
    out = dc.anonymize(data, dc.KAnonymity(2)).frame
    assert out["region"].isna().sum() == 2
    assert set(out["region"].dropna()) == {"N", "S"}


def test_not_a_number_is_a_missing_value_for_suppression_too():
    frame = pd.DataFrame({"age": [30.0, 30.0, np.nan, 31.0, 31.0], "region": ["N1"] * 5})
    data = dc.read(
        frame, roles={"age": "quasi", "region": "quasi"}, hierarchies={"age": AGE, "region": REGION}
    )
    method = dc.Generalization(suppression=0.2, highest={"age": 0, "region": 0})
    safe = dc.anonymize(data, dc.KAnonymity(2), method=method)
    assert safe.suppressed == 1
    assert len(safe.frame) == 4


def test_numbers_below_intervals_are_level_zero():
    tree = dc.Hierarchy.from_intervals([0, 25, 30, 40], open_low=False)
    data = dc.read(
        pd.DataFrame({"age": [21, 22, 26, 27]}), roles={"age": "quasi"}, hierarchies={"age": tree}
    )
    safe = dc.anonymize(data, dc.KAnonymity(2))
    assert safe.levels == {"age": 1}
    assert safe.frame["age"].tolist() == ["0-24", "0-24", "25-29", "25-29"]
    assert dc.anonymize(data, dc.KAnonymity(1)).levels == {"age": 0}


def test_levels_can_be_bounded():
    safe = dc.anonymize(
        dataset(people()), dc.KAnonymity(3), method=dc.Generalization(lowest={"age": 2})
    )
    assert safe.levels["age"] >= 2


# -- local suppression -----------------------------------------------------------------------------
def matches(rows):
    """Count matching records by comparing all pairs, a missing key matching everything."""
    return [
        sum(all(a == b or a is None or b is None for a, b in zip(r, s, strict=True)) for s in rows)
        for r in rows
    ]


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "c", None]),
            st.sampled_from(["x", "y"]),
            st.sampled_from(["1", "2", "3"]),
        ),
        min_size=4,
        max_size=25,
    ),
    st.integers(2, 4),
    st.booleans(),
)
def test_wildcard_suppression_by_comparing_all_pairs(rows, k, spare):
    data = dc.read(
        pa.table({c: [r[j] for r in rows] for j, c in enumerate("pqr")}),
        roles=dict.fromkeys("pqr", "quasi"),
    )
    safe = dc.anonymize(data, dc.KAnonymity(k), method=dc.LocalSuppression(spare=spare))
    out = [tuple(r.values()) for r in safe.frame.to_pylist()]
    assert min(matches(out)) >= k
    removed = sum(
        a is not None and b is None
        for r, s in zip(rows, out, strict=True)
        for a, b in zip(r, s, strict=True)
    )
    assert removed == safe.score
    assert all(
        b is None or a == b
        for r, s in zip(rows, out, strict=True)
        for a, b in zip(r, s, strict=True)
    )
    # A record that matched enough from the start keeps everything.
    for before, own, count in zip(rows, out, matches(rows), strict=True):
        assert count < k or before == own


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("abcd"), st.sampled_from("xyz"), st.sampled_from("123")),
        min_size=4,
        max_size=25,
    ),
    st.integers(2, 4),
)
def test_category_suppression_leaves_no_small_class(rows, k):
    data = dc.read(
        pa.table({c: [r[j] for r in rows] for j, c in enumerate("pqr")}),
        roles=dict.fromkeys("pqr", "quasi"),
    )
    safe = dc.anonymize(data, dc.KAnonymity(k), method=dc.LocalSuppression(missing="category"))
    assert min(len(c) for c in brute.classes(safe.frame.to_pylist(), list("pqr"))) >= k


def test_local_suppression_on_adult(adult):
    """At most the 3,101 cells that sdcMicro needs for the first 10,000 records and five keys."""
    keys = ["sex", "age", "race", "marital-status", "education"]
    data = dc.read(adult.frame[keys].iloc[:10_000], roles=dict.fromkeys(keys, "quasi"))
    safe = dc.anonymize(data, dc.KAnonymity(3), method=dc.LocalSuppression())
    assert safe.score <= 3101
    assert safe.frame.isna().sum().sum() == safe.score
    assert "as a value of its own" in safe.outcome.notes[0]


def test_importance_and_costs_decide_what_goes():
    frame = people(80, seed=5)
    by_default = dc.anonymize(dataset(frame), dc.KAnonymity(5), method=dc.LocalSuppression())
    keep_age = dc.anonymize(
        dataset(frame), dc.KAnonymity(5), method=dc.LocalSuppression(importance=("age", "region"))
    )
    costly = dc.anonymize(
        dataset(frame), dc.KAnonymity(5), method=dc.LocalSuppression(costs={"age": 50.0})
    )
    assert keep_age.frame["age"].isna().sum() < by_default.frame["age"].isna().sum()
    assert costly.frame["age"].isna().sum() < by_default.frame["age"].isna().sum()
    assert costly.loss.metric == "cost"


def test_several_key_sets():
    frame = people(80, seed=6)
    frame["sex"] = ["f", "m"] * 40
    data = dc.read(
        frame.drop(columns="name"),
        roles={"age": "quasi", "region": "quasi", "sex": "quasi", "ill": "other", "other": "other"},
        vouch=["other"],
    )
    sets = (("age", "sex"), ("region", "sex"))
    for missing in ("wildcard", "category"):
        safe = dc.anonymize(
            data, dc.KAnonymity(4), method=dc.LocalSuppression(missing=missing, key_sets=sets)
        )
        assert len(safe.checks) == 2
        assert " alone; " in safe.verdict
        assert "every quasi-identifier" not in safe.verdict
        for keys in sets:
            rows = [
                tuple(r)
                for r in safe.frame[list(keys)]
                .astype(object)
                .where(safe.frame[list(keys)].notna(), None)
                .to_numpy()
            ]
            if missing == "wildcard":
                assert min(matches(rows)) >= 4
            else:
                assert smallest(safe.frame, keys) >= 4


@pytest.mark.parametrize(
    "method", [dc.LocalSuppression(missing="category"), dc.MicroaggregationToK(), dc.Mondrian()]
)
@pytest.mark.parametrize(
    "models",
    [
        [dc.KAnonymity(3), dc.LDiversity("ill", 2)],
        [dc.LDiversity("ill", 3)],
        [dc.KAnonymity(2), dc.LDiversity("ill", 1.8, kind="entropy")],
        [dc.KAnonymity(2), dc.TCloseness("ill", 0.35)],
        [dc.BetaLikeness("ill", 2.0)],
        [dc.DeltaDisclosure("ill", 1.5)],
    ],
    ids=lambda models: "+".join(m.name for m in models),
)
def test_every_model_is_enforced_by_every_method(method, models):
    frame = people(300, seed=11)
    frame.loc[frame.index[:9], "age"] = None
    data = dataset(frame)
    safe = dc.anonymize(data, models, method=method)
    assert safe.safe
    for model in models:
        assert model.check(safe, reference=data).holds
    assert safe.suppressed < 100


# -- Mondrian --------------------------------------------------------------------------------------
def test_mondrian_names_intervals_groups_and_sets():
    frame = pd.DataFrame(
        {"age": [20, 21, 60, 61], "region": ["N1", "N2", "S1", "S1"], "sex": ["f", "m", "f", "m"]}
    )
    data = dc.read(
        frame, roles=dict.fromkeys(frame.columns, "quasi"), hierarchies={"region": REGION}
    )
    out = dc.anonymize(data, dc.KAnonymity(2), method=dc.Mondrian()).frame
    assert out["age"].tolist() == ["<50"] * 2 + ["50+"] * 2
    assert out["region"].tolist() == ["N", "N", "S1", "S1"]
    assert out["sex"].tolist() == ["{f, m}"] * 4


def test_mondrian_intervals_hold_the_values():
    frame = people(500, seed=7)
    data = dc.read(
        frame.drop(columns="name"),
        roles={"age": "quasi", "region": "quasi", "ill": "confidential", "other": "other"},
        vouch=["other"],
    )
    safe = dc.anonymize(data, [dc.KAnonymity(4), dc.LDiversity("ill", 2)], method=dc.Mondrian())
    for before, after in zip(frame["age"], safe.frame["age"], strict=True):
        low, high = ends(after)
        assert low <= before < high
    assert safe.frame.groupby(["age", "region"])["ill"].nunique().min() >= 2
    assert safe.work["classes"] > 20


def ends(text, number=float):
    """Return the ends of an interval as it is published, the upper one outside."""
    if text == "any":
        return -math.inf, math.inf
    if text.startswith("<"):
        return -math.inf, number(text[1:])
    if text.endswith("+"):
        return number(text[:-1]), math.inf
    if text.startswith("["):
        low, high = text[1:-1].split(", ")
        return number(low), number(high) + (text[-1] == "]") * 1e-9
    low, _, high = text.partition("-")
    return number(low), number(high or low) + 1


@pytest.mark.parametrize("relaxed", [False, True])
def test_mondrian_publishes_no_value_of_anybody_as_an_end(relaxed):
    rng = np.random.default_rng(4)
    pay = np.round(rng.lognormal(10, 1, 600), 2)
    weight = np.round(rng.normal(70, 15, 600), 1)
    frame = pd.DataFrame({"pay": pay, "weight": weight, "town": rng.choice(list("abc"), 600)})
    data = dc.read(frame, roles=dict.fromkeys(frame.columns, "quasi"))
    out = dc.anonymize(data, dc.KAnonymity(5), method=dc.Mondrian(relaxed=relaxed)).frame
    assert out["pay"].nunique() > 10
    for name, values in (("pay", pay), ("weight", weight)):
        published = {end for text in out[name] for end in ends(text) if math.isfinite(end)}
        # Weights in tenths of a kilogram lie on the grid itself; the least and the largest do not.
        assert not published & (set(pay) if name == "pay" else {values.min(), values.max()})
        for before, after in zip(values, out[name], strict=True):
            low, high = ends(after)
            assert low <= before < high
    assert smallest(out[["pay", "weight", "town"]], ["pay", "weight", "town"]) >= 5


def test_mondrian_keeps_to_declared_ends():
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"age": rng.integers(1, 95, 300), "pay": rng.lognormal(8, 1, 300)})
    data = dc.read(
        frame,
        roles={"age": "quasi", "pay": "quasi"},
        domains={"age": {"cuts": [0, 18, 40, 65, 120]}},
        bounds={"pay": (0, 1_000_000)},
    )
    out = dc.anonymize(data, dc.KAnonymity(5), method=dc.Mondrian()).frame
    assert {end for text in out["age"] for end in ends(text)} <= {0, 18, 40, 65, 121}
    lows, highs = zip(*map(ends, out["pay"]), strict=True)
    assert (min(lows), round(max(highs))) == (0, 1_000_000)
    narrow = data.replace(bounds={"pay": (0, 10)})
    error = refused(narrow, dc.KAnonymity(5), method=dc.Mondrian())
    assert (error.code, error.column) == ("outside-domain", "pay")


@pytest.mark.parametrize("kind", ["datetime64[s]", "object"])
@pytest.mark.parametrize("years", [1, 60])
def test_mondrian_publishes_dates_as_dates(kind, years):
    rng = np.random.default_rng(6)
    days = pd.Timestamp("1940-03-07") + pd.to_timedelta(rng.integers(0, 365 * years, 400), unit="D")
    born = pd.Series(days.date) if kind == "object" else pd.Series(days).astype(kind)
    data = dc.read(pd.DataFrame({"born": born}), roles={"born": "quasi"})
    safe = dc.anonymize(data, dc.KAnonymity(5), method=dc.Mondrian())
    assert safe.work["classes"] > 10
    for day, text in zip(days, safe.frame["born"], strict=True):
        words = re.findall(r"\d{4}-\d\d-\d\d", text)
        if text.startswith("before"):
            assert day < pd.Timestamp(words[0])
        elif text.startswith("from"):
            assert day >= pd.Timestamp(words[0])
        elif len(words) == 1:
            assert day == pd.Timestamp(words[0])
        else:
            assert pd.Timestamp(words[0]) <= day < pd.Timestamp(words[1])
        if years == 60:  # told by month, so no end is a day of somebody
            assert all(word.endswith("-01") for word in words)


@pytest.mark.parametrize("kind", ["datetime64[s]", "object"])
def test_microaggregation_publishes_dates_as_dates(kind):
    days = pd.to_datetime(["1950-01-01", "1950-01-03", "1990-06-01", "1990-06-11", None])
    born = pd.Series(days) if kind != "object" else pd.Series(days.date)
    data = dc.read(
        pd.DataFrame({"born": born, "x": [1, 1, 1, 1, 1]}), roles={"born": "quasi", "x": "other"}
    )
    out = dc.mask(data, [dc.Microaggregation("born", k=2)]).frame["born"]
    found = [None if pd.isna(day) else str(day)[:10] for day in out]
    assert found == ["1950-01-02"] * 2 + ["1990-06-06"] * 2 + [None]


# -- refusals --------------------------------------------------------------------------------------
def refused(data, models, kind=dc.InputError, **options):
    with pytest.raises(kind) as caught:
        dc.anonymize(data, models, **options)
    return caught.value


def test_k_larger_than_the_file():
    for method in METHODS:
        error = refused(dataset(people(10)), dc.KAnonymity(11), dc.InfeasibleError, method=method)
        assert error.facts["feasible"] == 10
        assert "10" in error.hint


def test_a_quasi_identifier_without_hierarchy():
    data = dc.read(people()[["age"]], roles={"age": "quasi"})
    error = refused(data, dc.KAnonymity(2))
    assert (error.code, error.column) == ("missing-hierarchy", "age")


def test_a_suppression_limit_that_cannot_be_met_says_what_can():
    data = dataset(people(30, seed=3))
    bounds = {"age": 0, "region": 0}
    error = refused(
        data,
        dc.KAnonymity(3),
        dc.InfeasibleError,
        method=dc.Generalization(suppression=0.01, highest=bounds),
    )
    assert error.code == "suppression-limit"
    share = error.facts["feasible_share"]
    safe = dc.anonymize(
        data, dc.KAnonymity(3), method=dc.Generalization(suppression=share, highest=bounds)
    )
    assert safe.suppressed == error.facts["feasible"]


def test_a_confidential_column_among_the_keys():
    data = dataset(people())
    assert refused(data, dc.LDiversity("age", 2)).code == "confidential-among-keys"
    assert refused(data, dc.KAnonymity(2), quasi=["ill"]).code == "confidential-among-keys"
    assert refused(data, dc.KAnonymity(2), quasi=["name"]).code == "contradicting-roles"


def test_text_in_a_numeric_column():
    frame = pd.DataFrame({"age": ["30", "many", "31", "31"]})
    tree = dc.Hierarchy.from_intervals([0, 18, 65])
    data = dc.read(frame, roles={"age": "quasi"}, hierarchies={"age": tree})
    assert refused(data, dc.KAnonymity(2)).code == "not-numeric"


def test_values_outside_the_hierarchy_and_models_outside_the_method():
    data = dc.read(
        pd.DataFrame({"region": ["N1", "X9"]}),
        roles={"region": "quasi"},
        hierarchies={"region": REGION},
    )
    error = refused(data, dc.KAnonymity(2))
    assert error.code == "hierarchy-not-covering"
    assert "X9" in error.message
    whole = dataset(people())
    error = refused(whole, dc.LDiversity("ill", 2), method=dc.LocalSuppression())
    assert (error.code, "category" in error.hint) == ("model-not-supported", True)
    for method in (dc.LocalSuppression(), dc.Mondrian(), dc.MicroaggregationToK()):
        model = dc.KMap(2, population=people())
        assert refused(whole, model, method=method).code == "model-not-supported"
    assert refused(whole, dc.LDiversity("ill", 9)).code == "too-few-values"
    assert refused(whole, []).code == "missing-model"
    assert refused(dc.read(pd.DataFrame({"x": [1]}), roles={"x": "other"}), dc.KAnonymity(1)).code


def test_nothing_is_written_when_it_is_refused(tmp_path):
    with pytest.raises(dc.InfeasibleError):
        dc.anonymize(dataset(people(5)), dc.KAnonymity(9)).write(tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_ends_of_ages_and_days_are_those_of_a_public_grid():
    """The ends were the least and largest age of the class: values that people have."""
    rng = np.random.default_rng(5)
    first = pd.Timestamp("2024-01-03")
    rows = pd.DataFrame(
        {
            "age": rng.integers(18, 91, 400),
            "seen": (first + pd.to_timedelta(rng.integers(0, 200, 400), "D")).date,
            "children": rng.integers(0, 6, 400),
        }
    )
    people = dc.read(rows, roles=dict.fromkeys(rows.columns, "quasi"))
    for relaxed in (False, True):
        safe = dc.anonymize(people, dc.KAnonymity(5), method=dc.Mondrian(relaxed=relaxed)).frame
        lows = [int(text.split("-")[0]) for text in safe["age"] if "-" in text]
        highs = [int(text.split("-")[1]) for text in safe["age"] if "-" in text]
        assert lows
        assert all(low % 5 == 0 for low in lows)
        assert all(high % 5 == 4 for high in highs)
        days = {word.strip("[)") for text in safe["seen"] for word in text.split(", ")}
        days = {word.removeprefix("before ").removeprefix("from ") for word in days} - {"any"}
        assert days
        assert all(pd.Timestamp(d).day_of_week == 0 or pd.Timestamp(d).day == 1 for d in days)
