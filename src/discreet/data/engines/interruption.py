"""Ending a statement from another thread: an asker who gave up, or a limit that has passed.

The thread that computes says what may end it (`interruptible`); the engines say how, for as long
as they run something (`ended_by`). Whoever holds the `Interruption` can then end it.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from discreet.errors import EngineError

__all__ = ["Interruption", "check", "ended_by", "interruptible"]


class Interruption:
    """One piece of work that may be ended.

    Examples
    --------
    >>> work = Interruption()
    >>> with interruptible(work):
    ...     work.interrupt()
    ...     check()
    Traceback (most recent call last):
    discreet.errors.EngineError: the statement was ended [interrupted]
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._end: Callable[[], object] | None = None
        self.asked = False

    def interrupt(self) -> None:
        """End what runs now, and let nothing more begin."""
        with self._lock:
            self.asked = True
            if self._end is not None:
                self._end()

    @contextlib.contextmanager
    def running(self, end: Callable[[], object]) -> Iterator[None]:
        """Say how to end what runs inside."""
        with self._lock:
            if self.asked:
                raise interrupted()
            self._end = end
        try:
            yield
        finally:
            with self._lock:  # nobody ends what comes after it
                self._end = None


class _Here(threading.local):
    work: Interruption | None = None


_here = _Here()


def interrupted() -> EngineError:
    """Return the error of a statement that was ended."""
    return EngineError("the statement was ended", code="interrupted")


@contextlib.contextmanager
def interruptible(work: Interruption) -> Iterator[None]:
    """Let what this thread does inside be ended through `work`."""
    before, _here.work = _here.work, work
    try:
        yield
    finally:
        _here.work = before


def check() -> None:
    """Stop here if the work of this thread has been ended."""
    if _here.work is not None and _here.work.asked:
        raise interrupted()


def ended_by(end: Callable[[], object]) -> contextlib.AbstractContextManager[None]:
    """Return a context whose content `end` can end, if this thread's work may be ended at all."""
    work = _here.work
    return contextlib.nullcontext() if work is None else work.running(end)
