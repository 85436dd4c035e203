"""The three engines, and releases made of a given partition."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from discreet.data.engines import Engine, connect
from discreet.microdata.permutation.amounts import Amounts
from discreet.microdata.permutation.groups import GROUP, Groups
from discreet.microdata.permutation.release import Permuted
from discreet.randomness import Randomness

_SPARK = {
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.driver.memory": "512m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "1",
}


@pytest.fixture(scope="session")
def duckdb_engine() -> Iterator[Engine]:
    with connect("duckdb://") as made:
        yield made


@pytest.fixture(
    scope="session",
    params=[
        "duckdb",
        pytest.param("postgres", marks=[pytest.mark.postgres, pytest.mark.xdist_group("postgres")]),
        pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.xdist_group("spark")]),
    ],
)
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    if request.param == "duckdb":
        yield request.getfixturevalue("duckdb_engine")
    elif request.param == "postgres":
        with connect(request.getfixturevalue("postgres_url")) as made:
            yield made
    else:
        url = request.getfixturevalue("spark_url")
        with (
            tempfile.TemporaryDirectory(prefix="discreet-warehouse-") as warehouse,
            connect(url, **{**_SPARK, "spark.sql.warehouse.dir": warehouse}) as made,
        ):
            yield made


def released(engine: Engine, quasi: dict, values, labels, *, seed: int = 0) -> Permuted:
    """A release of a partition that was given, not found."""
    amounts = Amounts.of(pa.array(values), name="s")
    groups = Groups.of(amounts, np.asarray(labels, dtype=np.int64))
    rows = pa.table(quasi).take(pa.array(groups.order))
    rows = rows.append_column(GROUP, [groups.ids])
    rows = rows.append_column("s", groups.permuted(Randomness.seeded(seed)))
    return Permuted(
        engine.load(rows), engine.load(groups.help_table()), name="t", sensitive="s",
        library="pyarrow", randomness="seeded",
    )  # fmt: skip
