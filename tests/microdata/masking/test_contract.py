"""Promises that every masking method keeps, present or future."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import discreet as dc
from discreet.data.hierarchy import Hierarchy
from discreet.registry import members

SPECIAL = {
    "sampling": {"fraction": 0.5},
    "global-recoding": {"columns": ("region",), "level": 1},
    "top-coding": {"columns": ("pay",), "value": 50.0},
    "bottom-coding": {"columns": ("pay",), "quantile": 0.1},
    "dp-noise": {"columns": ("pay",), "bounds": {"pay": (0, 100)}},
    "record-swapping": {"columns": ("region",), "household": "home", "keys": ("job",)},
    "pram": {"columns": ("job",)},
    "pseudonyms": {"columns": ("name",)},
    "local-suppression": {"columns": ("region", "job")},
}
NUMERIC = {"columns": ("pay",)}


def made(name):
    """A member with parameters that fit the people below."""
    return members("masking")[name](**SPECIAL.get(name, NUMERIC))


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(1)
    n = 120
    pay = rng.normal(50, 10, n).round(2)
    pay[::17] = np.nan
    region = pd.Series(rng.choice(["n1", "n2", "s1", "s2"], n), dtype=object)
    region[::23] = None
    return pd.DataFrame(
        {
            "name": [f"person {i}" for i in range(n)],
            "home": np.arange(n) // 3,
            "region": region,
            "job": rng.choice(["cook", "pilot", "nurse"], n),
            "age": rng.integers(18, 90, n),
            "pay": pay,
        }
    )


@pytest.fixture(scope="module")
def people(frame):
    tree = Hierarchy.from_levels({"All": {"N": ["n1", "n2"], "S": ["s1", "s2"]}})
    return dc.read(
        frame,
        roles={
            "name": "identifier",
            "home": "other",
            "region": "quasi",
            "job": "quasi",
            "age": "quasi",
            "pay": "confidential",
        },
        types={"home": "nominal", "age": "numeric", "pay": "numeric"},
        hierarchies={"region": tree},
    )


OURS = [
    name
    for name in members("masking")
    if name in SPECIAL or "columns" in {p.name for p in members("masking")[name].parameters()}
]


@pytest.mark.parametrize("name", OURS)
def test_only_what_it_changes_is_changed(people, frame, name):
    method = made(name)
    masked = method.mask(people, rng=dc.Randomness.seeded(1))
    rows, original = masked.numbered().arrow([*people.columns]), people.arrow()
    if method.drops_records:
        assert 0 < len(rows) < len(frame)
        assert set(rows["name"].to_pylist()) <= set(frame["name"])
        return
    for column in people.columns:
        if column not in method.changes:
            assert rows[column].equals(original[column].cast(rows[column].type))


@pytest.mark.parametrize("name", OURS)
def test_missing_values_stay_missing(people, frame, name):
    method = made(name)
    if method.drops_records or name in ("record-swapping", "data-swapping", "local-suppression"):
        pytest.skip("records or missing values travel, as documented")
    masked = method.mask(people, rng=dc.Randomness.seeded(1)).numbered()
    for column in method.changes:
        found = masked.arrow([column]).column(0).is_null().to_numpy()
        assert np.array_equal(found, frame[column].isna().to_numpy())


@pytest.mark.parametrize("name", OURS)
def test_it_says_what_it_did_and_how_to_grow(name):
    method = made(name)
    assert method.settings()["name"] == name
    assert method.reference
    further = method.stronger()
    assert further is None or (type(further) is type(method) and further != method)


@pytest.mark.parametrize("name", OURS)
def test_an_unknown_column_is_named_before_anything_is_done(people, name):
    if "columns" not in {p.name for p in members("masking")[name].parameters()}:
        pytest.skip("takes no columns")
    wrong = {**SPECIAL.get(name, NUMERIC), "columns": ("payy",)}
    if name == "dp-noise":
        wrong["bounds"] = {"payy": (0, 1)}
    with pytest.raises(dc.InputError, match="payy") as caught:
        dc.mask(people, members("masking")[name](**wrong))
    assert caught.value.code == "unknown-column"
    assert "pay" in caught.value.hint


@pytest.mark.parametrize("name", OURS)
def test_the_same_seed_gives_the_same_result(people, name):
    if name == "dp-noise":
        pytest.skip("OpenDP has its own generator")
    one, two = (
        made(name).mask(people, rng=dc.Randomness.seeded(5)).arrow().to_pandas() for _ in range(2)
    )
    pd.testing.assert_frame_equal(one, two)


def test_text_in_a_numeric_method_is_refused(people):
    for method in (dc.Rounding("job"), dc.AdditiveNoise("job"), dc.TopCoding("job", 3)):
        with pytest.raises(dc.InputError) as caught:
            dc.mask(people, method)
        assert caught.value.code == "not-numeric"
        assert caught.value.column == "job"


def test_frames_come_back_in_the_library_that_went_in(frame):
    safe = dc.mask(pl.from_pandas(frame[["age", "pay"]]), dc.Rounding("age", 10))
    assert isinstance(safe.frame, pl.DataFrame)


def test_columns_may_be_one_name_and_never_twice():
    assert dc.Rounding("a").columns == ("a",)
    with pytest.raises(dc.InputError, match="twice"):
        dc.Rounding(["a", "a"])
    with pytest.raises(dc.InputError, match="at least one column"):
        dc.Rounding([])


@pytest.mark.parametrize(
    "method",
    [
        dc.Microaggregation(["pay", "age"], k=3),
        dc.Microaggregation(["job", "age"], k=3, search=True),
        dc.GlobalRecoding("region", level=1),
        dc.TopCoding("pay", quantile=0.9),
        dc.Rounding("age", 10),
    ],
    ids=lambda method: method.name,
)
def test_results_do_not_depend_on_the_order_of_the_rows(people, frame, method):
    mixed = frame.sample(frac=1, random_state=3)
    again = dc.read(mixed, engine=people.engine).replace(schema=people.schema)
    one = method.mask(people, rng=dc.Randomness.seeded(1)).arrow().to_pandas()
    two = method.mask(again, rng=dc.Randomness.seeded(1)).arrow().to_pandas()
    columns = ["name", *method.changes]
    one, two = (f[columns].sort_values("name", ignore_index=True) for f in (one, two))
    pd.testing.assert_frame_equal(one, two)


@pytest.mark.parametrize(
    "method",
    [
        dc.TopCoding(["pay", "age"], 55),
        dc.TopCoding("age", 55.5),
        dc.BottomCoding("pay", quantile=0.3, replacement=-1),
        dc.Rounding(["pay", "age"], 7),
        dc.Rounding("age", 0.3),
        dc.GlobalRecoding("age", width=7),
    ],
    ids=repr,
)
def test_the_engine_does_what_the_arrays_do(people, method):
    in_engine = method.mask(people, rng=dc.Randomness.seeded(1)).arrow(list(method.changes))
    rows = people.arrow(list(method.reads)).combine_chunks()
    by_array = method.apply(rows, schema=people.schema, rng=dc.Randomness.seeded(1))
    for name in method.changes:
        one, two = in_engine[name].to_pylist(), by_array[name].to_pylist()
        if isinstance(next(v for v in two if v is not None), str):
            assert one == two
        else:
            pairs = [
                (np.nan if a is None else a, np.nan if b is None else b)
                for a, b in zip(one, two, strict=True)
            ]
            assert np.allclose(*np.array(pairs).T, equal_nan=True, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "server",
    [
        pytest.param("postgres_url", marks=pytest.mark.postgres),
        pytest.param("spark_url", marks=[pytest.mark.spark, pytest.mark.slow]),
    ],
)
def test_a_pipeline_runs_on_other_engines(people, request, server, tmp_path):
    from tests.servers import SPARK_OPTIONS

    from discreet.data.engines import connect

    options = {**SPARK_OPTIONS, "spark.sql.warehouse.dir": str(tmp_path / "warehouse")}
    with connect(
        request.getfixturevalue(server), **(options if server == "spark_url" else {})
    ) as engine:
        there = dc.read(people.arrow(), engine=engine).replace(schema=people.schema)
        steps = [
            dc.GlobalRecoding("region", level=1),
            dc.Microaggregation(["age", "pay"], k=3),
            dc.TopCoding("pay", 60),
            dc.Rounding("age", 5),
        ]
        here, found = (dc.mask(data, steps).dataset.arrow() for data in (people, there))
        for column in ("age", "pay", "region"):
            one, two = (sorted(map(str, rows[column].to_pylist())) for rows in (here, found))
            assert one == two, column
        mixed = dc.mask(there, [*steps, dc.RankSwapping("pay"), dc.Sampling(0.5)])
        assert len(mixed.dataset) == 60
        assert mixed.risk.value <= 1
