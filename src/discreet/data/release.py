"""What leaves the house: an output together with its evidence."""

from __future__ import annotations

import abc
import dataclasses
import datetime
import json
from pathlib import Path
from typing import Any

import discreet
from discreet.data.atomic import atomic_directory
from discreet.report import Report, plain

__all__ = ["Evidence", "Release"]


@dataclasses.dataclass(frozen=True)
class Evidence(Report):
    """What was done to a release, and what it promises: everything but a withheld value.

    Examples
    --------
    >>> evidence = Evidence(
    ...     "table", {"rules": ["p-percent"]}, {"unsafe": 0}, {"hidden": 4}, "every cell is safe"
    ... )
    >>> evidence.to_dict()["verdict"], evidence.randomness
    ('every cell is safe', 'none')
    """

    #: "table", "microdata", "permutation" …
    kind: str
    #: Rules, models, methods with their parameters, from `Member.settings`.
    settings: dict[str, Any]
    #: The measured risk and loss, as plain data.
    risk: dict[str, Any]
    loss: dict[str, Any]
    #: One sentence in plain words.
    verdict: str
    #: "secure", "seeded" or "none": where randomness came from.
    randomness: str = "none"
    version: str = discreet.__version__
    time: str = dataclasses.field(
        default_factory=lambda: datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    )


class Release(abc.ABC):
    """Anything that leaves: it can state its evidence and write itself, whole or not at all.

    Examples
    --------
    >>> class Note(Release):
    ...     def evidence(self):
    ...         return Evidence("note", {}, {}, {}, "says nothing about anybody")
    ...
    ...     def write_files(self, folder):
    ...         _ = (folder / "note.txt").write_text("15 records")
    >>> import tempfile
    >>> folder = Note().write(Path(tempfile.mkdtemp()) / "out")
    >>> sorted(path.name for path in folder.iterdir())
    ['evidence.json', 'note.txt']
    """

    @abc.abstractmethod
    def evidence(self) -> Evidence:
        """Return what was done and what it promises."""

    @abc.abstractmethod
    def write_files(self, folder: Path) -> None:
        """Write the output and its pages into an empty folder."""

    def write(self, folder: str | Path) -> Path:
        """Write output, report and `evidence.json`; the folder appears when all is written."""
        with atomic_directory(folder) as temporary:
            self.write_files(temporary)
            evidence = json.dumps(plain(self.evidence()), indent=2, ensure_ascii=False)
            (temporary / "evidence.json").write_text(evidence + "\n", encoding="utf-8")
        return Path(folder)
