"""A plug-in for pytest that writes down which slow tests ran, and how they ended.

    python -m pytest -p tests.slow_record -m slow tests/queries

Rows of docs/benchmarks/slow.md are replaced for the tests that ran and kept for all others, so that
any part of the slow tests can be run at a time.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks" / "slow.md"
HEAD = """# Slow tests

What `make test-slow` ran last, test by test; `scripts/slow-record PATH…` runs some of them and
renews their rows. Seeds are those written in the test; durations are wall-clock seconds of all cases
together.

| test | cases | result | seeds | seconds | commit | date |
|---|---|---|---|---|---|---|
"""
_SEEDS = re.compile(r"(?:default_rng|seeded|Random|SEEDED|seed=)\(?(\d+)")


@dataclasses.dataclass
class Row:
    """What became of the cases of one test."""

    cases: int = 0
    outcomes: set[str] = dataclasses.field(default_factory=set)
    seeds: set[int] = dataclasses.field(default_factory=set)
    seconds: float = 0.0

    def line(self, test: str, commit: str) -> str:
        """Return the row of the page."""
        order = ("failed", "passed", "skipped")
        result = next((name for name in order if name in self.outcomes), "skipped")
        date = time.strftime("%Y-%m-%d")
        cells = (f"`{test}`", self.cases, result, told(self.seeds), f"{self.seconds:.0f}", commit, date)  # fmt: skip
        return "| " + " | ".join(map(str, cells)) + " |"


def told(seeds: Iterable[int]) -> str:
    """Return seeds in few words: runs of numbers by their ends.

    >>> told({0, 1, 2, 3, 7})
    '0–3, 7'
    """
    runs: list[list[int]] = []
    for seed in sorted(seeds):
        if runs and seed == runs[-1][-1] + 1:
            runs[-1].append(seed)
        else:
            runs.append([seed])
    return ", ".join(str(r[0]) if len(r) == 1 else f"{r[0]}–{r[-1]}" for r in runs)


def merged(page: str, rows: dict[str, str]) -> str:
    """Return the page with some rows replaced or added, in the order of the tests' names."""
    kept = dict(re.findall(r"^(?=\| `([^`]+)`)(.*)$", page, flags=re.MULTILINE))
    return HEAD + "\n".join(line for _, line in sorted({**kept, **rows}.items())) + "\n"


class Record:
    """Collects the reports of a run and renews the page when it ends."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take in what became of a case."""
        facts = dict(report.user_properties)
        if "slow" not in facts:
            return
        test = report.nodeid.split("[")[0].split("@")[0]
        row = self.rows.setdefault(test, Row())
        row.seconds += report.duration
        row.seeds |= set(facts["slow"])
        if report.when == "call" or report.outcome != "passed":
            row.outcomes.add(report.outcome)
            row.cases += 1

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Renew the page."""
        if not self.rows:
            return
        commit = _commit()
        before = PAGE.read_text() if PAGE.exists() else ""
        rows = {test: row.line(test, commit) for test, row in self.rows.items()}
        PAGE.write_text(merged(before, rows))
        terminalreporter.write_line(f"{len(rows)} slow tests recorded in {PAGE.name}")


def _commit() -> str:
    def git(*arguments: str) -> str:
        command = ["git", "-C", str(PAGE.parent), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", "../../src", "../../tests")
    return git("rev-parse", "--short", "HEAD") + ("+" if changed else "")


def pytest_configure(config: pytest.Config) -> None:
    """Record in the process that starts the others, which sees all reports."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Record(), "slow-record")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Send the seeds of a slow test along with its report."""
    if item.get_closest_marker("slow") is None or not isinstance(item, pytest.Function):
        return
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    seeds = {value for name, value in parameters.items() if "seed" in name and isinstance(value, int)}  # fmt: skip
    seeds |= {int(found) for found in _SEEDS.findall(inspect.getsource(item.function))}
    item.user_properties.append(("slow", sorted(seeds)))
