"""Masking methods in pipelines, engines and frames; what each keeps is in tests/laws/masking.py."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import discreet as dc
from discreet.data.hierarchy import Hierarchy


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


def test_text_in_a_numeric_method_is_refused(people):
    for method in (dc.Rounding("job"), dc.AdditiveNoise("job"), dc.TopCoding("job", 3)):
        with pytest.raises(dc.InputError) as caught:
            dc.mask(people, method)
        assert caught.value.code == "not-numeric"
        assert caught.value.column == "job"


def test_frames_come_back_in_the_library_that_went_in(frame):
    rows = pl.from_pandas(frame[["age", "pay"]])
    people = dc.read(rows, roles={"age": "quasi", "pay": "confidential"})
    safe = dc.mask(people, dc.Rounding("age", 10))
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
