"""Doing what a policy says: read the data, check, release."""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import json
from pathlib import Path
from typing import Any

import discreet
from discreet.app.policy.load import load_policy
from discreet.app.policy.model import HierarchySource, Policy
from discreet.data.atomic import atomic_file
from discreet.data.dataset import Dataset, read
from discreet.data.hierarchy import Hierarchy
from discreet.errors import InputError
from discreet.progress import Progress, silent
from discreet.report import Report, Rows

__all__ = ["Done", "Record", "check_policy", "open_source", "run_policy"]


@dataclasses.dataclass(frozen=True)
class Done:
    """One job of the policy and what came of it."""

    name: str
    kind: str
    verdict: str
    folder: str | None


@dataclasses.dataclass(frozen=True)
class Record(Report):
    """What was done under a policy: enough to do it again."""

    policy: str
    #: SHA-256 of the policy file, so that the record says which version it was.
    fingerprint: str
    version: str
    time: str
    done: tuple[Done, ...]

    def rows(self) -> Rows:
        """One line per job."""
        return ("name", "kind", "verdict", "folder"), [
            dataclasses.astuple(item) for item in self.done
        ]


def open_source(policy: Policy, folder: Path) -> Dataset:
    """Read the data a policy names; relative paths start from the policy's folder."""
    source = policy.data
    place = source.source if "://" in source.source else str(folder / source.source)
    options = {key: getattr(source, key) for key in ("delimiter", "encoding", "decimal", "engine")}
    dataset = read(
        place,
        roles=dict(source.roles),
        types=dict(source.types),
        unit=source.unit,
        weight=source.weight,
        name=source.name,
        **{key: value for key, value in options.items() if value is not None},
    )
    hierarchies: dict[str, Any] = {}
    for column, given in source.hierarchies.items():
        several = given if isinstance(given, list) else [given]
        hierarchies[column] = tuple(_hierarchy(h, folder, dataset, column) for h in several)
    return dataset.replace(schema=dataset.schema.replace(hierarchies=hierarchies))


def _hierarchy(source: HierarchySource, folder: Path, dataset: Dataset, column: str) -> Hierarchy:
    if source.file is not None:
        return _hierarchy_file(folder / source.file, source)
    if source.levels is not None:
        return Hierarchy.from_levels({source.total: source.levels})
    found = dataset.frequencies([column])
    counts = dict(zip(found[column].to_pylist(), found["count"].to_pylist(), strict=True))
    if source.rare is not None:
        named = {str(value): count for value, count in counts.items() if value is not None}
        return Hierarchy.from_rare(named, source.rare, total=source.total)
    numbers = [value for value in counts if isinstance(value, int | float)]
    if not numbers:
        raise InputError(
            f"column {column!r} holds no numbers, so it cannot be cut into intervals",
            code="not-a-number",
            hint="give its hierarchy by file or levels",
            column=column,
        )
    if source.cuts is not None:
        return Hierarchy.from_intervals(source.cuts, values=numbers, total=source.total)
    return Hierarchy.from_intervals(
        width=tuple(source.widths or ()),
        low=min(numbers),
        high=max(numbers),
        values=numbers,
        total=source.total,
    )


def _hierarchy_file(path: Path, source: HierarchySource) -> Hierarchy:
    kind = source.format or ("hrc" if path.suffix.lower() == ".hrc" else _csv_kind(path))
    if kind == "hrc":
        return Hierarchy.from_hrc(path, total=source.total)
    if kind == "arx":
        return Hierarchy.from_arx(path)
    return Hierarchy.from_pairs(path)


def _csv_kind(path: Path) -> str:
    try:
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            first = file.readline()
    except OSError:
        return "pairs"  # whose reader says that the file is missing
    return "pairs" if "parent" in first.lower() else "arx"


def check_policy(path: str | Path) -> Record:
    """Validate a policy against its data; releases nothing."""
    policy = load_policy(path)
    dataset = open_source(policy, Path(path).parent)
    done = []
    for name, job in [*policy.releases.items(), *policy.gateways.items()]:
        job.check(dataset)
        done.append(Done(name, job.name, "can be done", None))
    return _record(path, done)


def run_policy(
    path: str | Path,
    output: str | Path,
    *,
    only: tuple[str, ...] = (),
    progress: Progress = silent,
) -> Record:
    """Run the releases of a policy into `output`, one folder each, and write the record."""
    policy = load_policy(path)
    dataset = open_source(policy, Path(path).parent)
    chosen = {n: j for n, j in policy.releases.items() if not only or n in only}
    for job in chosen.values():  # every mistake shows before anything is released
        job.check(dataset)
    done = []
    for number, (name, job) in enumerate(chosen.items()):
        progress("releases", number, len(chosen))
        release = job.run(dataset, progress=progress)
        folder = release.write(Path(output) / name)
        done.append(Done(name, job.name, release.evidence().verdict, str(folder)))
    record = _record(path, done)
    with atomic_file(Path(output) / "record.json") as file:
        file.write_text(
            json.dumps(record.to_dict(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
        )
    with atomic_file(Path(output) / "policy.yaml") as file:
        file.write_bytes(Path(path).read_bytes())
    return record


def _record(path: str | Path, done: list[Done]) -> Record:
    return Record(
        policy=Path(path).name,
        fingerprint=hashlib.sha256(Path(path).read_bytes()).hexdigest(),
        version=discreet.__version__,
        time=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        done=tuple(done),
    )
