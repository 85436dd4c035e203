"""A release that is killed leaves the earlier one or its own, whole, and the next one cleans up."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import discreet as dc

POLICY = """
data:
  source: people.csv
  roles: {{age: quasi, region: quasi, salary: confidential}}
releases:
  - {{name: records, kind: anonymize, models: [{{k-anonymity: {k}}}], method: mondrian}}
  - {{name: permuted-{k}, kind: permutation, sensitive: salary, k: 5, e: 2000}}
"""


#: Holds the imported program and runs commands in forks of itself, told one per line: most of a
#: release of a small file is importing, and all of what is written comes after it.
_WARM = """
import importlib, json, os, sys

def forked(words, told=None):
    child = os.fork()
    if child:
        return child
    null = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(null, number)
    sys.argv = ["discreet", *words]
    from discreet.app.cli.main import main
    code = 0
    try:
        main()
    except SystemExit as end:
        code = int(end.code or 0)
    if told is not None:
        os.write(told, " ".join(sorted(sys.modules)).encode())
    os._exit(code)

for line in sys.stdin:
    words = json.loads(line)
    if "discreet.app.cli.main" in sys.modules:
        child = forked(words)
        print(child, flush=True)
    else:  # the first command says what all others need
        source, told = os.pipe()
        child = forked(words, told)
        print(child, flush=True)
        os.close(told)
        for name in os.fdopen(source).read().split():
            if name not in sys.modules and name.isascii():
                try:
                    importlib.import_module(name)
                except Exception:
                    pass
    sys.stdin.readline()  # until then nobody else has the child's number
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Running:
    """A command that was started, by its process."""

    def __init__(self, pid: int, wait: Callable[[], int]) -> None:
        self.pid, self.wait = pid, wait


class Cold:
    """Runs every command in an interpreter of its own."""

    def start(self, words: list[str]) -> Running:
        process = subprocess.Popen(
            [sys.executable, "-m", "discreet", *words],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        return Running(process.pid, process.wait)


class Warm:
    """Runs every command in a fork of one process that has imported everything."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _WARM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def start(self, words: list[str]) -> Running:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(words) + "\n")
        self.process.stdin.flush()
        return Running(int(self.process.stdout.readline()), self._wait)

    def _wait(self) -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())


def require_whole(target: Path) -> int:
    """Return which of the policies wrote a folder; it holds all of that and nothing else."""
    stated = json.loads((target / "record.json").read_text())
    files = {f.relative_to(target).as_posix() for f in target.rglob("*") if f.is_file()}
    assert files == {"record.json", *stated["files"]}
    assert dc.verify(target).holds
    (one,) = [k for k in (4, 9) if f"k-anonymity: {k}" in (target / "policy.yaml").read_text()]
    assert {job["name"] for job in stated["done"]} == {"records", f"permuted-{one}"}
    return one


def killed(folder: Path, times: int, source: random.Random, runner: Cold | Warm) -> tuple[int, int]:
    """Kill releases at random moments; return how many had replaced, and how many were in time."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(20, 60, 200), "region": rng.choice(["N", "S"], 200)})
    frame.assign(salary=rng.permutation(200) * 500).to_csv(folder / "people.csv", index=False)
    for k in (4, 9):
        (folder / f"policy-{k}.yaml").write_text(POLICY.format(k=k))

    def command(k: int, place: Path) -> Running:
        return runner.start(["release", str(folder / f"policy-{k}.yaml"), "-o", str(place)])

    target, replaced, kept = folder / "out", 0, 0
    assert command(4, target).wait() == 0
    start = time.monotonic()
    assert command(4, target).wait() == 0
    length, held = time.monotonic() - start, require_whole(target)
    for number in range(times):
        k = 13 - held  # the other one
        place = target if number % 3 else folder / f"new-{number}"
        running = command(k, place)
        # Most of it is reading and searching: the last part is where files are written.
        time.sleep(length * (source.random() if number % 2 else 0.7 + 0.4 * source.random()))
        # One that has ended is not waited for yet, so that nobody else has its number.
        with contextlib.suppress(ProcessLookupError):
            os.kill(running.pid, source.choice([signal.SIGKILL, signal.SIGTERM]))
        running.wait()
        if place != target:
            if place.exists():
                assert require_whole(place) == k
            continue
        found = require_whole(target)
        replaced, kept, held = replaced + (found == k), kept + (found != k), found
    assert command(13 - held, target).wait() == 0
    assert not [entry.name for entry in folder.iterdir() if entry.name.startswith(".")]
    return replaced, kept


def test_killed_releases_leave_a_whole_folder(tmp_path):
    killed(tmp_path, 3, random.Random(5), Cold())


@pytest.mark.slow
def test_a_hundred_killed_releases_leave_a_whole_folder(tmp_path):
    warm = Warm()
    with warm.process:
        replaced, kept = killed(tmp_path, 100, random.Random(6), warm)
        warm.process.stdin.close()
    print(f"{replaced} releases were in time, {kept} were not")  # noqa: T201  # figures
    assert kept > 0
