"""How long work tells its caller where it is, without knowing about terminals."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Iterator
from typing import Protocol

__all__ = ["Progress", "silent", "tell", "told"]


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
