"""The servers that tests talk to start once per run, and may not be missing in CI."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tests.servers import unavailable

ROOT = Path(__file__).resolve().parents[1]


def groups(item: pytest.Item) -> set[str]:
    # A module's mark stays where it is; the one nearest to the test is the one that holds.
    mark = item.get_closest_marker("xdist_group")
    return set() if mark is None else {str(mark.args[0])}


@pytest.mark.parametrize("server", ["postgres", "spark"])
def test_everything_that_needs_a_server_runs_on_one_worker(request, server):
    needing = [item for item in request.session.items if item.get_closest_marker(server)]
    found = [groups(item) for item in needing]
    assert all(len(names) == 1 for names in found)
    assert len(set().union(*found)) <= 1
    for item in request.session.items:
        wanted = {f"{server}_url", f"{server}_engine"} & set(getattr(item, "fixturenames", ()))
        assert not wanted or item in needing


@pytest.fixture
def run_inner(tmp_path):
    """Run a file of tests under this suite's conftest in a process of its own."""

    def run(text: str, **environment: str) -> str:
        (tmp_path / "test_inner.py").write_text(dedent(text))
        (tmp_path / "conftest.py").write_text("from tests.conftest import *\n")
        (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  postgres: x\n  spark: x\n")
        path = os.pathsep.join([str(ROOT), str(ROOT / "src")])
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-s", "-rs", "-p", "no:cacheprovider", "."],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": path} | environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
        return done.stdout

    run.folder = tmp_path
    return run


def test_a_group_that_needs_a_server_is_drawn_along(run_inner):
    found = run_inner(
        """
        import pytest

        def shown(request):
            print("\\nGROUP", *(m.args[0] for m in request.node.iter_markers("xdist_group")))

        @pytest.mark.xdist_group("wire")
        def test_wire(request): shown(request)

        @pytest.mark.xdist_group("wire")
        @pytest.mark.postgres
        def test_wired_server(request): shown(request)

        @pytest.mark.postgres
        @pytest.mark.spark
        def test_both(request): shown(request)

        @pytest.mark.spark
        def test_one(request): shown(request)

        @pytest.mark.xdist_group("other")
        def test_other(request): shown(request)

        def test_alone(request): shown(request)
        """
    )
    said = [line for line in found.splitlines() if line.startswith("GROUP")]
    assert len(set(said[:4])) == 1
    assert said[0].split()[1:] in (["postgres"], ["spark"], ["wire"])
    assert said[4:] == ["GROUP other", "GROUP"]


def test_a_group_runs_on_one_worker(run_inner):
    found = run_inner(
        """
        import os
        import pytest

        @pytest.mark.parametrize("n", range(6))
        @pytest.mark.postgres
        def test_server(n):
            with open("workers", "a") as file:
                file.write(os.environ["PYTEST_XDIST_WORKER"] + " ")
        """,
        PYTEST_ADDOPTS="-n 2 --dist loadgroup",
    )
    assert "6 passed" in found
    assert len(set((run_inner.folder / "workers").read_text().split())) == 1


@pytest.mark.parametrize(("ci", "outcome"), [("", "1 skipped"), ("true", "1 error")])
def test_a_missing_server_is_skipped_here_and_fails_in_ci(run_inner, ci, outcome):
    found = run_inner("def test_spark(spark_url): pass", CI=ci, JAVA_HOME="/nonexistent")
    assert outcome in found
    assert "apt-get install" in found


def test_unavailable_says_why(monkeypatch):
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no java"):
        unavailable("no java")
    monkeypatch.delenv("CI")
    with pytest.raises(pytest.skip.Exception, match="no java"):
        unavailable("no java")
