"""What a ledger holds, for people: releases, their facts, and proofs about single entries."""

from __future__ import annotations

import json
from pathlib import Path

from discreet.data.atomic import atomic_file
from discreet.data.facts import unpack_facts
from discreet.data.signing import signed
from discreet.errors import InputError
from discreet.ledger.merkle import Proof, prove
from discreet.ledger.store import Ledger
from discreet.report import Rows

__all__ = ["datasets", "facts", "proof_of", "releases", "write_proof"]

#: States of a release: recorded, or recorded and published.
PUBLISHED, PERHAPS = "published", "recorded, perhaps not published"


def datasets(ledger: Ledger) -> list[str]:
    """Return the names of the datasets that a ledger has entries about."""
    return sorted({entry.dataset for entry in ledger.entries()})


def releases(ledger: Ledger, dataset: str | None = None) -> Rows:
    """Return one line per release: number, time, dataset, snapshot, what it is, how far it came."""
    names = {snapshot.identity: snapshot.name for snapshot in ledger.snapshots()}
    found = [entry for entry in ledger.entries() if dataset in (None, entry.dataset)]
    out = {entry.details["number"] for entry in found if entry.kind == "published"}
    header = ("number", "time", "dataset", "snapshot", "kind", "release", "audience", "state")
    return header, [
        (
            entry.number,
            entry.time,
            entry.dataset,
            names.get(str(entry.details.get("snapshot")), ""),
            entry.details.get("release", ""),
            entry.question,
            entry.details.get("audience", ""),
            PUBLISHED if entry.number in out else PERHAPS,
        )
        for entry in found
        if entry.kind == "release"
    ]


def facts(ledger: Ledger, number: int) -> Rows:
    """Return one line per fact of a release."""
    entry = next((e for e in ledger.entries() if e.number == number), None)
    if entry is None or entry.kind != "release":
        raise InputError(
            f"entry {number} is no release",
            code="unknown-release",
            hint="`discreet ledger releases` shows their numbers",
            number=number,
        )
    return ("form", "what it tells"), [
        (one.form, one.summary()) for one in unpack_facts(entry.answer)
    ]


def proof_of(ledger: Ledger, number: int) -> Proof:
    """Return the proof that an entry lies under the root of all entries."""
    hashes = [entry.hash for entry in ledger.entries()]
    if not 1 <= number <= len(hashes):
        raise InputError(
            f"the ledger has no entry {number}",
            code="unknown-entry",
            hint=f"it has {len(hashes):,} entries",
            number=number,
        )
    return prove(hashes, number)


def write_proof(
    ledger: Ledger, number: int, path: str | Path, *, sign: str | Path | None = None
) -> Path:
    """Write a proof as JSON, signed if a key is given."""
    stated = proof_of(ledger, number).to_dict()
    if sign is not None:
        stated = signed(stated, sign)
    with atomic_file(path) as temporary:
        temporary.write_text(json.dumps(stated, indent=2) + "\n", encoding="utf-8")
    return Path(path)
