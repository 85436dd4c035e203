"""Spark as people run it: tables found by their address in another process, results in parts."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.servers import SPARK_OPTIONS

import discreet as dc
from discreet.data.dataset import read
from discreet.data.engines import connect
from discreet.data.engines.spark_address import SparkAddress, location
from discreet.data.origin import origin_of
from discreet.errors import EngineError, InputError
from discreet.verification.folder import verify

pytestmark = pytest.mark.spark

ANOTHER = """
import json, sys
from discreet.data.dataset import read
addresses = json.loads(sys.argv[1])
found = {}
for address in addresses:
    data = read(address)
    rows = data.arrow().sort_by(data.columns[0])
    found[address] = rows.to_pydict()
print(json.dumps(found))
"""


def in_another_process(*addresses: str) -> dict[str, dict[str, list]]:
    done = subprocess.run(
        [sys.executable, "-c", ANOTHER, json.dumps(addresses)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.strip().splitlines()[-1])


def written_out(**more: str) -> str:
    settings = {**SPARK_OPTIONS, **more}
    return "&".join(f"{name}={value}" for name, value in settings.items() if "Java" not in name)


def test_what_is_written_is_found_by_its_address_elsewhere(spark_url, spark_engine, tmp_path):
    rows = pa.table({"a b": [3, 1, 2], "g": ["x", "ÿ`", None]})
    warehouse = tmp_path / "warehouse"
    with connect(spark_url, warehouse=str(warehouse)) as engine:
        engine.store(engine.load(rows), "people")
        engine.store(engine.load(rows.slice(0, 1)), "stats.few")
        engine.store(engine.load(rows), "people")  # again: replaced whole
        engine.write(engine.load(rows), tmp_path / "out.parquet")
    assert sorted(path.name for path in warehouse.iterdir()) == ["people", "stats.db"]
    assert parquet.read_table(tmp_path / "out.parquet").num_rows == 3
    options = written_out(warehouse=str(warehouse))
    people, few, parts = (
        f"spark://local?{options}#people",
        f"spark://local?{options}#stats.few",
        f"spark://local?{options}#{tmp_path / 'out.parquet'}",
    )
    found = in_another_process(people, few, parts)
    assert found[people] == found[parts] == {"a b": [1, 2, 3], "g": ["ÿ`", None, "x"]}
    assert found[few] == {"a b": [3], "g": ["x"]}


def test_a_release_is_written_in_parts_by_the_workers(spark_engine, tmp_path, monkeypatch):
    rows = pa.table(
        {
            "age": [20, 20, 30, 30] * 25,
            "job": ["cook", "pilot"] * 50,
            "pay": [float(n) for n in range(100)],
        }
    )
    people = read(
        rows,
        engine=spark_engine,
        roles={"age": "quasi", "job": "quasi", "pay": "confidential"},
        name="people",
    )
    safe = dc.mask(people, [dc.TopCoding("pay", 90.0)])
    monkeypatch.setattr(type(spark_engine), "batches", None)  # nothing goes through this process
    folder = safe.write(tmp_path / "out")
    parts = sorted((folder / "people.parquet").iterdir())
    assert len(parts) > 1
    assert {part.suffix for part in parts} == {".parquet"}
    found = parquet.read_table(folder / "people.parquet")
    assert sorted(found["pay"].to_pylist()) == [min(float(n), 90.0) for n in range(100)]
    # In an order drawn by lot: that all are in their places has odds of 1 to 100!.
    assert found["pay"].to_pylist() != sorted(found["pay"].to_pylist())
    assert verify(folder).holds
    assert safe.write(folder) == folder  # over an earlier release
    again = read(folder / "people.parquet")
    assert len(again) == 100
    parquet.write_table(found.slice(0, 10), parts[0])
    assert not verify(folder).holds


def test_parts_that_say_more_than_their_rows_are_noticed(spark_engine, tmp_path):
    from discreet.verification.leftovers import leftovers
    from discreet.verification.reading import File

    rows = pa.table({"a": ["x", "y"], "b": [1, 2]})
    target = tmp_path / "t.parquet"
    spark_engine.write(spark_engine.load(rows), target)
    assert leftovers(File(target)) == []
    assert sorted(File(target).rows()) == [("x", 1), ("y", 2)]
    part = min(target.iterdir())
    schema = {
        "type": "struct",
        "fields": [
            {"name": n, "type": "string", "nullable": True, "metadata": {"comment": "Ana"}}
            for n in ("a", "b")
        ],
    }
    told = {"org.apache.spark.sql.parquet.row.metadata": json.dumps(schema)}
    parquet.write_table(parquet.read_table(part).replace_schema_metadata(told), part)
    assert leftovers(File(target))
    (target / "notes.txt").write_text("Ana")
    with pytest.raises(ValueError, match="nothing else"):
        File(target)


def test_a_catalogue_in_memory_keeps_nothing(spark_engine, tmp_path):
    frame = spark_engine._session.createDataFrame(pa.table({"a": [1]}))
    relation = read(frame).relation  # of a session that others own
    with pytest.raises(InputError) as caught:
        relation.engine.store(relation, "people")
    assert caught.value.code == "in-memory-catalogue"
    with pytest.raises(InputError) as caught:
        spark_engine.table("no_such_table")
    assert caught.value.code == "unknown-table"
    with pytest.raises(InputError) as caught:
        spark_engine.table(f"parquet:{tmp_path}/nowhere")
    assert caught.value.code == "unknown-table"
    with pytest.raises(EngineError) as caught:
        spark_engine.table(f"delta:{tmp_path}")
    assert caught.value.code == "missing-reader"
    for name in ("../people", "a..b", "x/y"):
        with pytest.raises(InputError):
            spark_engine.store(relation, name)


def test_a_folder_with_other_files_is_not_replaced(spark_engine, tmp_path):
    target = tmp_path / "mine.parquet"
    target.mkdir()
    (target / "letter.txt").write_text("keep me")
    with pytest.raises(InputError) as caught:
        spark_engine.write(spark_engine.load(pa.table({"a": [1]})), target)
    assert caught.value.code == "foreign-files"
    assert (target / "letter.txt").read_text() == "keep me"


def test_the_wrong_catalogue_is_told(spark_url, spark_engine):
    with pytest.raises(EngineError) as caught:
        connect(f"{spark_url}?catalog=hive")
    assert caught.value.code == "another-cluster"
    assert spark_engine.count(spark_engine.load(pa.table({"a": [1]}))) == 1


def test_what_an_address_says():
    hive = SparkAddress.of("spark://host:7077?metastore=thrift://m:9083&spark.executor.cores=2")
    assert hive.settings["spark.sql.catalogImplementation"] == "hive"
    assert hive.settings["spark.hadoop.hive.metastore.uris"] == "thrift://m:9083"
    for wrong in ("catalog=oracle", "memory=4g", "warehouse="):
        with pytest.raises(InputError) as caught:
            SparkAddress.of(f"spark://host:7077?{wrong}")
        assert caught.value.code == "unknown-option"
    with pytest.raises(InputError) as caught:
        location("parquet:people")
    assert caught.value.code == "bad-path"
    one = origin_of("spark://host:7077?warehouse=/data&spark.executor.memory=4g#people")
    assert one == origin_of("spark://HOST:7077?spark.executor.memory=8g&warehouse=/data#people")
    assert one != origin_of("spark://host:7077?warehouse=/other#people")
    assert origin_of("spark://host:7077#parquet:/data/p") == origin_of("/data/p")


@pytest.mark.slow
def test_hives_metastore_is_found_by_its_address(tmp_path):
    program = f"""
import pyarrow as pa
from discreet.data.engines import connect
options = "{written_out(warehouse=str(tmp_path / "warehouse"), catalog="hive")}"
with connect("spark://local?" + options) as engine:
    engine.store(engine.load(pa.table({{"a": [1, 2]}})), "people")
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    options = written_out(warehouse=str(tmp_path / "warehouse"), catalog="hive")
    address = f"spark://local?{options}#people"
    assert in_another_process(address)[address] == {"a": [1, 2]}
