"""The newest version of a table that a user has seen, in a file."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from discreet.data.atomic import atomic_file
from discreet.errors import InputError

__all__ = ["SeenVersion"]


@dataclasses.dataclass(frozen=True)
class SeenVersion:
    """A number in a file: servers that were restored from a backup do not make a user forget it.

    Examples
    --------
    >>> import tempfile
    >>> seen = SeenVersion(Path(tempfile.mkdtemp()) / "seen.txt")
    >>> seen.read()
    0
    >>> seen.write(3)
    >>> seen.read()
    3
    """

    file: Path

    def read(self) -> int:
        """Return the version; 0 where none was seen."""
        try:
            text = self.file.read_text(encoding="ascii").strip()
        except FileNotFoundError:
            return 0
        except (OSError, ValueError):
            text = ""
        if not text.isdigit() or len(text) > 18:
            raise InputError(
                "the file with the newest version seen cannot be read",
                code="seen-version",
                hint="restore it; without it an older version could be believed",
                file=self.file,
            )
        return int(text)

    def write(self, version: int) -> None:
        """Remember a version."""
        if version != self.read():
            with atomic_file(self.file) as file:
                file.write_text(f"{version}\n", encoding="ascii")
