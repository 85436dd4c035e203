"""The newest version of a table that a user has seen, and which one it was, in a file."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

from discreet.data.atomic import atomic_file
from discreet.errors import InputError

__all__ = ["SeenVersion"]

_WRITTEN = re.compile(r"([0-9]{1,18})(?: ([0-9a-f]{1,64}))?")


@dataclasses.dataclass(frozen=True)
class SeenVersion:
    """A number and a digest in a file: a server restored from a backup makes no user forget it.

    The digest tells two tables apart that one publisher signed under one name and number.

    Examples
    --------
    >>> import tempfile
    >>> seen = SeenVersion(Path(tempfile.mkdtemp()) / "seen.txt")
    >>> seen.read()
    (0, '')
    >>> seen.write(3, "c0ffee")
    >>> seen.read()
    (3, 'c0ffee')
    """

    file: Path

    def read(self) -> tuple[int, str]:
        """Return version and root; 0 where none was seen, no root where an older version wrote it."""
        try:
            text = self.file.read_text(encoding="ascii").strip()
        except FileNotFoundError:
            return 0, ""
        except (OSError, ValueError):
            text = ""
        found = _WRITTEN.fullmatch(text)
        if found is None:
            raise InputError(
                "the file with the newest version seen cannot be read",
                code="seen-version",
                hint="restore it; without it an older version could be believed",
                file=self.file,
            )
        return int(found[1]), found[2] or ""

    def write(self, version: int, root: str) -> None:
        """Remember a version and its root."""
        if (version, root) != self.read():
            with atomic_file(self.file) as file:
                file.write_text(f"{version} {root}\n", encoding="ascii")
