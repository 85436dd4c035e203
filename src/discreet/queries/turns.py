"""Whose turn it is: questions about different attributes are decided side by side."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Collection, Iterator

__all__ = ["Turns"]


class Turns:
    """Lets one at a time decide on an attribute, and one alone change everything.

    Examples
    --------
    >>> turns = Turns()
    >>> with turns.on({"salary"}), turns.on({"age"}):
    ...     "both at once"
    'both at once'
    >>> with turns.alone():
    ...     "nobody else"
    'nobody else'
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._busy: set[str] = set()
        self._alone = False
        self._waiting = 0  # for being alone

    @contextlib.contextmanager
    def on(self, names: Collection[str]) -> Iterator[None]:
        """Wait until nobody else decides on these, and keep others from it."""
        with self._changed:
            self._changed.wait_for(lambda: not (self._alone or self._waiting) and self._free(names))
            self._busy.update(names)
        try:
            yield
        finally:
            with self._changed:
                self._busy.difference_update(names)
                self._changed.notify_all()

    def _free(self, names: Collection[str]) -> bool:
        return self._busy.isdisjoint(names)

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Wait until nobody decides on anything, before all who come later."""
        with self._changed:
            self._waiting += 1
            try:
                self._changed.wait_for(lambda: not (self._alone or self._busy))
            finally:
                self._waiting -= 1
                self._changed.notify_all()
            self._alone = True
        try:
            yield
        finally:
            with self._changed:
                self._alone = False
                self._changed.notify_all()
