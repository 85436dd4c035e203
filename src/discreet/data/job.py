"""A job: one demand on data, stated once.

Each job package has a folder `jobs/` that is a folder of the family ``job``. A member is one kind
of demand; its fields are what may be said about it. Command-line options, policy sections, the
policy's JSON Schema and the reference are made from them, and whoever asks, `run` does the work.
"""

from __future__ import annotations

import abc
import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from discreet.progress import Progress, silent
from discreet.registry import Declaration, Member, parameter
from discreet.report import Report, Rows, plain

if TYPE_CHECKING:
    from discreet.data.engines.driver import Outflow
    from discreet.data.release import Evidence, Release
    from discreet.data.source import Source
    from discreet.randomness import Randomness

__all__ = ["Job", "ReleaseJob", "ReportJob", "Shown"]

#: A title, where there is one, and what stands below it.
Shown = tuple[str | None, "Report | Rows | str"]


@dataclasses.dataclass(frozen=True)
class Job(Member):
    """One demand on data: what is read, what is done, what comes out.

    `open` gives a job what it reads: a dataset for most, ready-made tables for some. Everything
    else receives that. Any, here and below: each job says in its own signatures what it reads and
    what it returns.
    """

    #: How it is typed after `discreet`; a group and a name, or a name alone.
    command: ClassVar[str] = ""
    #: Whether `discreet GROUP FILE` means this command of its group.
    is_default: ClassVar[bool] = False
    #: A command line to show in the help.
    example: ClassVar[str] = ""
    #: Where the policy file lists it.
    section: ClassVar[str] = ""
    #: Whether there must be a file to read.
    needs_source: ClassVar[bool] = True
    #: Suffix of what it writes; empty for a folder.
    suffix: ClassVar[str] = ""
    #: Where the command line writes if not told; nothing is written where this is empty.
    output: ClassVar[str] = ""
    #: What the command line says after writing; {output} is the place.
    note: ClassVar[str] = "wrote {output}"

    @property
    def shares_records(self) -> bool:
        """Whether it reads records just as the source declares them, as other jobs do."""
        return not self.roles()

    def roles(self) -> Mapping[str, str]:
        """Return roles of columns that follow from the demand, for columns that declare none."""
        return {}

    def open(self, data: Source | Any) -> Any:
        """Return what the job reads: of a source its records, of anything else a dataset."""
        from discreet.data.dataset import read
        from discreet.data.source import Source

        if isinstance(data, Source):
            return data.open(roles=self.roles())
        return read(data, roles=self.roles() or None)

    def check(self, data: Any) -> None:
        """Raise an InputError if the demand does not fit the data; releases nothing."""

    def rehearse(self, data: Any) -> None:
        """Raise the error that `run` would end in, where counting the records shows it.

        What this lets pass can be done, but for what only the search itself finds. Policies are
        checked with it; a run needs it not, because it comes to the same errors itself.
        """
        self.check(data)

    def fetches(self, data: Any) -> Outflow:
        """Return what a run would fetch from the engine, by kind, without fetching it.

        All records with all their columns at most, where the job does not say otherwise.
        """
        from discreet.data.dataset import Dataset
        from discreet.data.engines.driver import Fetched, Outflow

        if not isinstance(data, Dataset):
            return Outflow()
        rows, size = data.engine.room_needed(data.relation, data.columns)
        return Outflow((Fetched("records", rows, size, at_most=True),))

    def rows_out(self, data: Source | Any) -> Outflow:
        """Return how many rows a run would fetch, and refuse it if they are too many.

        Nothing is fetched but counts; a run comes to the same refusal itself.
        """
        from discreet.data.dataset import Dataset

        opened = self.open(data)
        self.check(opened)
        found = self.fetches(opened)
        if isinstance(opened, Dataset):
            for part in found.parts:
                if not part.at_most:
                    opened.engine.require_room(part.kind, part.rows, part.bytes)
        return found

    def explanations(self, data: Any) -> Sequence[Report]:
        """Return what the curator asked to see besides the result; confidential."""
        return ()

    def run(
        self, data: Source | Any, *, rng: Randomness | None = None, progress: Progress = silent
    ) -> Any:
        """Do the work and return the result, not yet written.

        Command line, policy and Python all come through here.
        """
        opened = self.open(data)
        self.check(opened)
        return self.perform(opened, rng=rng or self.randomness(opened), progress=progress)

    def randomness(self, data: Any) -> Randomness | None:
        """Return the random source of a run; none means a secure one."""
        return None

    @abc.abstractmethod
    def perform(self, data: Any, *, rng: Randomness | None, progress: Progress) -> Any:
        """Do the work on what `open` returned."""

    @abc.abstractmethod
    def write(self, result: Any, place: str | Path) -> None:
        """Write the result; it appears whole or not at all."""

    def finish(self, result: Any) -> list[str]:
        """Do what was asked for after the result is written; return a note for each."""
        return []

    def verdict(self, result: Any) -> str:
        """Return the result in one sentence."""
        return "for the curator"

    def shown(self, result: Any) -> Iterator[Shown]:
        """Give what people are shown of a result."""
        yield None, result

    def data(self, result: Any) -> Report | Rows:
        """Return what programs are given of a result."""
        found: Report = result
        return found


@dataclasses.dataclass(frozen=True)
class ReleaseJob(Job):
    """A job whose result is a release: something that leaves, with its evidence."""

    section: ClassVar[str] = "releases"

    key: str | None = parameter(
        None,
        help="key file: the same demand on the same data then gives the same release; DP noise is "
        "never repeated",
        file="secret",
        kw_only=True,
    )
    ledger: str | None = parameter(
        None,
        help="memory of earlier releases, with which it is judged and in which it is recorded: a "
        "file, or postgresql://…",
        file="ledger",
        kw_only=True,
    )
    snapshot: str | None = parameter(
        None,
        help="name of this state of the records; a new one when they have changed",
        kw_only=True,
    )
    sign: str | None = parameter(
        None,
        help="key that signs the manifest, made by discreet key new",
        file="secret",
        kw_only=True,
    )
    audience: Literal["public", "controlled"] = parameter(
        "public", help="who receives it: everybody, or those who accept conditions", kw_only=True
    )
    conditions: tuple[str, ...] = parameter(
        (), help="what a receiver accepts, where the audience is controlled", kw_only=True
    )

    def charges(self, data: Any) -> Mapping[str, int]:
        """Return the privacy events that a run would charge to the ledger; draws nothing."""
        return {}

    def randomness(self, data: Any) -> Randomness | None:
        """Return the source that the key determines for this demand on these data."""
        from discreet.data.fingerprint import fingerprint
        from discreet.data.keys import read_key_file
        from discreet.randomness import Randomness

        if self.key is None:
            return None
        demand = json.dumps(_stated(self), sort_keys=True).encode()
        return Randomness.keyed(read_key_file(self.key), demand + fingerprint(data))

    def write(self, result: Any, place: str | Path) -> None:
        """Write output, evidence and report into a folder, recorded in the ledger if there is one."""
        result.write(
            place,
            ledger=self.ledger,
            snapshot=self.snapshot,
            sign=self.sign,
            audience=self.audience,
            conditions=self.conditions,
        )

    @property
    def memory(self) -> dict[str, Any]:
        """What a demand says of the ledger, as keywords of whoever makes the release. Any: texts."""
        return {"ledger": self.ledger, "snapshot": self.snapshot}

    def verdict(self, result: Any) -> str:
        """Return what the release promises."""
        return self.data(result).verdict

    def shown(self, result: Any) -> Iterator[Shown]:
        """Give the verdict."""
        yield None, self.verdict(result)

    def data(self, result: Any) -> Evidence:
        """Return the evidence."""
        release: Release = result
        return release.evidence()


@dataclasses.dataclass(frozen=True)
class ReportJob(Job):
    """A job whose result is a report for the curator: nothing leaves."""

    section: ClassVar[str] = "reports"
    suffix: ClassVar[str] = ".json"

    def write(self, result: Any, place: str | Path) -> None:
        """Write the report as JSON."""
        from discreet.data.atomic import atomic_file

        text = json.dumps(plain(self.data(result)), indent=2, ensure_ascii=False)
        with atomic_file(place) as file:
            file.write_text(text + "\n", encoding="utf-8")


def _stated(declared: Declaration) -> dict[str, Any]:
    """Return what a demand says, without the names of files: those change nothing that is drawn."""

    def of(value: Any) -> Any:
        if isinstance(value, Declaration):
            return _stated(value)
        if isinstance(value, Mapping):
            return {str(key): of(one) for key, one in value.items()}
        if isinstance(value, float) and value.is_integer():
            return int(value)  # 5 and 5.0 are the same demand
        return [of(one) for one in value] if isinstance(value, tuple | list) else plain(value)

    items = [item for item in declared.parameters() if not item.file]
    return {"is": declared.declared_name()} | {i.name: of(getattr(declared, i.name)) for i in items}
