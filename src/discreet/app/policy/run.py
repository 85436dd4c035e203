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
from discreet.data.atomic import atomic_directory
from discreet.data.dataset import Dataset, read
from discreet.data.hierarchy import Hierarchy
from discreet.data.schema import Type
from discreet.errors import InputError, nearest
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
class Input:
    """A file that was read, and what it held: a release repeated from another file says so."""

    file: str
    sha256: str


@dataclasses.dataclass(frozen=True)
class Record(Report):
    """What was done under a policy: enough to do it again."""

    policy: str
    #: The folder that relative paths of the policy start from.
    folder: str
    #: SHA-256 of the policy file, so that the record says which version it was.
    fingerprint: str
    version: str
    time: str
    inputs: tuple[Input, ...]
    done: tuple[Done, ...]
    note: str = (
        "for the curator: publish the folders of the releases, not this file. With the fingerprint "
        "of confidential data a guess at its last unknown value can be verified."
    )

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
    # Codes of a hierarchy are texts, so the columns that have one are read as texts, unless the
    # hierarchy cuts numbers.
    coded = {c: Type.NOMINAL for c, given in source.hierarchies.items() if _of_codes(given)}
    dataset = read(
        place,
        roles=dict(source.roles),
        types=coded | dict(source.types),
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


def _of_codes(given: HierarchySource | list[HierarchySource]) -> bool:
    several = given if isinstance(given, list) else [given]
    return all(one.widths is None and one.cuts is None for one in several)


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


def check_policy(path: str | Path, *, folder: str | Path | None = None) -> Record:
    """Validate a policy against its data; releases nothing."""
    policy, place = load_policy(path), _folder(path, folder)
    dataset = open_source(policy, place)
    done = []
    for name, job in [*policy.releases.items(), *policy.gateways.items()]:
        job.check(dataset)
        done.append(Done(name, job.name, "can be done", None))
    return _record(path, place, policy, done)


def run_policy(
    path: str | Path,
    output: str | Path,
    *,
    only: tuple[str, ...] = (),
    folder: str | Path | None = None,
    progress: Progress = silent,
) -> Record:
    """Run the releases of a policy into `output`, one folder each, and write the record.

    Nothing appears before every release is made. The record and a copy of the policy say what was
    done; `folder` is where relative paths start, if the policy is such a copy.
    """
    policy, place = load_policy(path), _folder(path, folder)
    for name in only:
        if name not in policy.releases:
            guess = nearest(name, policy.releases)
            known = "the policy has " + (", ".join(policy.releases) or "none")
            raise InputError(
                f"the policy has no release named {name!r}",
                code="unknown-release",
                hint=f"write {guess!r}" if guess else known,
            )
    dataset = open_source(policy, place)
    chosen = {n: j for n, j in policy.releases.items() if not only or n in only}
    for job in chosen.values():  # every mistake shows before anything is released
        job.check(dataset)
    done = []
    with atomic_directory(output) as stage:
        for number, (name, job) in enumerate(chosen.items()):
            progress("releases", number, len(chosen))
            release = job.run(dataset, progress=progress)
            release.write(stage / name)
            verdict = release.evidence().verdict
            done.append(Done(name, job.name, verdict, str(Path(output) / name)))
        record = _record(path, place, policy, done)
        text = json.dumps(record.to_dict(), indent=2, ensure_ascii=False) + "\n"
        (stage / "record.json").write_text(text, encoding="utf-8")
        told = _without_server(Path(path).read_text(encoding="utf-8"))
        (stage / "policy.yaml").write_text(told, encoding="utf-8")
    return record


def _without_server(text: str) -> str:
    r"""Return a policy without its section `server:`: the record needs no hash of a password.

    >>> print(_without_server("data: {source: a.csv}\nserver:\n  users: {}\ngateways: []"))
    data: {source: a.csv}
    gateways: []
    """
    import yaml

    tree = yaml.compose(text, Loader=yaml.SafeLoader)
    for key, value in getattr(tree, "value", ()):
        if key.value == "server":
            return text[: key.start_mark.index] + text[value.end_mark.index :].lstrip("\n")
    return text


def _folder(path: str | Path, given: str | Path | None) -> Path:
    return Path(path).parent if given is None else Path(given)


def _record(path: str | Path, folder: Path, policy: Policy, done: list[Done]) -> Record:
    return Record(
        policy=Path(path).name,
        folder=str(folder.resolve()),
        fingerprint=_sha256(Path(path)),
        version=discreet.__version__,
        time=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        inputs=tuple(
            Input(name, _sha256(folder / name))
            for name in _files(policy)
            if (folder / name).is_file()
        ),
        done=tuple(done),
    )


def _files(policy: Policy) -> list[str]:
    """Return the files a policy names, as it names them."""
    found = [] if "://" in policy.data.source else [policy.data.source]
    for given in policy.data.hierarchies.values():
        several = given if isinstance(given, list) else [given]
        found += [one.file for one in several if one.file is not None]
    return list(dict.fromkeys(found))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
