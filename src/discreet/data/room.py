"""Disks that are full: one error for all of them."""

from __future__ import annotations

import contextlib
import errno
import re
from collections.abc import Iterator
from pathlib import Path

from discreet.errors import EngineError

__all__ = ["disk_full", "is_full", "room_for"]

#: What the system says when a disk, a quota or the largest size of a file is reached.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
#: How libraries pass that on where they leave out the number itself.
_SAID = re.compile(
    rf"\[errno ({'|'.join(map(str, _FULL))})\]|No space left|File too large|quota exceeded",
    re.IGNORECASE,
)


def disk_full(where: str, hint: str, file: str | Path | None = None) -> EngineError:
    """Return the error of a disk that is full.

    >>> print(disk_full("on the disk", "free some of it"))
    there is no more room on the disk; free some of it [disk-full]
    """
    return EngineError(f"there is no more room {where}", code="disk-full", hint=hint, file=file)


def is_full(error: Exception) -> bool:
    """Whether something could not be written because there is no more room.

    >>> is_full(OSError(errno.ENOSPC, "No space left on device")), is_full(OSError(errno.EPERM, ""))
    (True, False)
    """
    if isinstance(error, OSError) and error.errno in _FULL:
        return True
    return _SAID.search(str(error)) is not None


@contextlib.contextmanager
def room_for(target: str | Path) -> Iterator[None]:
    """Explain a disk that has no room for what is written inside."""
    try:
        yield
    except OSError as error:
        if not is_full(error):
            raise
        raise disk_full(
            "on the disk of the output",
            "free some of it, or write elsewhere; nothing was left behind",
            target,
        ) from None
