"""Real servers for the tests: PostgreSQL and a Spark cluster, started on loopback, once per run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Folder with the public data sets; tests that need it are skipped where it is absent."""
    folder = Path(os.environ.get("DISCREET_DATA", REPOSITORY / ".." / "shared" / "data")).resolve()
    if not folder.is_dir():
        pytest.skip(f"no public data in {folder}; set DISCREET_DATA")
    return folder


@pytest.fixture(scope="session")
def postgres_url(tmp_path_factory: pytest.TempPathFactory):
    """URL of a real PostgreSQL server that ends with the session."""
    from tests.servers import postgres_server

    with postgres_server(tmp_path_factory.mktemp("postgres")) as url:
        yield url


@pytest.fixture(scope="session")
def spark_url(tmp_path_factory: pytest.TempPathFactory):
    """URL of a real Spark master with two workers that end with the session."""
    from tests.servers import spark_cluster

    with spark_cluster(tmp_path_factory.mktemp("spark")) as url:
        yield url
