"""Spark's own paths: tables by URL, frames as sources, one cluster per process."""

from __future__ import annotations

import datetime
import os
import subprocess
import sys

import pyarrow as pa
import pytest

from discreet.data.dataset import read
from discreet.data.engines import connect
from discreet.errors import EngineError, InputError

pytestmark = pytest.mark.spark


def test_a_table_by_url(spark_url, spark_engine):
    rows = pa.table({"Name of it": ["x", "y"], "v": [1, 2]})
    spark_engine.store(spark_engine.load(rows), "people_by_url")
    people = read(f"{spark_url}#people_by_url", roles={"Name of it": "quasi"})
    assert people.name == "people_by_url"
    assert people.frame.sort_values("v")["Name of it"].tolist() == ["x", "y"]
    found = {row["Name of it"]: row["count"] for row in people.cells(["Name of it"]).to_pylist()}
    assert found == {"Total": 2, "x": 1, "y": 1}
    people.engine.close()
    # The session was begun by another engine, which still uses it.
    assert spark_engine.count(spark_engine.table("people_by_url")) == 2
    with pytest.raises(InputError) as caught:
        read(f"{spark_url}#no_such_table")
    assert caught.value.code == "unknown-table"


def test_a_spark_frame_is_a_source(spark_engine):
    session = spark_engine._session.newSession()
    session.conf.set("spark.sql.caseSensitive", "false")
    frame = session.createDataFrame(
        pa.table({"Age": [3, 4], "day": [datetime.date(2020, 2, 29), None]})
    )
    data = read(frame, name="people")
    assert data.columns == ("Age", "day")
    assert data.frame.sort_values("Age")["Age"].tolist() == [3, 4]
    assert sorted(data.recode({"Age": {3: 5}}).arrow()["Age"].to_pylist()) == [4, 5]
    data.engine.close()
    # The session is its owner's: nothing in it was changed, nothing ended.
    assert session.conf.get("spark.sql.caseSensitive") == "false"
    assert frame.count() == 2
    twice = session.createDataFrame([(1, 2)], ["a", "a"])
    with pytest.raises(InputError) as caught:
        read(twice)
    assert caught.value.code == "duplicate-columns"


def test_one_cluster_per_process(spark_engine):
    with pytest.raises(EngineError) as caught:
        connect("spark://local")
    assert caught.value.code == "another-cluster"
    assert spark_engine.count(spark_engine.load(pa.table({"a": [1]}))) == 1


LOCAL = """
import pyarrow as pa
from discreet.data.dataset import read
from discreet.data.engines import connect
options = {"spark.sql.shuffle.partitions": "1", "spark.driver.bindAddress": "127.0.0.1",
           "spark.driver.host": "127.0.0.1", "spark.sql.warehouse.dir": "warehouse"}
first = connect("spark://local", **options)
second = connect("spark://local")
people = read(pa.table({"g": ["a", "a", "b"]}), engine=first)
assert people.cells(["g"]).column("count").to_pylist() == [3, 2, 1]
first.close()
assert second.count(second.load(pa.table({"a": [1, 2]}))) == 2
second.close()
from pyspark import SparkContext
assert SparkContext._active_spark_context is None
print("done")
"""


@pytest.mark.slow
def test_spark_in_this_process(tmp_path, spark_url):
    done = subprocess.run(
        [sys.executable, "-c", LOCAL],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout.strip().endswith("done"), done.stderr[-3000:]
