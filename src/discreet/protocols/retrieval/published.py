"""One version of a published table: its files, and look-ups in them at home."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any, Self

import numpy as np

from discreet.errors import EngineError, InputError
from discreet.protocols.retrieval.digests import Digests
from discreet.protocols.retrieval.directory import listed
from discreet.protocols.retrieval.hints import unpacked
from discreet.protocols.retrieval.records import unpack_record
from discreet.protocols.retrieval.schemes._base import Bytes, Public
from discreet.protocols.retrieval.schemes._panels import slot_in
from discreet.protocols.retrieval.statement import Arithmetic, Part, Statement, hint_file

__all__ = ["STATEMENT", "Published", "versions"]

STATEMENT = "statement.bin"


@dataclasses.dataclass(frozen=True, eq=False)
class Published:
    """One version of a published table, in files that servers map into memory."""

    folder: Path
    statement: Statement

    @classmethod
    def open(cls, folder: str | Path, version: int | None = None) -> Self:
        """Return a version of a published table; the newest if none is named."""
        place = Path(folder)
        known = versions(place)
        wanted = max(known, default=None) if version is None else version
        if wanted is None or wanted not in known:
            raise InputError(
                f"{place} holds no version {'of a table' if version is None else version}",
                code="unknown-version",
                hint="build the table, or choose one of: " + (", ".join(map(str, known)) or "none"),
                file=place,
            )
        held = (place / f"v{wanted}" / STATEMENT).read_bytes()
        name = json.loads(held[64:])["table"]
        return cls(place / f"v{wanted}", Statement.read(held, name))

    def block(self, part: Part, block: str, arithmetic: Arithmetic) -> Bytes:
        """Return a block, mapped into memory."""
        state = self.statement
        return self.map(part.file(block, arithmetic, state.base, state.version))

    def map(self, file: str) -> Bytes:
        """Return a file, mapped into memory."""
        try:
            # A plain array over the map: every slice of a memmap is an object of its own.
            return np.asarray(np.memmap(self.folder / file, np.uint8, "r"))
        except (OSError, ValueError) as error:
            raise EngineError(
                f"a file of the table is missing or empty: {file}",
                code="retrieval-file",
                hint="copy the table's folder again",
            ) from error

    def public(self, part: Part, block: str) -> Public:
        """Return seed and hint of a block, for a scheme with one server."""
        state = self.statement
        file = part.file(block, "add", state.base, state.version)
        words = self.map(hint_file(file)).view(np.uint32)
        return unpacked(state.seed_of(part, block), words, part.shapes("add")[block])

    def lookup(self, part_name: str, key: Any) -> Any:
        """Return the value of a key, read at home. Any: a row, or a list of keys."""
        part = self.statement.part(part_name)
        digests = Digests.of([key], bytes.fromhex(part.salt))
        fingerprint = int(digests.fingerprints[0])
        if fingerprint in part.changed:
            rows = self.slots_sum(part, "delta", [part.changed.index(fingerprint)])
        elif "xor" in part.filters:
            slots = digests.slots(part.filters["xor"])[0].tolist()
            rows = self.slots_sum(part, "filter", slots)
        else:
            number = int(digests.ranges(part.ranges)[0])
            held = self.slots_sum(part, "directory", [number])
            known = listed(held, number, lambda *_: True) or {}
            if fingerprint not in known:
                return None
            rows = self.slots_sum(part, "filter", [known[fingerprint]])
        found = unpack_record(rows)
        if found is None or found[0] != fingerprint:
            return None
        return json.loads(found[1])[1]

    def slots_sum(self, part: Part, block: str, slots: list[int]) -> bytes:
        """Return the sum of slots of a block; in a matrix there is one."""
        arithmetic: Arithmetic = "xor" if "xor" in part.filters else "add"
        shape = part.shapes(arithmetic)[block]
        held = self.block(part, block, arithmetic)
        if arithmetic == "xor":
            chosen = held.reshape(shape.slots, shape.width)[slots]
            return bytes(np.bitwise_xor.reduce(chosen, axis=0))
        return slot_in(shape, held, slots[0]).tobytes()

    def verify(self) -> None:
        """Raise an error if a file is not what the statement says."""
        for file, (digest, size) in self.statement.files.items():
            held = self.map(file)
            if held.size != size or hashlib.sha256(held.data).hexdigest() != digest:
                raise InputError(
                    f"{file} is not the file that was published",
                    code="retrieval-file",
                    hint="copy the table's folder again",
                    file=self.folder / file,
                )


def versions(folder: Path) -> list[int]:
    """Return the versions in a folder, oldest first."""
    found = [path.parent.name for path in folder.glob(f"v*/{STATEMENT}")]
    return sorted(int(name[1:]) for name in found if name[1:].isdigit())
