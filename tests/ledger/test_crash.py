"""kill −9 under load: nothing answered that the ledger does not hold, no budget lost."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def crash(ledger: str, rounds: int) -> str:
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "tests.ledger.crash", ledger, str(rounds)],
        env={**os.environ, "PYTHONPATH": paths},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_sqlite_survives_a_few_kills(tmp_path):
    assert "5 kills" in crash(str(tmp_path / "ledger.db"), 5)


@pytest.mark.postgres
def test_postgres_survives_a_few_kills(postgres_database):
    assert "3 kills" in crash(postgres_database, 3)


@pytest.mark.slow
def test_sqlite_survives_two_hundred_kills(tmp_path):
    assert "200 kills" in crash(str(tmp_path / "ledger.db"), 200)


@pytest.mark.slow
@pytest.mark.postgres
def test_postgres_survives_two_hundred_kills(postgres_database):
    assert "200 kills" in crash(postgres_database, 200)
