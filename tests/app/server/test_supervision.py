"""Workers end with nothing left over."""

from __future__ import annotations

import subprocess
import sys

WORKER = """
import multiprocessing

from discreet.app.server.supervision import _serve


def work(listeners, up):
    import duckdb

    globals()["kept"] = duckdb.connect()
    up()


if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    worker = context.Process(target=_serve, args=(work, (), (), theirs))
    worker.start()
    worker.join()
    raise SystemExit(worker.exitcode)
"""


def test_a_worker_ends_without_lines_about_leaked_objects(tmp_path):
    (tmp_path / "worker.py").write_text(WORKER)
    command = [sys.executable, str(tmp_path / "worker.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
