"""One suite, three engines: every test that takes `engine` runs on each of them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator

import pytest

from discreet.data.engines import Engine, connect

SPARK_OPTIONS = {
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.driver.memory": "512m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
}


@pytest.fixture(
    scope="session",
    params=[
        "duckdb",
        pytest.param("postgres", marks=[pytest.mark.postgres, pytest.mark.xdist_group("postgres")]),
        pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.xdist_group("spark")]),
    ],
)
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """Connect to each engine in turn; the servers are real and end with the session."""
    if request.param == "duckdb":
        with connect("duckdb://") as made:
            yield made
    elif request.param == "postgres":
        with connect(request.getfixturevalue("postgres_url")) as made:
            yield made
    else:
        url = request.getfixturevalue("spark_url")
        with tempfile.TemporaryDirectory(prefix="discreet-warehouse-") as warehouse:
            options = {**SPARK_OPTIONS, "spark.sql.warehouse.dir": warehouse}
            with connect(url, **options) as made:
                yield made
