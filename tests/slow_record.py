"""A plug-in for pytest that writes down which slow tests ran, and how they ended.

    python -m pytest -p tests.slow_record -m slow tests/queries

Rows of docs/benchmarks/slow.md are replaced for the tests that ran and kept for all others, so that
any part of the slow tests can be run at a time. A test of which only some cases ran gets a row for
each of them.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import subprocess
import time
from collections import Counter
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks" / "slow.md"
HEAD = """# Slow tests

What `make test-slow` ran last, test by test; `scripts/slow-record PATH…` runs some of them and
renews their rows. A test of which only some cases ran has a row for each of them, and "cases" says
how many there are. Seeds are those written in the test; durations are wall-clock seconds of all cases together.

| test | cases | result | seeds | seconds | commit | date |
|---|---|---|---|---|---|---|
"""
#: How many slow cases each test has.
_EXIST = pytest.StashKey[Counter[str]]()
_SEEDS = re.compile(r"(?:default_rng|seeded|Random|SEEDED|seed=)\(?(\d+)")


@dataclasses.dataclass
class Row:
    """What became of the cases of one test."""

    cases: int = 0
    exist: int = 0
    outcomes: set[str] = dataclasses.field(default_factory=set)
    seeds: set[int] = dataclasses.field(default_factory=set)
    seconds: float = 0.0

    def line(self, test: str, commit: str) -> str:
        """Return the row of the page."""
        order = ("failed", "passed", "skipped")
        result = next((name for name in order if name in self.outcomes), "skipped")
        date = time.strftime("%Y-%m-%d")
        cells = (f"`{test}`", f"{self.cases} of {self.exist}", result, told(self.seeds), f"{self.seconds:.0f}", commit, date)  # fmt: skip
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


def together(cases: dict[str, Row]) -> dict[str, Row]:
    """Return one row for each test of which all cases ran, and those of single cases of others."""
    rows: dict[str, Row] = {}
    ran = Counter(whole_test(name) for name in cases)
    for name, row in cases.items():
        test = whole_test(name)
        one = rows.setdefault(test if ran[test] == row.exist else name, Row(exist=row.exist))
        one.cases += row.cases
        one.outcomes |= row.outcomes
        one.seeds |= row.seeds
        one.seconds += row.seconds
    return rows


def whole_test(name: str) -> str:
    """Return the test that a case belongs to.

    >>> whole_test("tests/test_a.py::test_a[1-x]")
    'tests/test_a.py::test_a'
    """
    return name.partition("[")[0]


def merged(page: str, rows: dict[str, str]) -> str:
    """Return the page with some rows replaced or added, in the order of the tests' names."""
    kept = dict(re.findall(r"^(?=\| `([^`]+)`)(.*)$", page, flags=re.MULTILINE))
    kept = {name: line for name, line in kept.items() if whole_test(name) not in rows}
    return HEAD + "\n".join(line for _, line in sorted({**kept, **rows}.items())) + "\n"


class Record:
    """Collects the reports of a run and renews the page when it ends."""

    def __init__(self) -> None:
        self.commit = _commit()
        self.cases: dict[str, Row] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take in what became of a case."""
        facts = dict(report.user_properties)
        if "slow" not in facts:
            return
        row = self.cases.setdefault(report.nodeid.split("@")[0], Row(exist=facts["exist"]))
        row.seconds += report.duration
        row.seeds |= set(facts["slow"])
        if report.when == "call" or report.outcome != "passed":
            row.outcomes.add(report.outcome)
            row.cases = 1

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Renew the page."""
        if not self.cases:
            return
        before = PAGE.read_text() if PAGE.exists() else ""
        rows = {name: row.line(name, self.commit) for name, row in together(self.cases).items()}
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


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem(collector: pytest.Collector) -> Generator[None, Any, Any]:
    """Count the slow cases of each test, whichever of them are chosen to run."""
    made = yield
    counted = collector.config.stash.setdefault(_EXIST, Counter())
    for item in made if isinstance(made, list) else ():
        if isinstance(item, pytest.Function) and item.get_closest_marker("slow") is not None:
            counted[whole_test(item.nodeid)] += 1
    return made


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Send the seeds and the number of cases of a slow test along with its report."""
    if item.get_closest_marker("slow") is None or not isinstance(item, pytest.Function):
        return
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    seeds = {value for name, value in parameters.items() if "seed" in name and isinstance(value, int)}  # fmt: skip
    seeds |= {int(found) for found in _SEEDS.findall(inspect.getsource(item.function))}
    item.user_properties.append(("slow", sorted(seeds)))
    item.user_properties.append(("exist", item.config.stash[_EXIST][whole_test(item.nodeid)]))
