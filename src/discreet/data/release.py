"""What leaves the house: an output together with its evidence."""

from __future__ import annotations

import abc
import dataclasses
import datetime
import html
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import discreet
from discreet.data.atomic import atomic_directory, written_files
from discreet.report import Report, plain
from discreet.verification import Held

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
    #: "secure", "keyed", "seeded" or "none": where randomness came from.
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

    def _repr_html_(self) -> str:
        """Show what was done and what it promises, in notebooks."""
        found = self.evidence()
        kind, verdict = html.escape(found.kind), html.escape(found.verdict)
        return f"<p><strong>{kind}</strong>: {verdict}</p>"

    def promises(self) -> Sequence[Mapping[str, Any]]:
        """Return what the files promise, as data by which anybody can verify them.

        Any: each kind of promise has its own facts; see `discreet.verification`.
        """
        return ()

    def held(self) -> Held:
        """Return what the promises also speak of and the files do not show."""
        return Held()

    def require_releasable(self, *, unsafe: bool = False) -> None:
        """Raise if it may not leave; `unsafe` says that the curator accepts a verdict of not safe."""
        del unsafe  # what has no verdict of its own may leave

    def write(self, folder: str | Path, *, unsafe: bool = False) -> Path:
        """Write output, report and `evidence.json`; the folder appears when all is written.

        A release that is judged not safe is refused, unless the curator says `unsafe=True`; then
        its pages and its evidence say so. Before the folder appears the files are read again, by
        code that had no part in making them.

        Raises
        ------
        EngineError
            If they break a promise; nothing is written then.
        """
        from discreet.verification.folder import require_kept, verify

        self.require_releasable(unsafe=unsafe)
        with atomic_directory(folder) as temporary:
            self.write_files(temporary)
            stated = plain(self.evidence()) | {
                "promises": plain(list(self.promises())),
                "files": written_files(temporary),
            }
            evidence = json.dumps(stated, indent=2, ensure_ascii=False)
            (temporary / "evidence.json").write_text(evidence + "\n", encoding="utf-8")
            require_kept(verify(temporary, held=self.held()))
        return Path(folder)
