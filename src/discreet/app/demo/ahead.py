"""Kernels of a later chapter, compiled by other processes while earlier chapters run."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator

__all__ = ["compiling_ahead"]

#: Shorter waits are not worth a line.
_PATIENCE = 1.0


@contextlib.contextmanager
def compiling_ahead(
    modules: Iterable[str], voice: Callable[[str], None]
) -> Iterator[Callable[[str], None]]:
    """Start a process that calls `warm` of each module; yield a function that waits for one.

    What a process compiles is kept on disk, where this one finds it. A process that fails is of no
    consequence: the kernels are then compiled here, when they are called.
    """
    running = {module: _started(module) for module in modules}

    def wait(module: str) -> None:
        process = running[module]
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            voice("    Compiling what decides on queries; the next run finds it ready …")
            process.wait()

    try:
        yield wait
    finally:
        for process in running.values():
            process.terminate()
            process.wait()


def _started(module: str) -> subprocess.Popen[bytes]:
    code = f"from {module} import warm; warm()"
    quiet = subprocess.DEVNULL
    # Only names of our own modules come here.
    command = [sys.executable, "-c", code]
    return subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet)  # noqa: S603
