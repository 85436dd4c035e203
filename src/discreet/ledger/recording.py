"""Recording a release: judged with all earlier ones, durable before a file appears."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from discreet.data.atomic import when_in_place
from discreet.data.facts import BudgetFacts, Facts, UncoveredFacts
from discreet.data.release import Release, Standing
from discreet.data.signing import signed
from discreet.errors import InputError, RefusedError
from discreet.ledger.entry import Draft, Entry, StaleError
from discreet.ledger.memory import Memory, record_release
from discreet.ledger.opening import open_ledger
from discreet.ledger.store import Ledger
from discreet.verification.manifest import MANIFEST, file_digests, written

__all__ = ["Recording", "standing_in"]

#: How often a release is judged again when others were recorded meanwhile.
_RETRIES = 20
#: The format of manifests.
_FORMAT = 1


def standing_in(memory: Memory, charged: int | None = None) -> Standing:
    """Return what a release keeps of the memory that it was judged by."""
    return Standing(memory.ledger.identity(), memory.identity, memory.after, charged)


class Recording:
    """A release that is being recorded in a ledger and then published.

    `record` is called with the folder while nobody can see it, `published` when it is in its place.
    A run that is killed between the two leaves an entry without the second: recorded, perhaps not
    published.
    """

    def __init__(
        self,
        release: Release,
        ledger: str | Path | Ledger | None,
        *,
        snapshot: str | None = None,
        sign: str | Path | None = None,
        audience: str = "public",
        conditions: Sequence[str] = (),
    ) -> None:
        if audience not in ("public", "controlled"):
            raise InputError(
                f"there is no audience {audience!r}",
                code="unknown-audience",
                hint="write public, or controlled",
                parameter="audience",
            )
        self._release, self._sign = release, sign
        self._audience, self._conditions = audience, list(conditions)
        self._ledger = ledger
        self._entry: Entry | None = None
        #: Whether a joint guarantee covers the release, for its manifest.
        self._joint = ""
        self._memory: Memory | None = None
        if ledger is None:
            return
        records = release.records()
        if records is None:
            raise InputError(
                "the release has no records at hand by which a ledger would know it again",
                code="no-records",
                hint="make it from records and with ledger=, or write it without a ledger",
            )
        self._memory = Memory(ledger, records, snapshot=snapshot)
        try:
            self._require_standing(self._memory)
        except BaseException:
            self._memory.close()
            raise

    def _require_standing(self, memory: Memory) -> None:
        standing = self._release.standing
        if self._release.events() and (standing is None or standing.charged is None):
            raise RefusedError(
                "the release has differential privacy and was not charged before noise was drawn",
                code="uncharged-release",
                hint="make it with ledger=, so that it is charged first",
            )
        if standing is None:
            return
        if standing.ledger != memory.ledger.identity():
            raise RefusedError(
                "the release was judged by another ledger",
                code="another-ledger",
                hint="write it with the ledger that it was made with",
            )
        if standing.snapshot != memory.identity:
            raise RefusedError(
                "the records have changed since the release was made",
                code="changed-data",
                hint="make it again",
            )

    @property
    def covers(self) -> dict[str, Any]:
        """What the verdict is about: who receives the release, and what it was judged with."""
        judged = "judged together with everything that its ledger remembers"
        return {
            "audience": self._audience,
            "conditions": self._conditions,
            "memory": "judged alone" if self._memory is None else judged,
        }

    def record(self, folder: Path) -> None:
        """Record the release, and write its manifest into the folder."""
        files = file_digests(folder)
        entry = None
        if self._memory is not None:
            entry = self._entry = self._recorded(self._memory, files)
        manifest: dict[str, Any] = {
            "format": _FORMAT,
            "kind": self._release.evidence().kind,
            "audience": self._audience,
            "conditions": self._conditions,
            "files": files,
        }
        if entry is not None:
            manifest["entry"] = {"number": entry.number, "hash": entry.hash}
            manifest["records"] = self._stated_records()
            manifest["joint"] = self._joint
        if self._sign is not None:
            manifest = signed(manifest, self._sign)
        (folder / MANIFEST).write_text(written(manifest), encoding="utf-8")

    def _stated_records(self) -> dict[str, str]:
        """Return what tells a stranger whether two folders are of the same records, and no more."""
        assert self._memory is not None
        secret = self._memory.key
        stated = {"dataset": self._memory.dataset.name, "snapshot": self._memory.identity}
        return {
            what: hmac.new(secret, f"manifest {what} {name}".encode(), hashlib.sha256).hexdigest()[
                :32
            ]
            for what, name in stated.items()
        }

    def _recorded(self, memory: Memory, files: Mapping[str, str]) -> Entry:
        release, standing = self._release, self._release.standing
        judged = standing.after if standing is not None else -1
        digest = hashlib.sha256(json.dumps(dict(files), sort_keys=True).encode()).hexdigest()
        for _ in range(_RETRIES):
            if judged != memory.after:
                release.judge(memory)
                judged = memory.after
            facts = self._facts(memory)
            reasons = [fact.reason for fact in facts if isinstance(fact, UncoveredFacts)]
            self._joint = f"not covered: {'; '.join(reasons)}" if reasons else "covered"
            try:
                return record_release(
                    memory,
                    kind=release.evidence().kind,
                    title=release.title(),
                    digest=digest,
                    facts=facts,
                    audience=self._audience,
                )
            except StaleError:
                memory.refresh()
        raise RefusedError(
            "others release without pause, so that no judgement holds until it is recorded",
            code="ledger-busy",
            hint="try again",
        )

    def _facts(self, memory: Memory) -> list[Facts]:
        standing, events = self._release.standing, self._release.events()
        facts = list(self._release.discloses(memory))
        if events:
            assert standing is not None
            assert standing.charged is not None
            facts.append(BudgetFacts(dict(events), standing.charged))
        return facts

    def published(self, folder: str | Path) -> None:
        """Record that the files are in their place, once people find them there."""
        if self._memory is None or self._entry is None:
            return
        number, place = self._entry.number, self._ledger
        draft = Draft(
            self._memory.dataset.name, "curator", "published", str(number),
            self._entry.hash, "published", {"number": number},
        )  # fmt: skip

        def note() -> None:
            book = open_ledger(place)  # type: ignore[arg-type]  # there is a memory, so a ledger
            try:
                book.record(draft)
            finally:
                if not isinstance(place, Ledger):
                    book.close()

        when_in_place(folder, note)

    def close(self) -> None:
        """Let go of the ledger."""
        if self._memory is not None:
            self._memory.close()
