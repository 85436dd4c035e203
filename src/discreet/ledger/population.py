"""Whose history this is: records are known again, whatever they are called and wherever they lie.

A ledger keeps one history for each dataset by its name. Before a gateway answers, the records are
compared with those that the ledger knows, by keyed fingerprints and by where they were read from.
The same records under a second name are refused, and so are records that changed since they were
asked about, unless they are named as a new snapshot. A mark beside the source names the ledger, so
that a second ledger is noticed too.
"""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
import json
import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NoReturn

from discreet.data.dataset import Dataset
from discreet.data.origin import Origin
from discreet.data.schema import Role
from discreet.data.snapshot import Snapshot, fingerprint_rows, fingerprint_values
from discreet.errors import InputError, RefusedError
from discreet.ledger.entry import Draft
from discreet.ledger.marks import mark_file, marked_by, read_mark
from discreet.ledger.store import TELLING, Ledger

__all__ = ["Population", "open_population", "require_unmarked"]


@dataclasses.dataclass(frozen=True)
class Population:
    """Records whose history the ledger holds."""

    #: The snapshot of these records; None for a ledger in memory.
    snapshot: Snapshot | None = None
    #: Whether it is the first of its dataset: only then may earlier answers be repeated.
    first: bool = True
    #: Notes for the curator.
    notices: tuple[str, ...] = ()
    #: A file that is read for each question, and its stamp when it was opened.
    file: str = ""
    stamp: tuple[int, ...] = ()

    def require_unchanged(self) -> None:
        """Refuse to answer from a file that was written since it was opened."""
        if self.file and _stamp(self.file) != self.stamp:
            raise RefusedError(
                "the records have changed since the gateway was opened",
                code="changed-data",
                hint="ask the curator to open the gateway again",
            )


def open_population(
    dataset: Dataset, ledger: Ledger, *, answers: Collection[str], snapshot: str | None = None
) -> Population:
    """Return the records as the ledger knows them, or refuse to answer about them.

    `answers` are the kinds of answers to be given: exact, interval or noisy. `snapshot` names the
    state of the data; it must be a new name when the data have changed.

    Examples
    --------
    >>> from discreet.demo import salaries
    >>> from discreet.ledger.opening import open_ledger
    >>> with open_ledger() as ledger:
    ...     open_population(salaries(), ledger, answers={"exact"}).snapshot.name
    ...     open_population(salaries().replace(name="staff"), ledger, answers={"exact"})
    Traceback (most recent call last):
    discreet.errors.RefusedError: the ledger knows these records as 'people'; ...
    """
    if snapshot is not None and not isinstance(snapshot, str):
        raise InputError(
            f"a snapshot is named by a text, found {snapshot!r}",
            code="bad-name",
            hint=f"write snapshot={str(snapshot)!r}",
            parameter="snapshot",
        )
    file = _read_again(dataset)
    stamp = _stamp(file)
    opening = _Opening(dataset, ledger)
    opening.require_one_name()
    found = opening.known_as(snapshot) or opening.admitted(snapshot)
    opening.require_one_told(found, answers)
    if not ledger.is_lasting:  # a mark would name a ledger that nobody can open again
        require_unmarked(dataset)
    marked = opening.mark() if ledger.is_lasting else False
    snapshot_now = opening.recorded(found, marked=marked)
    first = next(s.identity for s in ledger.snapshots() if s.dataset == dataset.name)
    said = [] if marked else [_unmarked(dataset)]
    if opening.is_unknown_history:
        said.append(
            f"answers about {dataset.name!r} were given before the ledger knew fingerprints: "
            "whether the data changed since cannot be told"
        )
    is_first = snapshot_now.identity == first
    return Population(snapshot_now, is_first, tuple(said), file, stamp)


def require_unmarked(dataset: Dataset) -> None:
    """Refuse to answer under a ledger in memory about records that a ledger on disk remembers."""
    origin = dataset.origin
    if origin is not None and read_mark(origin) is not None:
        _refuse_other_ledger(origin)


class _Opening:
    """Records before a ledger."""

    def __init__(self, dataset: Dataset, ledger: Ledger) -> None:
        self._dataset, self._ledger = dataset, ledger
        self._key = ledger.secret("fingerprints", os.urandom(32))
        self._columns = tuple(sorted(dataset.columns))
        self._known = ledger.snapshots()
        self._own = [s for s in self._known if s.dataset == dataset.name]
        self._fingerprints: dict[tuple[str, ...], str] = {}
        self._count, own = fingerprint_rows(dataset.relation, self._columns, key=self._key)
        self._fingerprints[self._columns] = own
        confidential = dataset.schema.with_role(Role.CONFIDENTIAL)
        self._values = tuple(fingerprint_values(dataset.relation, confidential, key=self._key))
        origin = "" if dataset.origin is None else json.dumps(dataclasses.astuple(dataset.origin))
        self._origin = (
            hmac.new(self._key, origin.encode(), hashlib.sha256).hexdigest() if origin else ""
        )

    @property
    def is_unknown_history(self) -> bool:
        """Whether there are answers of a time when no fingerprints were kept."""
        return not self._own and bool(self._ledger.answered(self._dataset.name))

    def _is(self, known: Snapshot) -> bool:
        """Whether the records are those of a snapshot; columns may have been added since."""
        if not set(known.columns) <= set(self._columns):
            return False
        if known.columns not in self._fingerprints:
            _, made = fingerprint_rows(self._dataset.relation, known.columns, key=self._key)
            self._fingerprints[known.columns] = made
        return self._fingerprints[known.columns] == known.fingerprint

    def require_one_name(self) -> None:
        """Refuse records that the ledger knows by another name."""
        for known in self._known:
            if known.dataset == self._dataset.name:
                continue
            same_place = bool(self._origin) and self._origin == known.origin
            # A view without some columns, or with other names for them, is of the same records.
            same_values = not set(self._values).isdisjoint(known.values)
            if same_place or same_values or (self._count and self._is(known)):
                raise RefusedError(
                    f"the ledger knows these records as {known.dataset!r}",
                    code="known-by-another-name",
                    hint=f"use name={known.dataset!r} (`relation: {known.dataset}` in a policy), so "
                    "that answers are judged with the earlier ones",
                )

    def known_as(self, name: str | None) -> Snapshot | None:
        """Return the snapshot that the records are, if the ledger knows it."""
        for known in reversed(self._own):
            if self._is(known):
                if name not in (None, known.name):
                    raise RefusedError(
                        f"these records are the snapshot {known.name!r}",
                        code="known-snapshot",
                        hint=f"write snapshot={known.name!r}, or leave it out",
                    )
                return known
        return None

    def admitted(self, name: str | None) -> Snapshot:
        """Return a new snapshot, if it has a new name or nothing was answered about earlier ones."""
        names = [known.name for known in self._own]
        given = self._ledger.answered(self._dataset.name) if self._own else set()
        if given and (name is None or name in names):
            raise RefusedError(
                f"the records of {self._dataset.name!r} have changed since the ledger's last answer",
                code="changed-data",
                hint=_what_to_write(names, self._columns, self._own),
            )
        own = self._fingerprints[self._columns]
        chosen = name or _next_name(names)
        return Snapshot(
            self._dataset.name, chosen, self._columns, own, identity=own[:32], origin=self._origin
        )

    def require_one_told(self, found: Snapshot, answers: Collection[str]) -> None:
        """Refuse exact and interval answers about two snapshots: they would tell the difference."""
        told = self._ledger.told(self._dataset.name)
        if told in (None, found.identity) or not set(answers).intersection(TELLING):
            return
        earlier = next((s.name for s in self._own if s.identity == told), "another snapshot")
        raise RefusedError(
            f"the ledger holds exact or interval answers about {earlier!r}; the same about "
            f"{found.name!r} would tell who came, went or changed",
            code="changed-data",
            hint=f"open the records of {earlier!r}, or answer about {found.name!r} under "
            "Perturbation alone",
        )

    def mark(self) -> bool:
        """Mark the source as this ledger's; False if no mark can be kept."""
        origin = self._dataset.origin
        if origin is None:
            return False
        mine = self._ledger.identity()
        holder = marked_by(origin, self._dataset.engine, mine)
        if holder is not None and holder != mine:
            _refuse_other_ledger(origin)
        return holder is not None

    def recorded(self, found: Snapshot, *, marked: bool) -> Snapshot:
        """Record the snapshot with the columns that it has now, unless the ledger has it."""
        now = dataclasses.replace(
            found,
            columns=self._columns,
            fingerprint=self._fingerprints[self._columns],
            origin=self._origin,
            marked=marked,
            values=self._values,
        )
        if now in self._own:
            return now
        details = {k: v for k, v in dataclasses.asdict(now).items() if k != "dataset"}
        digest = hashlib.sha256(json.dumps(details, sort_keys=True).encode()).hexdigest()
        self._ledger.record(
            Draft(now.dataset, "curator", "snapshot", now.name, digest, "snapshot", details)
        )
        return now


def _read_again(dataset: Dataset) -> str:
    """Return the file that questions are read from; empty where rows are held still."""
    is_lazy = dataset.format in ("parquet", "arrow") and dataset.origin is not None
    return dataset.origin.place if is_lazy and dataset.origin is not None else ""


def _stamp(file: str) -> tuple[int, ...]:
    try:
        found = Path(file).stat() if file else None
    except OSError:
        return (0,)
    return () if found is None else (found.st_ino, found.st_size, found.st_mtime_ns)


def _next_name(names: Sequence[str]) -> str:
    number = len(set(names)) + 1
    while str(number) in names:
        number += 1
    return str(number)


def _what_to_write(names: Sequence[str], columns: Sequence[str], known: Sequence[Snapshot]) -> str:
    missing = sorted({c for snapshot in known for c in snapshot.columns} - set(columns))
    if missing:
        return f"open the records with all columns that were there: {', '.join(missing)}"
    return (
        f"open the records of {names[-1]!r} again, or name the new ones: "
        f'snapshot="{_next_name(names)}"'
    )


def _unmarked(dataset: Dataset) -> str:
    return (
        f"no mark can be kept beside the source of {dataset.name!r}: answers under another ledger "
        "would not be noticed"
    )


def _refuse_other_ledger(origin: Origin) -> NoReturn:
    file = mark_file(origin)
    where = f"the file {file.name} beside it" if file else "the table discreet_marks of its schema"
    raise RefusedError(
        "another ledger remembers what was answered about this source",
        code="another-ledger",
        hint=f"open it with that ledger; {where} marks it, to be removed only if that ledger's "
        "answers were never given out",
    )
