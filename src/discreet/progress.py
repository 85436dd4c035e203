"""How long work tells its caller where it is, without knowing about terminals."""

from __future__ import annotations

from typing import Protocol

__all__ = ["Progress", "silent"]


class Progress(Protocol):
    """Called as work goes on: what is being done, how much of it is done, out of how much.

    The stage is shown to people, so it names no value from the data.
    """

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Show the state of the work."""


def silent(stage: str, done: int, total: int) -> None:
    """Show nothing."""
