"""Names from a policy that become names of files and folders."""

from __future__ import annotations

import re

__all__ = ["no_file_name"]

#: Names that are devices on Windows, with any suffix: a folder of that name cannot be copied there.
_DEVICES = {"con", "prn", "aux", "nul", *(f"{d}{n}" for d in ("com", "lpt") for n in range(10))}
_NAME = re.compile(r"\w(?:[\w .-]{0,98}[\w-])?")


def no_file_name(name: str) -> str:
    """Return why a name cannot be that of a file or folder; empty if it can.

    >>> no_file_name("people 2024"), no_file_name("../people")[:30]
    ('', "'../people' cannot be a folder")
    """
    if not _NAME.fullmatch(name):
        return (
            f"{name[:40]!r} cannot be a folder's name; use up to 100 letters, digits, blanks and "
            "._- and start with a letter or digit"
        )
    if name.casefold().partition(".")[0].rstrip() in _DEVICES:
        return f"{name!r} is a device on Windows; choose another"
    return ""
