"""Verifying a folder: every release in it is judged by the promises that it states."""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from discreet.errors import EngineError, InputError
from discreet.verification.findings import NO_PROMISES, UNKNOWN, Finding, Verification, judged
from discreet.verification.held import Held
from discreet.verification.manifest import MANIFEST, check_manifest, read_public_key
from discreet.verification.permuted import check_permuted
from discreet.verification.records import check_records
from discreet.verification.tables import check_table

__all__ = ["EVIDENCE", "require_kept", "verify"]

EVIDENCE = "evidence.json"
#: How damaged or hostile files fail in the libraries that read them.
_UNREADABLE = (
    OSError, ValueError, TypeError, LookupError, EOFError, SyntaxError, RuntimeError,
    RecursionError, struct.error, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
_CHECKS: dict[str, Callable[[Path, Mapping[str, Any], Held], list[Finding]]] = {
    "records": check_records,
    "permutation": check_permuted,
    "table": check_table,
}


def verify(
    folder: str | Path, *, held: Held | None = None, key: str | Path | None = None
) -> Verification:
    """Read the files of a release again and judge whether they keep what was promised.

    Parameters
    ----------
    folder
        What a release wrote, or a folder with several such folders.
    held
        What only the curator has; without it some promises cannot be checked, and the result says
        which.
    key
        File with the public key that must have signed the manifest of each release.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> import discreet as dc
    >>> people = dc.read(
    ...     pd.DataFrame({"age": [20, 20, 30], "ill": list("aba")}),
    ...     roles={"age": "quasi", "ill": "confidential"},
    ... )
    >>> safe = dc.anonymize(people, [dc.KAnonymity(2)], method=dc.Mondrian())
    >>> verify(safe.write(Path(tempfile.mkdtemp()) / "out")).holds
    True
    """
    place = Path(folder)
    found = sorted(place.rglob(EVIDENCE)) if place.is_dir() else []
    stated = [file for file in found if not file.is_dir()]  # a release may have that name
    if not stated:
        raise InputError(
            f"there is no release in {place}: no file {EVIDENCE}",
            code="no-release",
            hint="name the folder that a release was written into",
            file=place,
        )
    public = None if key is None else read_public_key(key)
    findings: list[Finding] = []
    for evidence in stated:
        within = evidence.parent.relative_to(place).as_posix()
        signed = check_manifest(evidence.parent, public)
        # What is not as it was published is not read any further.
        whole = all(finding.holds for finding in signed)
        judged_files = _release(evidence, held or Held()) if whole else []
        for finding in (*signed, *judged_files):
            name = finding.file if within == "." else f"{within}/{finding.file}"
            findings.append(Finding(name, finding.promise, finding.verdict, finding.found))
    return Verification(tuple(findings))


def require_kept(found: Verification) -> None:
    """Refuse to publish files that break a promise."""
    if found.holds:
        return
    first = found.broken[0]
    raise EngineError(
        f"the written files were read again and break a promise: {first.promise} ({first.found}); "
        "nothing is released",
        code="promise-broken",
        hint="this is a mistake of discreet: please report it, without your data",
        broken=[f"{finding.file}: {finding.promise}" for finding in found.broken],
    )


def _release(evidence: Path, held: Held) -> list[Finding]:
    folder = evidence.parent
    try:
        if not evidence.is_file():
            raise ValueError("a pipe need not end")
        stated = json.loads(evidence.read_text(encoding="utf-8"))
        promises = list(stated.get("promises", ()))
        if not all(isinstance(promise, dict) for promise in promises):
            raise TypeError("a promise is an object")
        listed = {EVIDENCE, *map(str, stated.get("files", ()))}
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise InputError(
            f"{EVIDENCE} cannot be read ({type(error).__name__})",
            code="malformed-evidence",
            hint="it must be as the release wrote it",
            file=evidence,
        ) from None
    there = {
        file.relative_to(folder).as_posix()
        for file in folder.rglob("*")
        if file.is_symlink() or not file.is_dir() or not any(file.iterdir())
    }
    there.discard(MANIFEST)
    more, less = len(there - listed), len(listed - there)
    wrong = f"{more:,} files more, {less:,} less" if more or less else None
    found = [judged(EVIDENCE, "the files that were written", wrong)]
    if not promises:
        found.append(Finding(EVIDENCE, NO_PROMISES, UNKNOWN, "the release states none as data"))
    for promise in promises:
        found += _judge(folder, promise, held)
    return found


def _judge(folder: Path, promise: Mapping[str, Any], held: Held) -> list[Finding]:
    check = _CHECKS.get(str(promise.get("kind")))
    if check is None:
        return [Finding(EVIDENCE, str(promise.get("kind")), UNKNOWN, "a kind of a later version")]
    try:
        return check(folder, promise, held)
    except _UNREADABLE as error:
        # The text of the error may quote a value.
        files = promise.get("files") or [promise.get("file", EVIDENCE)]
        file = str(files[0]) if isinstance(files, list) else EVIDENCE
        return [judged(file, "can be read", f"it cannot ({type(error).__name__})")]
