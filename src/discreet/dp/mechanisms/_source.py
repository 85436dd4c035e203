"""Noise drawn ahead: a call of OpenDP costs more than the few draws an answer needs.

The measurements here add noise to whole numbers that does not depend on them, so that noise drawn
for zeros is noise for any values. Each draw is used once, by one process.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Sequence
from typing import Any

from discreet.errors import EngineError

__all__ = ["Source"]

#: Draws kept ready, at most; more than so many values at once are given to OpenDP themselves.
MOST = 256
#: OpenDP cuts what it returns to 64 bits. Beyond this scale that could touch noise drawn for
#: zeros otherwise than noise on the values; below it, with a chance of less than exp(-1000).
WIDEST = 2.0**53
LARGEST = 2**63 - 1


class Source:
    """Adds the noise of one measurement to whole numbers; safe to share between threads.

    Parameters
    ----------
    measurement
        One of OpenDP's, on vectors of 64-bit whole numbers, with independent noise. Any: OpenDP's
        generated functions are not annotated.
    scale
        The scale of its noise.
    """

    def __init__(self, measurement: Any, scale: float) -> None:
        self.measurement = measurement
        self._most = MOST if scale <= WIDEST else 0
        self._block = 1
        self.forget()
        _SOURCES.add(self)

    def forget(self) -> None:
        """Draw anew from here on."""
        self._ready: list[int] = []
        self._lock = threading.Lock()

    def draw(self, values: Sequence[int]) -> list[int]:
        """Return the values with noise; an empty list needs none."""
        if not values:
            return []
        if len(values) > self._most:
            return self._drawn(values)
        return [
            min(max(int(value) + noise, -LARGEST - 1), LARGEST)
            for value, noise in zip(values, self._taken(len(values)), strict=True)
        ]

    def _taken(self, count: int) -> list[int]:
        with self._lock:
            if len(self._ready) < count:
                # Who asks once waits for little, who goes on asking seldom.
                self._block = min(2 * max(self._block, count), self._most)
                self._ready += self._drawn([0] * self._block)
            taken, self._ready = self._ready[:count], self._ready[count:]
            return taken

    def _drawn(self, values: Sequence[int]) -> list[int]:
        try:
            return [int(value) for value in self.measurement([int(value) for value in values])]
        except Exception as error:  # OpenDP raises its own exception for overflow and bad domains
            raise EngineError("OpenDP could not draw noise", code="noise-failed") from error


_SOURCES: weakref.WeakSet[Source] = weakref.WeakSet()


def _forget_all() -> None:
    for source in list(_SOURCES):
        source.forget()


# Two processes that use the same draws would let their answers cancel the noise.
os.register_at_fork(after_in_child=_forget_all)
