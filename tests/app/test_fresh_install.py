"""A fresh environment: the wheel is built, installed without extras, and the demo runs."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.servers import unavailable

ROOT = Path(__file__).parents[2]


def spent() -> float:
    """CPU seconds of processes that ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def size(folder: Path) -> int:
    """Bytes of all files below a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


@pytest.mark.slow
def test_the_wheel_installs_and_the_demo_runs_without_extras(tmp_path, capsys):
    # Nothing of this tree or of the environment of the tests may help the installed program.
    alone = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}

    def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(word) for word in words],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=alone,
        )

    wheels, home = tmp_path / "wheels", tmp_path / "fresh"
    pip = ("-m", "pip", "--disable-pip-version-check", "--quiet")
    built = run(sys.executable, *pip, "wheel", "--no-deps", "--wheel-dir", wheels, ROOT)
    assert built.returncode == 0, built.stderr
    (wheel,) = wheels.glob("discreet-*.whl")
    assert run(sys.executable, "-m", "venv", home).returncode == 0
    python, started, cpu = home / "bin/python", time.monotonic(), spent()
    installed = run(python, *pip, "install", "--no-compile", "-c", ROOT / "constraints.txt", wheel)
    if installed.returncode and "No matching distribution" in installed.stderr:
        unavailable("the packages of the core are not to be had here")
    assert installed.returncode == 0, installed.stderr
    install = (time.monotonic() - started, spent() - cpu)
    (packages,) = home.glob("lib/python*/site-packages")
    told = run(home / "bin/discreet", "--version").stdout
    assert told.startswith("discreet ")
    names = {place.name for place in packages.iterdir()}
    assert not names & {
        "opendp",
        "openpyxl",
        "weasyprint",
        "psycopg",
        "fastapi",
        "pyspark",
        "pytest",
    }
    started, cpu = time.monotonic(), spent()
    demo = run(home / "bin/discreet", "demo", "-o", tmp_path / "demo")
    assert demo.returncode == 0, demo.stdout[-2000:] + demo.stderr[-2000:]
    assert "Attacks before and after" in (tmp_path / "demo/report.html").read_text(encoding="utf-8")
    # A newcomer's own file, too: what needs an extra says which.
    lines = [f"{20 + n % 50};{'mf'[n % 2]};{n % 3}" for n in range(300)]
    (tmp_path / "people.csv").write_text("\n".join(["age;sex;ward", *lines]) + "\n")
    for words in (
        ("describe", "people.csv"),
        ("init", "people.csv", "-o", "policy.yaml"),
        ("release", "policy.yaml", "-o", "out"),
    ):
        done = run(home / "bin/discreet", *words)
        assert done.returncode == 0, done.stderr
    (tmp_path / "book.xlsx").write_bytes(b"PK\x03\x04")
    missing = run(home / "bin/discreet", "describe", "book.xlsx")
    assert "discreet[files]" in missing.stderr
    with capsys.disabled():
        sys.stdout.write(
            f" [wheel {wheel.stat().st_size / 1e6:.1f} MB, core {size(packages) / 1e6:,.0f} MB, "
            f"install {install[0]:.0f} s ({install[1]:.0f} CPU s), demo "
            f"{time.monotonic() - started:.0f} s ({spent() - cpu:.0f} CPU s)] "
        )
