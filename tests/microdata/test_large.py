"""A larger file on a Spark cluster and on DuckDB: one result, also when written."""

import importlib.util
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import discreet as dc
from discreet.data.engines import connect

ROWS = 300_000
BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "microdata_large.py"


def large():
    """The benchmark's population and hierarchies."""
    found = importlib.util.spec_from_file_location("microdata_large", BENCHMARK)
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def released(engine, path, target):
    trees = large().hierarchies()
    roles = {**dict.fromkeys(trees, "quasi"), "income": "confidential"}
    people = dc.read(path, engine=engine, roles=roles, hierarchies=trees, name="people")
    method = dc.Generalization(suppression=0.02)
    safe = dc.anonymize(people, dc.KAnonymity(5), method=method)
    safe.dataset.write(target)
    return safe


@pytest.mark.slow
@pytest.mark.spark
def test_a_spark_cluster_finds_and_writes_what_duckdb_does(spark_engine, tmp_path):
    path = tmp_path / "people.parquet"
    large().generate(path, ROWS)
    with connect("duckdb://", memory_limit="1GB") as engine:
        here = released(engine, path, tmp_path / "here.parquet")
    there = released(spark_engine, path, tmp_path / "there.parquet")
    assert there.levels == here.levels
    assert there.score == pytest.approx(here.score, rel=1e-12)
    assert there.suppressed == here.suppressed > 0
    first, second = (
        pq.read_table(tmp_path / name).sort_by([(c, "ascending") for c in here.dataset.columns])
        for name in ("here.parquet", "there.parquet")
    )
    assert first.num_rows == ROWS - here.suppressed
    for column in here.dataset.columns:
        assert second.column(column).to_pylist() == first.column(column).to_pylist()
