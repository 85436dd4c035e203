"""What leaves the house: an output together with its evidence."""

from __future__ import annotations

import abc
import contextlib
import dataclasses
import datetime
import html
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import discreet
from discreet.data.atomic import atomic_directory, written_files
from discreet.data.facts import Facts, UncoveredFacts
from discreet.errors import RefusedError
from discreet.report import Report, plain
from discreet.verification import Held

if TYPE_CHECKING:
    from discreet.data.dataset import Dataset

__all__ = ["Evidence", "Release", "Standing"]


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


@dataclasses.dataclass(frozen=True)
class Standing:
    """How a release stands to a ledger: what it was judged with, and what it was charged."""

    #: The ledger, and the snapshot of the records, by their identities.
    ledger: str
    snapshot: str
    #: The last entry that it was judged with.
    after: int
    #: The entry that charged its privacy events.
    charged: int | None = None


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

    #: Where it was judged and charged, if it was made with a ledger.
    standing: Standing | None = None

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

    def title(self) -> str:
        """Return a few words that tell it from others in a list; nothing confidential."""
        return self.evidence().kind

    def records(self) -> Dataset | None:
        """Return the records that it is about; none where it was made of ready cells."""
        return None

    def events(self) -> Mapping[str, int]:
        """Return the privacy events that it spends, as the accountant spells them."""
        return {}

    def discloses(self, memory: Any) -> Sequence[Facts]:
        """Return what it tells, as data for judging later releases.

        `memory` gives the records in the order in which members are listed (`memory.roster`). Any:
        the ledger lies above the nouns.
        """
        del memory
        if self.events():
            return ()
        return (UncoveredFacts(f"a release of the kind {self.evidence().kind} states no facts"),)

    def judge(self, memory: Any) -> None:  # noqa: B027 - what states no facts has nothing to judge
        """Raise if it is not safe together with what `memory` holds. Any: as above."""

    def require_releasable(self, *, unsafe: bool = False) -> None:
        """Raise if it may not leave; `unsafe` says that the curator accepts a verdict of not safe."""
        del unsafe  # what has no verdict of its own may leave

    def write(
        self,
        folder: str | Path,
        *,
        unsafe: bool = False,
        ledger: Any = None,
        snapshot: str | None = None,
        sign: str | Path | None = None,
        audience: str = "public",
        conditions: Sequence[str] = (),
    ) -> Path:
        """Write output, report and `evidence.json`; the folder appears when all is written.

        With a ledger (open, a file, or `postgresql://…`) the release is judged together with all
        earlier ones and recorded before the folder appears, and `manifest.json` names the entry.
        `snapshot` names this state of the records. `sign` is a key that signs the manifest
        (`discreet key new`); `audience` is public or controlled, with a receiver's `conditions`. Any:
        the ledger lies above the nouns.

        A release that is judged not safe is refused, unless the curator says `unsafe=True`; then
        its pages and its evidence say so. Before the folder appears the files are read again, by
        code that had no part in making them.

        Raises
        ------
        EngineError
            If they break a promise; nothing is written then.
        """
        self.require_releasable(unsafe=unsafe)
        if ledger is None and self.standing is not None:
            raise RefusedError(
                "the release was judged with a ledger, which would not remember it",
                code="unrecorded-release",
                hint="write it with ledger=, too",
            )
        with contextlib.ExitStack() as open_until_end:
            recording = None
            if ledger is not None or sign is not None:
                # Found where the public names are: the ledger lies above the nouns.
                recording = open_until_end.enter_context(
                    contextlib.closing(
                        discreet.Recording(
                            self, ledger, snapshot=snapshot, sign=sign, audience=audience,
                            conditions=conditions,
                        )
                    )
                )  # fmt: skip
            self._write_whole(folder, recording)
            if recording is not None:
                recording.published(folder)
        return Path(folder)

    def _write_whole(self, folder: str | Path, recording: Any) -> None:
        """Write all files into a folder that then appears. Any: as above."""
        from discreet.data.formulas import released_formulas
        from discreet.verification.folder import require_kept, verify

        with atomic_directory(folder) as temporary:
            self.write_files(temporary)
            warned = released_formulas(temporary)
            stated = plain(self.evidence()) | {
                **({"cautions": warned} if warned else {}),
                "promises": plain(list(self.promises())),
                **({} if recording is None else {"covers": recording.covers}),
                "files": written_files(temporary),
            }
            evidence = json.dumps(stated, indent=2, ensure_ascii=False)
            (temporary / "evidence.json").write_text(evidence + "\n", encoding="utf-8")
            require_kept(verify(temporary, held=self.held()))
            if recording is not None:
                recording.record(temporary)
