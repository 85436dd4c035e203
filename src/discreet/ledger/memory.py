"""What a ledger remembers about a dataset, as one more release is judged by it."""

from __future__ import annotations

import copy
import dataclasses
import functools
import os
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from discreet.data.dataset import Dataset
from discreet.data.facts import ClassFacts, Facts, LinearFacts, pack_facts, unpack_facts
from discreet.data.roster import Roster
from discreet.errors import RefusedError
from discreet.ledger.entry import Draft, Entry
from discreet.ledger.opening import open_ledger
from discreet.ledger.population import Population, open_population
from discreet.ledger.store import Ledger

__all__ = ["Earlier", "Memory", "earlier_releases", "record_release", "unpack_roster"]

Ints = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True, eq=False)
class Earlier:
    """A release that the ledger remembers."""

    entry: Entry
    facts: tuple[Facts, ...]

    @property
    def number(self) -> int:
        """The number of its entry."""
        return self.entry.number

    @property
    def snapshot(self) -> str:
        """The identity of the snapshot that it is about."""
        return str(self.entry.details.get("snapshot", ""))

    @property
    def name(self) -> str:
        """What it is called in messages: its number and what it is."""
        return f"release {self.number} ({self.entry.question})"


@dataclasses.dataclass(frozen=True)
class Companion:
    """A release that leaves together with the one that is judged."""

    name: str
    snapshot: str
    number: int = 0


def earlier_releases(ledger: Ledger, dataset: str) -> list[Earlier]:
    """Return the releases about a dataset that a ledger remembers, in order."""
    found = ledger.history(dataset, kind="release")
    return [Earlier(entry, tuple(unpack_facts(entry.answer))) for entry in found]


class Memory:
    """What a ledger remembers about a dataset when one more release is judged.

    Parameters
    ----------
    ledger
        An open ledger, a file or an address `postgresql://…`.
    dataset
        The records that the release is about.
    snapshot
        The name of this state of the records; a new one is needed when they have changed.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.demo import salaries
    >>> with dc.open_ledger() as ledger:
    ...     memory = Memory(ledger, salaries())
    ...     memory.snapshot, len(memory.roster), memory.earlier
    ('1', 15, ())
    """

    def __init__(
        self, ledger: str | Path | Ledger, dataset: Dataset, *, snapshot: str | None = None
    ) -> None:
        self._is_own = not isinstance(ledger, Ledger)
        self.ledger = open_ledger(ledger)
        self.dataset = dataset
        try:
            self.population: Population = open_population(
                dataset, self.ledger, answers=(), snapshot=snapshot
            )
        except BaseException:
            self.close()
            raise
        #: Releases recorded when the memory was read, and the number of the last entry then.
        self.after = 0
        self.earlier: tuple[Earlier, ...] = ()
        self.answers: tuple[Entry, ...] = ()
        self._companions: tuple[tuple[Companion, LinearFacts], ...] = ()
        self.refresh()

    def close(self) -> None:
        """Let go of the ledger, if it was opened here."""
        if self._is_own:
            self.ledger.close()

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def identity(self) -> str:
        """The identity of the snapshot."""
        assert self.population.snapshot is not None
        return self.population.snapshot.identity

    @property
    def snapshot(self) -> str:
        """The name of the snapshot."""
        assert self.population.snapshot is not None
        return self.population.snapshot.name

    def refresh(self) -> None:
        """Read what was released and answered until now."""
        name = self.dataset.name
        kinds = ("exact", "interval", "release")
        newest = max(self.ledger.last(name, kind) for kind in kinds)
        if newest == self.after:
            return
        self.earlier = tuple(earlier_releases(self.ledger, name))
        self.answers = tuple(self.ledger.history(name, kind="exact"))
        if self.ledger.last(name, "interval"):
            raise RefusedError(
                f"the ledger holds interval answers about {name!r}: what they tell together with "
                "exact releases is not judged",
                code="intervals-and-releases",
                hint="release with differential privacy, or keep this dataset for the gateway",
            )
        self.after = newest

    @functools.cached_property
    def key(self) -> bytes:
        """The secret of the ledger behind marks of records."""
        return self.ledger.secret("rosters", os.urandom(32))

    @functools.cached_property
    def roster(self) -> Roster:
        """The records in the order of their marks; kept in the ledger for later snapshots."""
        found = Roster.of(self.dataset, key=self.key)
        for name, entry in self._others("roster"):
            if _share_rows(found.marks, unpack_roster(entry.answer).marks):
                raise _known_as(name, "many of these records")
        self.ledger.record(
            Draft(
                self.dataset.name, "curator", "roster", self.snapshot, self.identity, "roster",
                {"snapshot": self.identity},
                pack_roster(found),
            )
        )  # fmt: skip
        return found

    @functools.cached_property
    def rosters(self) -> dict[str, Roster]:
        """The rosters of all snapshots about which something was released, by their identity."""
        kept = {
            str(entry.details["snapshot"]): unpack_roster(entry.answer)
            for entry in self.ledger.history(self.dataset.name, kind="roster")
        }
        return kept | {self.identity: self.roster}

    def _others(self, kind: str) -> Iterator[tuple[str, Entry]]:
        """Give the entries of a kind about datasets of other names."""
        for name in sorted({known.dataset for known in self.ledger.snapshots()}):
            if name != self.dataset.name:
                yield from ((name, entry) for entry in self.ledger.history(name, kind=kind))

    def require_own(self, facts: Sequence[Facts]) -> None:
        """Refuse facts about amounts of people that were released under another dataset's name."""
        own = [f for f in facts if isinstance(f, LinearFacts) and f.measure and len(f.identities)]
        if not own:
            return
        for name, entry in self._others("release"):
            for fact in unpack_facts(entry.answer):
                if not isinstance(fact, LinearFacts) or not len(fact.identities):
                    continue
                if any(
                    one.measure == fact.measure and _share_rows(one.identities, fact.identities)
                    for one in own
                ):
                    raise _known_as(name, f"{fact.measure!r} of many of these people")

    def snapshot_name(self, identity: str) -> str:
        """Return the name of a snapshot by its identity."""
        known = {s.identity: s.name for s in self.ledger.snapshots()}
        return known.get(identity, "")

    def linear(self) -> list[tuple[Earlier | Companion, LinearFacts]]:
        """Return the linear facts of all releases, and of those that leave together with the next."""
        told: list[tuple[Earlier | Companion, LinearFacts]] = [
            (e, f) for e in self.earlier for f in e.facts if isinstance(f, LinearFacts)
        ]
        return [*told, *self._companions]

    def beside(self, name: str, facts: Sequence[Facts]) -> Memory:
        """Return the memory as it will be when something with these facts has left, too."""
        companion = Companion(name, self.identity)
        _ = self.roster  # read once, for all
        later = copy.copy(self)
        later._is_own = False
        own = tuple((companion, fact) for fact in facts if isinstance(fact, LinearFacts))
        later._companions = (*self._companions, *own)
        return later

    def classes(self) -> list[tuple[Earlier, ClassFacts]]:
        """Return the class facts of all releases."""
        return [(e, f) for e in self.earlier for f in e.facts if isinstance(f, ClassFacts)]

    def now(self, earlier: Earlier, members: Ints, *, absent: int = -1) -> Ints:
        """Return numbers of an earlier release for the records of this snapshot, in roster order.

        Records that were not there, or have changed since, get `absent`.
        """
        if earlier.snapshot == self.identity:
            return members
        then = self.rosters[earlier.snapshot]
        place = self.roster.locate(then)
        return np.where(place >= 0, members[np.maximum(place, 0)], absent)


def _share_rows(one: Ints, other: Ints) -> bool:
    """Whether half of the smaller of two lists of marks are in both, each once."""
    common = len(np.intersect1d(_singles(one), _singles(other), assume_unique=True))
    return common >= max(2, min(len(one), len(other)) / 2)


def _singles(marks: Ints) -> Ints:
    """Return the marks that stand in a list once."""
    found, times = np.unique(marks, return_counts=True)
    return np.asarray(found[times == 1], dtype=np.int64)


def _known_as(name: str, what: str) -> RefusedError:
    return RefusedError(
        f"the ledger knows {what} as {name!r}",
        code="known-by-another-name",
        hint=f"use name={name!r} and a new snapshot (`--name {name} --snapshot …`), so that the "
        "release is judged with the earlier ones",
    )


def pack_roster(roster: Roster) -> bytes:
    """Return the marks of records and units as bytes that a ledger keeps."""
    both = np.concatenate([roster.marks, roster.units]).astype("<i8").tobytes()
    return len(roster).to_bytes(8, "little") + zlib.compress(both, 1)


def unpack_roster(content: bytes) -> Roster:
    """Return the roster of an earlier snapshot."""
    size = int.from_bytes(content[:8], "little")
    both = np.frombuffer(zlib.decompress(content[8:]), dtype="<i8").astype(np.int64)
    return Roster(both[:size], np.arange(size, dtype=np.int64), both[size:])


def record_release(
    memory: Memory, *, kind: str, title: str, digest: str, facts: Sequence[Facts], audience: str
) -> Entry:
    """Record a release durably; `StaleError` if others were recorded since the memory was read."""
    memory.require_own(facts)
    details = {
        "snapshot": memory.identity,
        "release": kind,
        "audience": audience,
        "facts": [fact.summary() for fact in facts],
    }
    draft = Draft(
        memory.dataset.name, "curator", "release", title, digest, "release", details,
        pack_facts(facts),
    )  # fmt: skip
    return memory.ledger.record(draft, after=memory.after)[0]
