"""Doing what a policy says: read the data, check, release."""

from __future__ import annotations

import dataclasses
import datetime
import functools
import hashlib
import hmac
import json
import secrets
import shutil
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import discreet
from discreet.app.policy.access import Access, permitted_policy
from discreet.app.policy.copy import published_text
from discreet.app.policy.histories import require_one_history
from discreet.app.policy.load import HANDOVER, REPORTS, read_policy
from discreet.app.policy.model import Policy
from discreet.data.addresses import database_file
from discreet.data.atomic import atomic_directory, written_files
from discreet.data.dataset import Dataset
from discreet.data.files import require_file
from discreet.data.formulas import stated_cautions
from discreet.data.job import Job, ReleaseJob
from discreet.data.keys import read_key_file
from discreet.data.signing import read_signing_key
from discreet.dp.caution import cautions
from discreet.errors import InputError, nearest
from discreet.progress import Progress, silent
from discreet.protocols.joint.declaration import JointPolicy
from discreet.registry import Declaration, is_address
from discreet.report import Report, Rows, plain

__all__ = ["Done", "Input", "Record", "Run", "check_policy", "open_source", "run_policy"]

_RECORD, _COPY = "record.json", "policy.yaml"


#: What a SQLite file begins with.
_SQLITE = b"SQLite format 3\0"


@dataclasses.dataclass(frozen=True)
class Done:
    """One job of the policy and what came of it."""

    name: str
    kind: str
    verdict: str
    folder: str | None
    #: When the run began that did it: the record's own time, or that of an earlier run.
    time: str | None = None
    #: The document to hand over with a release, where the policy says what it is about.
    document: str | None = None


@dataclasses.dataclass(frozen=True)
class Input:
    """A file that was read, and its keyed fingerprint: other content has another one."""

    #: From the record's `folder`, or from the root where it lies elsewhere.
    file: str
    fingerprint: str


@dataclasses.dataclass(frozen=True)
class Run:
    """An earlier run of which something is still in the folder."""

    time: str
    version: str
    fingerprint: str
    fingerprint_key: str
    inputs: tuple[Input, ...]


@dataclasses.dataclass(frozen=True)
class Record(Report):
    """What was done under a policy: enough to do it again.

    Fingerprints are HMAC-SHA-256. The key is the curator's and is never written here, so that
    nobody else can test a guess at the data. Where the caller gives no key, one is drawn for the run
    and forgotten: then equal fingerprints mean equal files within this record alone.
    """

    policy: str
    #: The folder that relative paths of the policy and of this record start from.
    folder: str
    #: Keyed fingerprint of the policy file, so that the record says which version it was.
    fingerprint: str
    #: "given" where the caller gave the key of the fingerprints, else "drawn for this run".
    fingerprint_key: str
    version: str
    time: str
    inputs: tuple[Input, ...]
    done: tuple[Done, ...]
    #: Warnings in words, such as of a large epsilon.
    cautions: tuple[str, ...] = ()
    earlier: tuple[Run, ...] = ()
    #: What is in the folder besides this file.
    files: tuple[str, ...] = ()
    note: str = "for the curator: publish the folders of the releases, not this file"

    def rows(self) -> Rows:
        """One line per job."""
        return ("name", "kind", "verdict", "folder"), [
            (item.name, item.kind, item.verdict, item.folder) for item in self.done
        ]

    def __str__(self) -> str:
        """Return the jobs with their verdicts, in lines that fit a terminal."""
        lines: list[str] = []
        for item in self.done:
            lines.append(f"{item.name} ({item.kind})" + (f": {item.folder}" if item.folder else ""))
            lines += textwrap.wrap(
                item.verdict,
                80,
                initial_indent="  ",
                subsequent_indent="  ",
                break_on_hyphens=False,
            )
            lines += [f"  to hand over: {item.document}"] if item.document else []
        return "\n".join(lines)


def open_source(policy: Policy) -> Dataset:
    """Read the data of a policy whose files were permitted."""
    return policy.data.open()


def check_policy(
    path: str | Path,
    *,
    folder: str | Path | None = None,
    allow: Iterable[str | Path] = (),
    password: str | None = None,
) -> Record:
    """Validate a policy against its data; releases nothing.

    Parameters
    ----------
    folder
        Where relative paths start, if not in the policy's own folder.
    allow, password
        What the policy may touch besides files of its folder, and the password of the servers
        among it: see `Access`.
    """
    policy, access = permitted_policy(path, folder=folder, allow=allow, password=password)
    require_one_history(policy, path)
    if policy.gateways and "users" in policy.server.model_fields_set and not policy.server.users:
        raise InputError(
            "the policy names nobody who may ask",
            code="no-users",
            hint=f"run `discreet user NAME --policy {path}`, or leave out `users:`",
            file=path,
        )
    records = _Records(policy)
    for job in _jobs(policy).values():
        _require_files(job)
        job.rehearse(records.of(job))
    _require_ledgers(_jobs(policy).values())
    _require_grants(_jobs(policy).values(), records)
    for service in (*policy.gateways.values(), *policy.retrieval.values()):
        _require_files(service)
        service.check(records.dataset)
    declared = {**_jobs(policy), **policy.gateways, **policy.retrieval}
    done = [Done(name, one.name, "can be done", None) for name, one in declared.items()]
    if policy.joint is not None:
        done.append(Done("joint", "joint", _check_joint(policy.joint, records), None))
    used = (policy.data, *declared.values())
    record = _record(path, access, used, done, key=None)
    alone = _judged_alone(_jobs(policy))
    return dataclasses.replace(record, cautions=(*record.cautions, *alone))


def run_policy(
    path: str | Path,
    output: str | Path,
    *,
    only: tuple[str, ...] = (),
    folder: str | Path | None = None,
    allow: Iterable[str | Path] = (),
    password: str | None = None,
    fingerprint_key: bytes | None = None,
    progress: Progress = silent,
) -> Record:
    """Run the jobs of a policy into `output` and write the record.

    Releases have one folder each, and what is for the curator is in the folder `reports`. Nothing
    appears before every job is done. The record and a copy of the policy say what was done;
    `folder` is where relative paths start, if the policy is such a copy. Results of an earlier run
    are replaced, all at once; with `only`, those of the other jobs stay, and stay in the record.

    Parameters
    ----------
    allow, password
        As for `check_policy`.
    fingerprint_key
        The curator's secret for the fingerprints in the record: with the same key, the same file
        has the same fingerprint in every record.
    """
    policy, access = permitted_policy(path, folder=folder, allow=allow, password=password)
    chosen = _chosen(policy, only)
    records = _Records(policy)
    for job in chosen.values():
        _require_files(job)
    _require_ledgers(chosen.values(), outside=Path(output))
    if policy.data.as_read is not None:
        _ = records.dataset  # a doubt is told even where there is nothing to release
    opened = {name: records.of(job) for name, job in chosen.items()}
    for name, job in chosen.items():  # every mistake shows before anything is released
        job.check(opened[name])
    done: list[Done] = []
    warnings: list[str] = []
    with atomic_directory(output) as stage:
        kept = _kept(Path(output), stage, policy, chosen) if only else None
        for number, (name, job) in enumerate(chosen.items()):
            progress("jobs", number, len(chosen))
            where = _where(name, job)
            _make_parent(stage / where)
            for report in job.explanations(opened[name]):
                _append(stage / REPORTS / f"{name}-explained.json", report)
            result = job.run(opened[name], progress=progress)
            job.write(result, stage / where)
            _finish(job, result, stage / REPORTS)
            document = _hand_over(policy, name, job, result, stage)
            shown = None if document is None else str(Path(output) / HANDOVER / document.name)
            place = str(Path(output) / where)
            done.append(Done(name, job.name, job.verdict(result), place, document=shown))
            if job.section == "releases":
                warnings += [f"{name}: {text}" for text in stated_cautions(stage / where)]
        used = (policy.data, *chosen.values())
        record = _record(path, access, used, done, key=fingerprint_key)
        warnings += _judged_alone(chosen)
        warnings += _without_pdf(policy, done)
        if not policy.releases and policy.about is not None:
            warnings.append(
                "nothing was released: the policy names no release. Decide on its columns, then "
                "add one, or run `discreet init` again"
            )
        record = dataclasses.replace(record, cautions=(*record.cautions, *warnings))
        record = _with_earlier(record, kept, policy)
        (stage / _COPY).write_text(published_text(read_policy(path)), encoding="utf-8")
        record = dataclasses.replace(record, files=tuple(written_files(stage)))
        text = json.dumps(record.to_dict(), indent=2, ensure_ascii=False) + "\n"
        (stage / _RECORD).touch(mode=0o600)
        (stage / _RECORD).write_text(text, encoding="utf-8")
    return record


def _hand_over(policy: Policy, name: str, job: Job, result: Any, stage: Path) -> Path | None:
    """Write the document that goes with a release, where the policy says what it is about.

    Any: see `Job.run`.
    """
    if policy.about is None or job.section != "releases":
        return None
    from discreet.app.policy.handover import handover_page, write_handover

    folder = stage / _where(name, job)
    page = handover_page(name, result, about=policy.about, source=policy.data, folder=folder)
    (stage / HANDOVER).mkdir(exist_ok=True)
    return write_handover(page, stage / HANDOVER, name, pdf=policy.about.pdf)[-1]


def _without_pdf(policy: Policy, done: Sequence[Done]) -> list[str]:
    """Return a caution where documents are pages alone although nobody asked for that."""
    alone = [item.name for item in done if item.document and item.document.endswith(".html")]
    if not alone or policy.about is None or policy.about.pdf is False:
        return []
    from discreet.app.policy.handover import NO_PDF

    return [f"{', '.join(alone)}: {NO_PDF}"]


def _judged_alone(jobs: Mapping[str, Job]) -> list[str]:
    """Return a caution where several releases of the same records are judged one by one."""
    alone = [
        name
        for name, job in jobs.items()
        if job.section == "releases" and getattr(job, "ledger", None) is None
    ]
    if len(alone) < 2:
        return []
    return [
        f"{', '.join(alone)}: each is judged by itself. What they tell together is judged with a "
        "memory: write `ledger: ledger.db` into the policy"
    ]


def _jobs(policy: Policy) -> dict[str, Job]:
    return {**policy.releases, **policy.reports}


def _chosen(policy: Policy, only: tuple[str, ...]) -> dict[str, Job]:
    """Return the jobs that were asked for by name, or all of them."""
    jobs = _jobs(policy)
    for name in only:
        if name not in jobs:
            guess = nearest(name, jobs)
            raise InputError(
                f"the policy has no release named {name!r}",
                code="unknown-release",
                hint=f"write {guess!r}"
                if guess
                else "the policy has " + (", ".join(jobs) or "none"),
            )
    return {name: job for name, job in jobs.items() if not only or name in only}


class _Records:
    """The records of a policy, opened when first needed and shared by all jobs that can."""

    def __init__(self, policy: Policy) -> None:
        self.source = policy.data

    @functools.cached_property
    def dataset(self) -> Dataset:
        return self.source.open()

    def of(self, job: Job) -> Any:
        """Return what a job reads. Any: see `Job.open`."""
        return self.dataset if job.shares_records else job.open(self.source)


def _check_joint(joint: JointPolicy, records: _Records) -> str:
    """See that certificates are there and that an owner's records fit what was agreed."""
    from discreet.protocols.joint.summary import require_offer

    joint.certificates()
    if not records.source.source.strip():
        return "certificates are there; this party has no records"
    require_offer(records.dataset, joint)
    return "certificates are there; the records fit keys and measures"


def _require_grants(jobs: Iterable[Job], records: _Records) -> None:
    """Refuse releases that a ledger's grant does not hold together; nothing is charged."""
    from discreet.dp.grant import require_grant
    from discreet.ledger.opening import open_ledger

    charges: dict[tuple[str, str], dict[str, int]] = {}
    for job in jobs:
        if not isinstance(job, ReleaseJob) or job.ledger is None:
            continue
        opened = records.of(job)
        for event, times in job.charges(opened).items():
            found = charges.setdefault((job.ledger, opened.name), {})
            found[event] = found.get(event, 0) + times
    for (place, dataset), events in charges.items():
        if not is_address(place) and not Path(place).exists():
            require_grant(None, dataset, events)
            continue
        with open_ledger(place, read_only=True) as ledger:
            require_grant(ledger, dataset, events)


def _require_ledgers(declared: Iterable[Declaration], outside: Path | None = None) -> None:
    """Refuse a ledger that is a folder, a pipe, a file of something else, or below what is replaced."""
    places = {str(place) for one in declared if (place := getattr(one, "ledger", None)) is not None}
    for place in sorted(places):
        file = Path(place)
        if is_address(place):
            continue
        if outside is not None and file.resolve().is_relative_to(outside.resolve()):
            raise InputError(
                "the ledger lies in the output folder, which every release replaces",
                code="ledger-in-output",
                hint="name a file beside the folder",
                file=place,
            )
        if not file.exists():
            continue
        if file.is_file():
            with file.open("rb") as content:
                start = content.read(len(_SQLITE))
        if not file.is_file() or start not in (b"", _SQLITE):
            raise InputError(
                "what the policy names as ledger is none",
                code="not-a-ledger",
                hint="name a file that a ledger was written to, or one that is not there yet",
                file=place,
            )


def _require_files(declared: Declaration) -> None:
    """Refuse a demand that names a file to read or a key that is not there."""
    for file in declared.files("read"):
        if not is_address(file):
            require_file(Path(file))
    for file in declared.files("secret"):
        read_key_file(file)
    if (key := getattr(declared, "sign", None)) is not None:
        read_signing_key(key)


def _where(name: str, job: Job) -> Path:
    return Path(name) if job.section == "releases" else Path(REPORTS) / (name + job.suffix)


def _make_parent(place: Path) -> None:
    """Make the folder of reports, which only the curator may read."""
    place.parent.mkdir(exist_ok=True, mode=0o700)


def _append(file: Path, report: Report) -> None:
    _make_parent(file)
    with file.open("a", encoding="utf-8") as target:
        target.write(json.dumps(plain(report), ensure_ascii=False) + "\n")


def _finish(job: Job, result: Any, reports: Path) -> None:
    """Do what a job was asked for after writing; the files it names are among the reports.

    Any: see `Job.run`.
    """
    for file in job.files("write"):
        if (reports / file).exists():
            raise InputError(
                f"two outputs are named {file!r}", code="same-output", hint="choose another name"
            )
        _make_parent(reports / file)
    job.with_files(lambda file, use: str(reports / file) if use == "write" else file).finish(result)


def _kept(
    output: Path, stage: Path, policy: Policy, chosen: dict[str, Job]
) -> dict[str, Any] | None:
    """Copy what an earlier run wrote for the jobs that are not done now; return its record."""
    try:
        before: dict[str, Any] = json.loads((output / _RECORD).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    for name, job in _jobs(policy).items():
        explained = Path(REPORTS) / f"{name}-explained.json"
        papers = [Path(HANDOVER) / f"{name}{suffix}" for suffix in (".html", ".pdf")]
        places = (_where(name, job), explained, *_pages(job), *papers)
        for where in () if name in chosen else places:
            if (output / where).is_dir():
                shutil.copytree(output / where, stage / where, symlinks=True)
            elif (output / where).is_file():
                if where in papers:
                    (stage / HANDOVER).mkdir(exist_ok=True)
                else:
                    _make_parent(stage / where)
                shutil.copy2(output / where, stage / where)
    return before


def _pages(job: Job) -> list[Path]:
    return [Path(REPORTS) / file for file in job.files("write")]


def _with_earlier(record: Record, before: dict[str, Any] | None, policy: Policy) -> Record:
    """Return the record with what an earlier run did for jobs that were not done now."""
    if before is None:
        return record
    fresh = {item.name: item for item in record.done}
    old = {
        item["name"]: Done(**item)
        for item in before.get("done", ())
        if item["name"] in _jobs(policy) and item["name"] not in fresh
    }
    whole = old | fresh
    times = {item.time for item in old.values()}
    runs = [_run(given) for given in (*before.get("earlier", ()), before)]
    return dataclasses.replace(
        record,
        done=tuple(whole[name] for name in _jobs(policy) if name in whole),
        earlier=tuple(run for run in runs if run.time in times),
    )


def _run(given: dict[str, Any]) -> Run:
    named = {field.name: given[field.name] for field in dataclasses.fields(Run)}
    return Run(**{**named, "inputs": tuple(Input(**item) for item in named["inputs"])})


def _record(
    path: str | Path,
    access: Access,
    used: tuple[Declaration, ...],
    done: list[Done],
    *,
    key: bytes | None,
) -> Record:
    secret = secrets.token_bytes(32) if key is None else key
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
    folder = access.folder.resolve()
    return Record(
        policy=Path(path).name,
        folder=str(folder),
        fingerprint=_keyed(secret, Path(path)),
        fingerprint_key="drawn for this run" if key is None else "given",
        version=discreet.__version__,
        time=now,
        inputs=tuple(Input(_shown(file, folder), _keyed(secret, file)) for file in _files(used)),
        done=tuple(dataclasses.replace(item, time=now) for item in done),
        cautions=cautions(list(used)),
    )


def _files(used: Iterable[Declaration]) -> list[Path]:
    """Return the files that declarations read, keys and databases among them."""
    found: list[str] = []
    for declared in used:
        for use in ("read", "secret", "engine"):
            for file in declared.files(use):
                name = database_file(file) if file.lower().startswith("duckdb:") else file
                found += [name] if name is not None and not is_address(name) else []
    files: list[Path] = []
    for place in map(Path, dict.fromkeys(found)):
        files += sorted(place.rglob("*")) if place.is_dir() else [place]
    return [file for file in files if file.is_file()]


def _shown(file: Path, folder: Path) -> str:
    """Return a path from the record's folder, or from the root where it lies elsewhere."""
    place = file.resolve()
    return str(place.relative_to(folder) if place.is_relative_to(folder) else place)


def _keyed(secret: bytes, file: Path) -> str:
    with file.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").digest()
    return hmac.digest(secret, b"discreet input" + digest, "sha256").hex()
