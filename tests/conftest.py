"""Real servers for the tests: PostgreSQL and a Spark cluster, started on loopback, once per run."""

from __future__ import annotations

import gc
import os
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from discreet.data.engines import Engine, connect

if TYPE_CHECKING:
    from tests.servers import PostgresServer

# Machines are busy at times, so no example has a deadline; under CI hypothesis' own profile holds,
# which draws the same examples every time.
settings.register_profile("discreet", deadline=None)
if not os.environ.get("CI"):
    settings.load_profile("discreet")

REPOSITORY = Path(__file__).resolve().parents[1]

# Which fixtures stand for a server; a test that asks for one carries the mark of the same name.
_SERVERS = {
    "postgres_url": "postgres",
    "postgres_database": "postgres",
    "postgres_engine": "postgres",
    "own_postgres": "postgres",
    "spark_url": "spark",
    "spark_engine": "spark",
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what needs a server, and keep it on one worker, so that each server starts once.

    Tests with a group of their own that also need a server draw their whole group along.
    """
    for item in items:
        for fixture in getattr(item, "fixturenames", ()):
            if fixture in _SERVERS:
                item.add_marker(_SERVERS[fixture])
    group: dict[str, str] = {}

    def leader(label: str) -> str:
        while group.setdefault(label, label) != label:
            label = group[label]
        return label

    labels = {item: _labels(item) for item in items}
    for found in labels.values():
        for other in found[1:]:
            group[leader(other)] = leader(found[0])
    for item, found in labels.items():
        if found:
            _regroup(item, leader(found[0]))
            if getattr(config.option, "loadgroup", False):
                _name_group(item, leader(found[0]))


def pytest_collection_finish() -> None:
    """Spare ten thousand tests and their modules, which stay, from every collection of garbage."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Let the last collection close what the tests left open."""
    gc.unfreeze()


def _labels(item: pytest.Item) -> list[str]:
    """Return the groups an item belongs to: its servers first, then what its marks say."""
    servers = [name for name in ("postgres", "spark") if item.get_closest_marker(name)]
    own = [str(mark.args[0]) for mark in item.iter_markers("xdist_group") if mark.args]
    return [*servers, *own]


def _regroup(item: pytest.Item, name: str) -> None:
    # xdist joins the names of all marks, so the item keeps one; a module's mark stays where it is.
    inherited = {str(m.args[0]) for m in item.iter_markers("xdist_group")} - {
        str(m.args[0]) for m in item.own_markers if m.name == "xdist_group"
    }
    item.own_markers[:] = [mark for mark in item.own_markers if mark.name != "xdist_group"]
    if inherited != {name}:
        item.add_marker(pytest.mark.xdist_group(name))


def _name_group(item: pytest.Item, name: str) -> None:
    # The scheduler reads the group from the end of the test's name. xdist 3.8 writes it where
    # pytest from 9.2 on does not look, and then runs the groups' tests anywhere.
    if hasattr(item, "_id"):
        item._id = type(item._id).parse(f"{item.nodeid}@{name}")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Folder with the public data sets; tests that need it are skipped where it is absent."""
    folder = Path(os.environ.get("DISCREET_DATA", REPOSITORY / ".." / "shared" / "data")).resolve()
    if not folder.is_dir():
        pytest.skip(f"no public data in {folder}; set DISCREET_DATA")
    return folder


@pytest.fixture(scope="session")
def postgres_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of a real PostgreSQL server that ends with the session."""
    from tests.servers import postgres_server

    with postgres_server(tmp_path_factory.mktemp("postgres")) as url:
        yield url


@pytest.fixture
def postgres_database(postgres_url: str) -> Iterator[str]:
    """URL of an empty database of the test's own, for ledgers: one ledger knows its records."""
    import psycopg

    name = f"test_{secrets.token_hex(8)}"
    with psycopg.connect(postgres_url, autocommit=True) as server:
        server.execute(psycopg.sql.SQL("CREATE DATABASE {}").format(psycopg.sql.Identifier(name)))
        yield postgres_url.rpartition("/")[0] + "/" + name
        server.execute(
            psycopg.sql.SQL("DROP DATABASE {} WITH (FORCE)").format(psycopg.sql.Identifier(name))
        )


@pytest.fixture(scope="session")
def _stoppable_postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    from tests.servers import PostgresServer

    server = PostgresServer(tmp_path_factory.mktemp("stoppable"))
    yield server
    server.close()


@pytest.fixture
def own_postgres(_stoppable_postgres: PostgresServer) -> PostgresServer:
    """A PostgreSQL server that the test may stop; it runs and is empty when the test begins."""
    import psycopg

    _stoppable_postgres.stop()
    _stoppable_postgres.start()
    with psycopg.connect(_stoppable_postgres.url, autocommit=True) as server:
        server.execute("DROP SCHEMA public CASCADE")
        server.execute("CREATE SCHEMA public")
    return _stoppable_postgres


@pytest.fixture(scope="session")
def spark_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of a real Spark master with two workers that end with the session."""
    from tests.servers import spark_cluster

    with spark_cluster(tmp_path_factory.mktemp("spark")) as url:
        yield url


@pytest.fixture(scope="session")
def duckdb_engine() -> Iterator[Engine]:
    """An embedded DuckDB in memory."""
    with connect("duckdb://") as made:
        yield made


@pytest.fixture(scope="session")
def postgres_engine(postgres_url: str) -> Iterator[Engine]:
    """A connection to the PostgreSQL server, shared by the session."""
    with connect(postgres_url) as made:
        yield made


@pytest.fixture(scope="session")
def spark_engine(spark_url: str) -> Iterator[Engine]:
    """A session on the Spark cluster, shared by all tests."""
    from tests.servers import SPARK_OPTIONS

    with tempfile.TemporaryDirectory(prefix="discreet-warehouse-") as warehouse:
        options = {**SPARK_OPTIONS, "spark.sql.warehouse.dir": warehouse}
        with connect(spark_url, **options) as made:
            yield made


@pytest.fixture(
    scope="session",
    params=[
        "duckdb",
        pytest.param("postgres", marks=pytest.mark.postgres),
        pytest.param("spark", marks=pytest.mark.spark),
    ],
)
def engine(request: pytest.FixtureRequest) -> Engine:
    """One suite, three engines: every test that takes `engine` runs on each of them."""
    return request.getfixturevalue(f"{request.param}_engine")
