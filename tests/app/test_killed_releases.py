"""A release that is killed leaves the earlier one or its own, whole, and the next one cleans up."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
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


def command(folder: Path, k: int, target: Path) -> subprocess.Popen[bytes]:
    policy = folder / f"policy-{k}.yaml"
    words = [sys.executable, "-m", "discreet", "release", str(policy), "-o", str(target)]
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def require_whole(target: Path) -> int:
    """Return which of the policies wrote a folder; it holds all of that and nothing else."""
    stated = json.loads((target / "record.json").read_text())
    files = {f.relative_to(target).as_posix() for f in target.rglob("*") if f.is_file()}
    assert files == {"record.json", *stated["files"]}
    assert dc.verify(target).holds
    (one,) = [k for k in (4, 9) if f"k-anonymity: {k}" in (target / "policy.yaml").read_text()]
    assert {job["name"] for job in stated["done"]} == {"records", f"permuted-{one}"}
    return one


def killed(folder: Path, times: int, source: random.Random) -> tuple[int, int]:
    """Kill releases at random moments; return how many had replaced, and how many were in time."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(20, 60, 200), "region": rng.choice(["N", "S"], 200)})
    frame.assign(salary=rng.permutation(200) * 500).to_csv(folder / "people.csv", index=False)
    for k in (4, 9):
        (folder / f"policy-{k}.yaml").write_text(POLICY.format(k=k))
    target, replaced, kept = folder / "out", 0, 0
    start = time.monotonic()
    assert command(folder, 4, target).wait() == 0
    length, held = time.monotonic() - start, require_whole(target)
    for number in range(times):
        k = 13 - held  # the other one
        place = target if number % 3 else folder / f"new-{number}"
        with command(folder, k, place) as process:
            # Most of it is reading and searching: the last part is where files are written.
            time.sleep(length * (source.random() if number % 2 else 0.7 + 0.4 * source.random()))
            process.send_signal(source.choice([signal.SIGKILL, signal.SIGTERM]))
        if place != target:
            if place.exists():
                assert require_whole(place) == k
            continue
        found = require_whole(target)
        replaced, kept, held = replaced + (found == k), kept + (found != k), found
    assert command(folder, 13 - held, target).wait() == 0
    assert not [entry.name for entry in folder.iterdir() if entry.name.startswith(".")]
    return replaced, kept


def test_killed_releases_leave_a_whole_folder(tmp_path):
    killed(tmp_path, 3, random.Random(5))


@pytest.mark.slow
def test_a_hundred_killed_releases_leave_a_whole_folder(tmp_path):
    replaced, kept = killed(tmp_path, 100, random.Random(6))
    print(f"{replaced} releases were in time, {kept} were not")  # noqa: T201  # figures
    assert kept > 0
