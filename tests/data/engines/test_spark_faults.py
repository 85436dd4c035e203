"""Spark whose driver or workers are killed: an error that says so, and another Spark after it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

_BEGIN = """
import os, signal, sys, time
from pathlib import Path
import pyarrow as pa
from discreet.data.engines import connect
from discreet.errors import EngineError
from tests.servers import SPARK_OPTIONS

engine = connect(sys.argv[1], **SPARK_OPTIONS)
rows = engine.load(pa.table({"a": list(range(100))}))
held = engine.materialize(rows)
assert engine.count(held) == 100

def code(work):
    try:
        work()
    except EngineError as error:
        assert "in the data" not in str(error), error
        return error.code
    return "done"
"""

_DRIVER = """
engine._session.sparkContext._gateway.proc.kill()
engine._session.sparkContext._gateway.proc.wait(60)
print([code(lambda: engine.count(rows)), code(lambda: engine.load(pa.table({"a": [1]})))])
again = connect(sys.argv[1], **SPARK_OPTIONS)
print(again.count(again.load(pa.table({"a": [1, 2]}))))
again.close()
"""

_WORKER = """
application = engine._session.sparkContext.applicationId
for place in Path("/proc").glob("[0-9]*/cmdline"):
    try:
        said = place.read_bytes().decode(errors="replace").split(chr(0))
    except OSError:
        continue
    if application in said and any("CoarseGrainedExecutorBackend" in word for word in said):
        os.kill(int(place.parent.name), signal.SIGKILL)
print([code(lambda: engine.count(held)), code(lambda: engine.count(rows))])
engine.close()
"""


def run(script: str, url: str, folder: Path, seconds: float) -> list[str]:
    """Run a script in a process of its own: what it kills is its own."""
    done = subprocess.run(
        [sys.executable, "-c", _BEGIN + script, url],
        capture_output=True,
        text=True,
        timeout=seconds,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


@pytest.mark.slow
def test_a_killed_driver_is_said_to_be_lost_and_another_can_be_begun(tmp_path: Path):
    found = run(_DRIVER, "spark://local", tmp_path, 300)
    assert found == ["['connection-lost', 'connection-lost']", "2"]


@pytest.mark.slow
def test_killed_workers_lose_what_they_kept_and_nothing_else(tmp_path: Path):
    from tests.servers import spark_cluster

    with spark_cluster(tmp_path) as url:
        found = run(_WORKER, url, tmp_path, 500)
    assert found == ["['connection-lost', 'done']"]
