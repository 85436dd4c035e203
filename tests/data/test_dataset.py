"""Datasets: from any source, in the type that went in, lazily, without surprises."""

from __future__ import annotations

import datetime
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from sqlglot import condition, parse_one

import discreet as dc
from discreet.data.dataset import Dataset, read
from discreet.data.engines import connect
from discreet.data.hierarchy import Hierarchy
from discreet.errors import InputError
from discreet.randomness import Randomness

FRAME = pd.DataFrame(
    {
        "region": ["N", "S", "N", None],
        "age": [20, 35, 50, 65],
        "salary": [10.5, 20.25, -3.0, np.nan],
        "since": pd.to_datetime(["2020-01-01", "2021-05-06", "1999-12-31", None]),
        "member": [True, False, True, False],
    }
)


def test_pandas_in_pandas_out():
    pd.testing.assert_frame_equal(read(FRAME).frame, FRAME, check_dtype=False)
    assert isinstance(read(FRAME).frame, pd.DataFrame)


def test_polars_in_polars_out():
    frame = pl.DataFrame(
        {"a": ["x", None], "b": [1.5, 2.5], "c": pl.Series(["u", "v"], dtype=pl.Categorical)}
    )
    found = read(frame).frame
    assert isinstance(found, pl.DataFrame)
    assert found.to_dicts() == frame.to_dicts()
    assert read(frame.lazy()).frame.to_dicts() == frame.to_dicts()


def test_pyarrow_in_pyarrow_out():
    rows = pa.table({"a": [1, 2], "b": ["x", "y"]})
    assert read(rows).frame.equals(rows)
    assert read(rows.to_batches()[0]).frame.equals(rows)
    assert read(rows.to_reader()).frame.equals(rows)


def test_a_dataset_in():
    first = read(FRAME, roles={"age": "quasi"}, name="people")
    again = read(first, roles={"salary": "confidential"}, unit="age")
    assert again.name == "people"
    assert again.schema.confidential == ("salary",)
    assert "age" in again.schema.quasi
    assert again.unit == "age"


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "feather"])
def test_columnar_files(tmp_path, suffix):
    path = tmp_path / f"people.{suffix}"
    rows = pa.table({"a": ["x", None, "z"], "b": [1, 2, 3]})
    if suffix == "parquet":
        pyarrow.parquet.write_table(rows, path)
    else:
        pyarrow.feather.write_feather(rows, path)
    found = read(path)
    assert found.name == "people"
    assert found.arrow().to_pydict() == rows.to_pydict()
    assert isinstance(found.frame, pd.DataFrame)


@pytest.mark.parametrize("suffix", ["sav", "dta", "xpt"])
def test_statistical_files(tmp_path, suffix):
    pyreadstat = pytest.importorskip("pyreadstat")
    path = tmp_path / f"survey.{suffix}"
    frame = pd.DataFrame({"region": ["N", "S"], "income": [1.5, 2.5]})
    writer = {"sav": "write_sav", "dta": "write_dta", "xpt": "write_xport"}[suffix]
    getattr(pyreadstat, writer)(frame, str(path))
    found = read(path)
    assert found.arrow().to_pydict() == {"region": ["N", "S"], "income": [1.5, 2.5]}


def test_csv_as_found_and_as_told(tmp_path):
    path = tmp_path / "leute.csv"
    path.write_bytes("name;plz;lohn\nÄgnes;01067;1,5\nBo;80331;2,25\n".encode("cp1252"))
    found = read(path)
    assert found.arrow().to_pydict() == {
        "name": ["Ägnes", "Bo"],
        "plz": ["01067", "80331"],
        "lohn": [1.5, 2.25],
    }
    plain = tmp_path / "plain.csv"
    plain.write_text("1,x\n2,y\n")
    assert read(plain, header=False).arrow().num_rows == 2
    assert read(plain, header=False, name="n").name == "n"


def test_codes_of_a_hierarchy_are_read_as_text(tmp_path):
    path = tmp_path / "codes.csv"
    path.write_text("sector,v\n1,2\n2,3\n")
    sector = Hierarchy.flat(["1", "2"])
    found = read(path, hierarchies={"sector": sector})
    assert found.arrow().column("sector").to_pylist() == ["1", "2"]
    cells = found.cells(["sector"], measure="v")
    assert cells.select(["sector", "sum"]).to_pydict() == {
        "sector": ["Total", "1", "2"],
        "sum": [5.0, 2.0, 3.0],
    }


def test_late_surprises_in_a_csv_file_are_told_by_line(tmp_path):
    path = tmp_path / "late.csv"
    lines = [f"{i},{i}" for i in range(200_000)]
    lines[170_000] = "1,2,secret7"
    path.write_text("a,b\n" + "\n".join(lines) + "\n")
    with pytest.raises(InputError) as caught:
        read(path)
    assert caught.value.line == 170_002
    assert "secret7" not in str(caught.value)
    lines[170_000] = "1,late"
    path.write_text("a,b\n" + "\n".join(lines) + "\n")
    assert read(path).arrow().schema.field("b").type == pa.string()


def refused(code: str, source, **options) -> InputError:
    with pytest.raises(InputError) as caught:
        read(source, **options)
    assert caught.value.code == code
    return caught.value


def test_bad_sources(tmp_path):
    refused("no-file", tmp_path / "none.csv")
    refused("no-file", str(tmp_path / "none.parquet"))
    (tmp_path / "empty.csv").touch()
    refused("empty-file", tmp_path / "empty.csv")
    (tmp_path / "x.doc").write_text("x")
    refused("unknown-format", tmp_path / "x.doc")
    refused("unknown-format", tmp_path / "x.doc", format="word")
    (tmp_path / "twice.csv").write_text("a,a\n1,2\n")
    assert refused("duplicate-columns", tmp_path / "twice.csv").column == "a"
    refused("duplicate-columns", pd.DataFrame([[1, 2]], columns=["a", "a"]))
    refused("unknown-source", 42)
    refused("unknown-source", {"a": [1]})
    refused("unknown-option", FRAME, delimiter=";")
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    assert refused("unknown-option", tmp_path / "a.csv", delimeter=";").hint == "write 'delimiter'"
    refused("no-table", "postgresql://localhost/x")
    refused("unknown-column", FRAME, roles={"agee": "quasi"})
    refused("unknown-role", FRAME, roles={"age": "quazi"})
    refused("unknown-column", FRAME, unit="id")
    mixed = pd.DataFrame({"a": [1, "x", {"y": 2}]})
    refused("mixed-types", mixed)


def test_infinite_measures_are_refused():
    data = read(pd.DataFrame({"a": ["x", "y"], "v": [1.0, math.inf]}))
    with pytest.raises(InputError) as caught:
        data.cells(["a"], measure="v")
    assert caught.value.code == "not-finite"


def test_a_dataset_never_changes():
    people = read(FRAME, name="people")
    older = people.where(condition("AGE > 30"))
    assert (len(people), len(older)) == (4, 3)
    recoded = people.recode({"region": {"N": "North", None: "?"}})
    assert recoded.arrow().column("region").to_pylist() == ["North", "S", "North", "?"]
    assert people.arrow().column("region").to_pylist() == ["N", "S", "N", None]
    masked = people.with_columns({"salary": [1.0, 2.0, 3.0, 4.0], "new": list("abcd")})
    assert masked.columns == (*people.columns, "new")
    assert masked.arrow().column("salary").to_pylist() == [1.0, 2.0, 3.0, 4.0]
    assert masked.schema["new"].name == "new"
    assert people.select(["age"]).columns == ("age",)
    assert len(people.sample(2, rng=Randomness.seeded(1))) == 2
    with pytest.raises(InputError):
        people.with_columns({"x": [1]})
    with pytest.raises(InputError):
        people.select(["agee"])


def test_rows_keep_their_order_after_masking():
    size = 20_000
    data = read(pa.table({"v": np.arange(size)}))
    once = data.with_columns({"w": np.arange(size) * 2})
    twice = once.with_columns({"v": np.arange(size) * 3})
    found = twice.arrow()
    assert found.column("w").to_pylist() == list(range(0, 2 * size, 2))
    assert found.column("v").to_pylist() == list(range(0, 3 * size, 3))


def test_queries_see_the_dataset_under_its_name():
    people = read(FRAME, name="people")
    found = people.aggregate(parse_one("SELECT COUNT(*) AS n, MAX(age) AS oldest FROM people"))
    assert found.to_pydict() == {"n": [4], "oldest": [65]}


def test_showing_shows_no_data():
    data = read(pd.DataFrame({"name": ["Topsecret"], "<b>": [1]}), name="people")
    for text in (repr(data), str(data), data._repr_html_()):
        assert "Topsecret" not in text
    assert "&lt;b&gt;" in data._repr_html_()
    assert repr(data) == "Dataset(people: 1 rows, name, <b>)"


def test_writing_keeps_types_and_order(tmp_path):
    path = read(FRAME).with_columns({"n": [1, 2, 3, 4]}).write(tmp_path / "out" / "people.parquet")
    again = read(path)
    assert again.columns == (*FRAME.columns, "n")
    assert again.arrow().column("since").to_pylist()[0] == datetime.datetime(2020, 1, 1)  # noqa: DTZ001
    with pytest.raises(InputError):
        read(FRAME).write(tmp_path / "x.sav")


def test_public_names():
    assert dc.read is read
    assert dc.Dataset is Dataset


def test_adult_by_hand(data_folder):
    data = read(data_folder / "adult" / "adult.csv")
    assert len(data) == 30162
    frame = data.frame
    cells = data.cells(["sex", "race"])
    by_hand = frame.groupby(["sex", "race"]).size()
    found = {(row["sex"], row["race"]): row["count"] for row in cells.to_pylist()}
    assert found["Total", "Total"] == 30162
    for key, count in by_hand.items():
        assert found[key] == count


def test_a_table_of_postgres(postgres_url):
    with connect(postgres_url) as engine:
        engine.write(engine.load(pa.table({"a": [1, 2]})), "public.people", format="table")
    people = read(f"{postgres_url}#public.people")
    assert people.name == "people"
    assert len(people) == 2
    people.engine.close()


def test_a_forgotten_identifier_stays_one():
    frame = pd.DataFrame(
        {"person_id": [1, 2], "name": ["a", "b"], "age": [3, 4], "pay": [5.0, 6.0]}
    )
    schema = read(frame, roles={"pay": "confidential"}).schema
    assert schema.identifiers == ("person_id", "name")
    assert schema["age"].role == "other"
    assert read(frame, roles={"name": "quasi"}).schema["name"].role == "quasi"
