"""Questions that a party has read and that wait to be run."""

from __future__ import annotations

import time
from typing import Generic, TypeVar

from discreet.errors import RefusedError

__all__ = ["Drawer"]

_MOST = 16

Kept = TypeVar("Kept")


class Drawer(Generic[Kept]):
    """What analysts prepared, by session, for as long as a party waits.

    Of one analyst the newest sixteen are kept: questions that it gave up keep neither it nor others out.

    Examples
    --------
    >>> drawer = Drawer(60.0)
    >>> for session in range(17):
    ...     drawer.keep(f"s{session}", "ann", session)
    >>> [drawer.take(session, "ann") for session in ("s1", "s16")]
    [1, 16]
    >>> drawer.take("s0", "ann")
    Traceback (most recent call last):
    discreet.errors.RefusedError: nothing was prepared in this session ...
    """

    def __init__(self, time_limit: float) -> None:
        self._time_limit = time_limit
        self._kept: dict[str, tuple[float, str, Kept]] = {}

    def keep(self, session: str, analyst: str, what: Kept) -> None:
        """Keep what was prepared; a session prepares once."""
        now = time.monotonic()
        self._kept = {
            one: kept for one, kept in self._kept.items() if now - kept[0] < self._time_limit
        }
        if session in self._kept:
            raise RefusedError("this session has its question already", code="session-taken")
        mine = [one for one, (_, asked, _) in self._kept.items() if asked == analyst]
        for oldest in mine[: max(len(mine) - _MOST + 1, 0)]:
            del self._kept[oldest]
        self._kept[session] = (now, analyst, what)

    def take(self, session: str, analyst: str) -> Kept:
        """Return what this analyst prepared in a session, once."""
        _, asked, found = self._kept.get(session, (0.0, "", None))
        if found is None or asked != analyst:
            raise RefusedError("nothing was prepared in this session", code="not-prepared")
        del self._kept[session]
        return found
