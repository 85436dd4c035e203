"""How long work tells its caller where it is, without knowing about terminals."""

from __future__ import annotations

import contextlib
import contextvars
import time
from collections.abc import Callable, Iterator
from typing import Protocol

__all__ = [
    "OutOfTimeError", "Progress", "limited", "require_time", "seconds_left", "silent", "tell", "told",
    "watched", "watcher",
]  # fmt: skip


class Progress(Protocol):
    """Called as work goes on: what is being done, how much of it is done, out of how much.

    The stage is shown to people, so it names no value from the data.
    """

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Show the state of the work."""


def silent(stage: str, done: int, total: int) -> None:
    """Show nothing."""


_listener: contextvars.ContextVar[Callable[[str], None] | None] = contextvars.ContextVar(
    "listener", default=None
)


@contextlib.contextmanager
def told(listener: Callable[[str], None]) -> Iterator[None]:
    """Pass on what is told inside, such as why nothing seems to happen.

    >>> with told(print):
    ...     tell("starting Spark")
    starting Spark
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def tell(text: str) -> None:
    """Say what is going on, to whoever listens; like a stage, it names no value from the data."""
    listener = _listener.get()
    if listener is not None:
        listener(text)


_watcher: contextvars.ContextVar[Progress] = contextvars.ContextVar("watcher", default=silent)


@contextlib.contextmanager
def watched(progress: Progress) -> Iterator[None]:
    """Show the state of what is done inside, also where no progress is handed down.

    >>> with watched(lambda stage, done, total: print(stage, done, total)):
    ...     watcher()("reading", 1, 2)
    reading 1 2
    """
    token = _watcher.set(progress)
    try:
        yield
    finally:
        _watcher.reset(token)


def watcher() -> Progress:
    """Return what shows the state of work, for what is not handed any progress."""
    return _watcher.get()


class OutOfTimeError(Exception):
    """Work took longer than whoever started it allows; who set the limit says what follows."""


_deadline: contextvars.ContextVar[float | None] = contextvars.ContextVar("deadline", default=None)


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Allow so many CPU seconds of this process for what is done inside.

    >>> with limited(0.0):
    ...     require_time()
    Traceback (most recent call last):
    discreet.progress.OutOfTimeError
    """
    token = _deadline.set(time.process_time() + seconds)
    try:
        yield
    finally:
        _deadline.reset(token)


def seconds_left() -> float | None:
    """Return how many CPU seconds are left; None where there is no limit."""
    deadline = _deadline.get()
    return None if deadline is None else deadline - time.process_time()


def require_time() -> None:
    """End work whose time is over."""
    left = seconds_left()
    if left is not None and left <= 0:
        raise OutOfTimeError
