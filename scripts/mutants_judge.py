"""A plug-in for pytest that judges mutants in one warm process.

Tests are collected once. To trace, a child runs them all and writes down which lines of the sources
each of them executes. To judge, every mutant gets a child of its own, where the changed code takes
the place of the old one and the tests that execute the changed lines run until one fails. `scripts/mutants` starts it and reads what it wrote.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import resource
import signal
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings

#: What `scripts/mutants` asks for; see there.
JOB = json.loads(Path(os.environ["MUTANTS_JOB"]).read_text())
#: A child whose address space grows beyond this has lost its way.
MEMORY = 8 << 30
KILLED, SURVIVED = 3, 0

# Shrinking a failing example would take longer than finding it; one failure is enough here.
settings.register_profile(
    "mutants",
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
)
settings.load_profile("mutants")


class TooLongError(BaseException):
    """A test took more CPU time than one may that is to judge many mutants."""


reports: list[pytest.TestReport] = []


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep what became of the test that runs."""
    reports.append(report)


def pytest_runtestloop(session: pytest.Session) -> bool:
    """Trace the tests, or judge the mutants; pytest's own loop does not run."""
    items = {item.nodeid: item for item in session.items if not _left_out(item)}
    if JOB["task"] == "trace":
        _in_child(lambda: _trace(list(items.values())), None, None)
        return True
    for name in JOB["modules"]:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    with Path(JOB["output"]).open("a") as out:
        for mutant in JOB["mutants"]:
            began = time.monotonic()
            fate, by = _judge(mutant, [items[test] for test in mutant["tests"] if test in items])
            took = round(time.monotonic() - began, 1)
            found = {"number": mutant["number"], "fate": fate, "by": by, "seconds": took}
            out.write(json.dumps(found) + "\n")
            out.flush()
    return True


def _passes(item: pytest.Item, following: pytest.Item | None) -> bool:
    """Run a test as pytest would."""
    reports.clear()
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
    return not any(report.failed for report in reports)


def _left_out(item: pytest.Item) -> bool:
    """Laws of families that do not concern the sources are not run."""
    families = JOB["families"]
    return "laws/test_laws.py" in item.nodeid and not any(f"[{f}:" in item.nodeid for f in families)


def _trace(items: list[pytest.Item]) -> int:
    """Write which lines each test executes, how long it takes, and what it imports."""
    lines: dict[str, dict[int, list[str]]] = {}
    sources, times, before = set(JOB["sources"]), {}, set(sys.modules)

    def stop(*_: object) -> None:
        raise TooLongError

    signal.signal(signal.SIGVTALRM, stop)
    for place, item in enumerate(items):
        seen: set[tuple[str, int]] = set()
        began, passed = time.process_time(), False
        with contextlib.suppress(TooLongError), _following(sources, seen):
            signal.setitimer(signal.ITIMER_VIRTUAL, JOB["longest"])
            passed = _passes(item, items[place + 1] if place + 1 < len(items) else None)
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        if passed:
            times[item.nodeid] = time.process_time() - began
            for path, line in sorted(seen):
                lines.setdefault(path, {}).setdefault(line, []).append(item.nodeid)
    roots = ("discreet", "duckdb", "highspy", "numba", "opendp", "pandas", "scipy", "sklearn")
    new = [name for name in sys.modules if name not in before and name.split(".")[0] in roots]
    Path(JOB["output"]).write_text(json.dumps({"lines": lines, "times": times, "modules": new}))
    return SURVIVED


@contextlib.contextmanager
def _following(sources: set[str], seen: set[tuple[str, int]]) -> Iterator[None]:
    """Write down the lines of the sources that are executed."""
    missing: dict[types.CodeType, set[int]] = {}

    def enter(frame: types.FrameType, *_: Any) -> Callable[..., Any] | None:
        code = frame.f_code
        left = missing.get(code)
        if left is None:
            of_sources = code.co_filename in sources
            left = {line for *_, line in code.co_lines() if line} if of_sources else set()
            missing[code] = left
        if not left:
            return None

        def step(frame: types.FrameType, *_: Any) -> Callable[..., Any] | None:
            if frame.f_lineno in left:
                left.discard(frame.f_lineno)
                seen.add((code.co_filename, frame.f_lineno))
            return step if left else None

        return step(frame)

    threading.settrace(enter)
    sys.settrace(enter)
    try:
        yield
    finally:
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]


def _judge(mutant: dict[str, Any], items: list[pytest.Item]) -> tuple[str, str]:
    """Return what became of a mutant and which test killed it."""
    if not items:
        return "not reached", ""
    by = Path(JOB["output"] + ".by")
    by.write_text("")

    def run() -> int:
        if mutant["function"]:
            _change(mutant)
        for place, item in enumerate(items):
            by.write_text(item.nodeid)
            following = items[place + 1] if place + 1 < len(items) else None
            # As in CI: what fails by accident passes when drawn again.
            if not any(_passes(item, following) for _ in range(3)):
                return KILLED
        return SURVIVED

    ended = _in_child(run, 20 + 3 * mutant["expected"], 60 + 10 * mutant["expected"])
    if ended == SURVIVED:
        return "survived", ""
    return "killed" if ended == KILLED else "killed by time", by.read_text()


def _change(mutant: dict[str, Any]) -> None:
    """Put the changed code in the place of the old one, in this process alone."""
    path = mutant["file"]
    importlib.import_module(mutant["module"])
    changed = compile(mutant["text"], path, "exec")
    new = {(code.co_qualname, code.co_firstlineno): code for code in _codes(changed)}
    for one in gc.get_objects():
        if isinstance(one, types.FunctionType) and one.__code__.co_filename == path:
            code = new.get((one.__code__.co_qualname, one.__code__.co_firstlineno))
            if code is not None:
                one.__code__ = code


def _change_on_import(mutant: dict[str, Any]) -> None:
    """Have the changed text imported: what it changes is executed when the module is."""
    original = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, name: str) -> types.CodeType | None:
        if loader.path == mutant["file"]:
            return compile(mutant["text"], loader.path, "exec")
        return original(loader, name)

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign]


if JOB["task"] == "judge" and not JOB["mutants"][0]["function"]:
    assert len(JOB["mutants"]) == 1
    _change_on_import(JOB["mutants"][0])


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _in_child(work: Callable[[], int], seconds: float | None, wall: float | None) -> int:
    """Run something in a child of this process; return how it ended, -1 if it had to be stopped."""
    child = os.fork()
    if child == 0:
        status = KILLED
        try:
            os.setsid()
            null = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(null, stream)
            if seconds is not None:
                resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 1))
                resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            status = work()
        finally:
            os._exit(status)
    end = time.monotonic() + wall if wall else None
    while True:
        found, status = os.waitpid(child, os.WNOHANG if end else 0)
        if found:
            with contextlib.suppress(OSError):
                os.killpg(child, signal.SIGKILL)
            return os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else -1
        if end and time.monotonic() > end:
            with contextlib.suppress(OSError):
                os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return -1
        time.sleep(0.02)
