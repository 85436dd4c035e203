"""What a dataset can do, on every engine."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from discreet.data.dataset import Dataset, read
from discreet.data.engines import Engine
from discreet.data.engines.base import ROW
from discreet.errors import InputError
from discreet.randomness import Randomness

FRAME = pd.DataFrame(
    {
        "id": np.arange(12),
        "region": ["n", "n", "s", "s", None, "e"] * 2,
        "age": pd.array([20, 31, None, 99, 50, 50] * 2, dtype="Int64"),
        "pay": [1.5, None, 2.25, -1.0, 0.0, 1e9] * 2,
        "born": [datetime.date(2000, 1, 1), None] * 6,
    }
)


@pytest.fixture
def people(engine: Engine) -> Dataset:
    return read(FRAME, engine=engine, roles={"region": "quasi", "pay": "confidential"}, name="p")


def by_id(data: Dataset) -> pd.DataFrame:
    return data.frame.sort_values("id").reset_index(drop=True)


def test_frames_come_back_as_they_went_in(people, engine):
    found = by_id(people)
    pd.testing.assert_frame_equal(found, FRAME, check_dtype=False)
    assert found["age"].dtype == "Int64"
    frame = pl.from_pandas(FRAME).with_columns(pl.col("region").cast(pl.Categorical))
    again = read(frame, engine=engine).frame
    assert isinstance(again, pl.DataFrame)
    assert again.schema["region"] == pl.Categorical
    assert again.sort("id")["region"].to_list() == frame["region"].to_list()


def test_recode(people):
    found = people.recode(
        {
            "region": {"n": "north", None: "unknown"},
            "age": pa.table({"from": [20, 31], "to": ["young", "young"]}),
        }
    )
    assert found.schema["age"].type.value == "nominal"
    assert found.schema["pay"].role.value == "confidential"
    assert by_id(found)["region"].tolist()[:6] == ["north", "north", "s", "s", "unknown", "e"]
    assert [x if isinstance(x, str) else None for x in by_id(found)["age"]][:4] == [
        "young",
        "young",
        None,
        "99",
    ]


def test_with_columns(people):
    held = people.numbered()
    order = held.arrow(["id"]).column(0).to_numpy()
    masked = held.with_columns({"pay": order * 2.0, "label": [f"r{x}" for x in order]})
    found = by_id(masked)
    assert found["pay"].tolist() == [x * 2.0 for x in range(12)]
    assert found["label"].tolist() == [f"r{x}" for x in range(12)]
    assert masked.columns == (*FRAME.columns, "label")
    assert masked.schema["label"].role.value == "other"
    with pytest.raises(InputError) as caught:
        people.with_columns({"pay": [1.0]})
    assert caught.value.code == "wrong-length"


def test_sample(people):
    drawn = people.sample(5, rng=Randomness.seeded(3))
    assert len(drawn) == 5
    known = dict(zip(FRAME["id"], FRAME["pay"], strict=True))
    for number, pay in zip(drawn.frame["id"], drawn.frame["pay"], strict=True):
        assert pay == known[number] or (np.isnan(pay) and np.isnan(known[number]))
    strata = people.sample(6, rng=Randomness.seeded(4), strata=["region"]).frame
    assert strata["region"].fillna("–").value_counts().to_dict() == {"n": 2, "s": 2, "–": 1, "e": 1}
    assert len(people.sample(0)) == 0


def test_rank(people, engine):
    ranked = engine.fetch(engine.rank(people.numbered().relation, "pay")).sort_by("__rank")
    pay = ranked.column("pay").to_pylist()
    assert pay[:2] == [-1.0, -1.0]
    assert pay[-2:] == [None, None]
    numbers = ranked.column(ROW).to_pylist()
    assert all(
        first < second
        for (first, one), (second, two) in zip(
            zip(numbers, pay, strict=True), list(zip(numbers, pay, strict=True))[1:], strict=False
        )
        if one == two
    )


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_write(people, tmp_path, suffix):
    path = people.recode({"region": {"n": "north"}}).write(tmp_path / f"people.{suffix}")
    again = by_id(read(path))
    assert again["region"].tolist()[:2] == ["north", "north"]
    assert again["pay"].tolist()[2:6] == [2.25, -1.0, 0.0, 1e9]
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("rows", [0, 1])
def test_hardly_any_records(engine, tmp_path, rows):
    few = read(FRAME.iloc[:rows], engine=engine)
    assert len(few) == rows
    assert len(few.frame) == rows
    assert len(few.recode({"region": {"n": "north"}})) == rows
    assert len(few.with_columns({"pay": [0.5] * rows})) == rows
    assert len(few.sample(rows)) == rows
    assert few.cells(["region"], measure="pay").num_rows == 2 * rows
    assert read(few.write(tmp_path / "few.parquet")).frame["id"].tolist() == list(range(rows))


def test_a_column_without_values(engine):
    data = read(pa.table({"g": ["a", "b"], "v": pa.nulls(2, pa.float64())}), engine=engine)
    # Whoever has no value contributes nothing: there are no cells.
    assert data.cells(["g"], measure="v").to_pydict()["count"] == []
    assert data.cells(["g"]).to_pydict()["count"] == [2, 1, 1]
