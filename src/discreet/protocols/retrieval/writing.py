"""Parts of a table as files: filters, directories, delta tables and hints."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from discreet.errors import InfeasibleError, InputError
from discreet.progress import Progress, silent
from discreet.protocols.retrieval.digests import Digests, salt_of
from discreet.protocols.retrieval.directory import directory_of, in_order, ranges_for
from discreet.protocols.retrieval.entries import encode_entry
from discreet.protocols.retrieval.hints import change_list, packed, public_of
from discreet.protocols.retrieval.keyword_filter import fill, placed, shape_for
from discreet.protocols.retrieval.matrix_shape import Layout, matrix_shape
from discreet.protocols.retrieval.records import as_rows, pack_record, width_for
from discreet.protocols.retrieval.schemes._base import Bytes, Shape
from discreet.protocols.retrieval.schemes._panels import matrix_of, panelled
from discreet.protocols.retrieval.signing import Publisher, message
from discreet.protocols.retrieval.statement import (
    Arithmetic,
    Part,
    changes_file,
    hint_file,
    seed_for,
)

__all__ = ["Entries", "Writer"]

_ATTEMPTS = 20
#: Records that are made at a time.
_PIECE = 8192


class Entries:
    """Keys, and their entries in a file: rows may be more than memory holds."""

    def __init__(self, file: Path) -> None:
        self.keys: list[Any] = []  # Any: what JSON holds
        self._file = file
        self._out = file.open("wb")
        self._ends = [0]
        self.longest = 0

    def add(self, key: Any, value: Any) -> None:
        """Add a key and its value. Any: what JSON holds."""
        entry = encode_entry(key, value)
        self.keys.append(key)
        self._out.write(entry)
        self._ends.append(self._ends[-1] + len(entry))
        self.longest = max(self.longest, len(entry))

    def close(self) -> None:
        """Finish writing."""
        self._out.close()

    def read(self, order: Sequence[int]) -> Iterator[bytes]:
        """Give the entries in an order."""
        if not self.keys:
            return
        held = np.memmap(self._file, np.uint8, "r")
        for number in order:
            yield held[self._ends[number] : self._ends[number + 1]].tobytes()


@dataclasses.dataclass
class Writer:
    """Writes the files of one version and notes what it wrote."""

    folder: Path
    table: str
    version: int
    publisher: Publisher
    seed: bytes
    arithmetics: tuple[Arithmetic, ...]
    layout: Layout = "balanced"
    progress: Progress = silent
    files: dict[str, tuple[str, int]] = dataclasses.field(default_factory=dict)

    def part(
        self,
        name: str,
        column: str,
        kind: str,
        limit: int,
        entries: Entries,
        *,
        width: int | None,
        places: int,
    ) -> Part:
        """Write a part and return its description."""
        made = width_for(entries.longest, width)
        salt, digests, fitted = self._placed(name, column, entries.keys, made)
        ranges = ranges_for(digests)
        # Nothing of the files depends on the engine's order.
        order = in_order(digests, ranges)
        digests = Digests(digests.words[order])
        edition = _edition(entries.read(order.tolist()))
        spool = self.folder / "records"
        with spool.open("wb") as out:
            out.writelines(self._records(name, entries, digests, order.tolist(), made, edition))
        signed = np.memmap(spool, np.uint8, "r").reshape(-1, made)
        part = Part(
            name=name,
            column=column,
            kind=kind,
            limit=limit,
            salt=salt.hex(),
            width=made,
            ranges=ranges,
            delta=places,
            filters=fitted,
            entries=len(order),
            decoys=(entries.keys[order[0]],),
            edition=edition,
        )
        for arithmetic in self.arithmetics:
            file = part.file("filter", arithmetic, self.version, self.version)
            if arithmetic == "xor":
                self._filter(file, fitted[arithmetic], digests, signed)
            else:
                seed = seed_for(self.seed, part, "filter", self.version)
                self._matrix(file, signed, fitted[arithmetic], seed)
        spool.unlink()
        self._directory(part, digests)
        return self.delta(part, {}, self.version)

    def _placed(
        self, name: str, column: str, keys: Sequence[Any], width: int
    ) -> tuple[bytes, Digests, dict[str, Shape]]:
        """Return a salt under which all keys find their places. Any: keys as JSON holds them."""
        for attempt in range(_ATTEMPTS):
            salt = salt_of(self.table, name, self.version, attempt)
            digests = Digests.of(keys, salt)
            if len(np.unique(digests.fingerprints)) < len(keys):
                _require_unique(keys, column)
                continue
            shapes: dict[str, Shape] = {
                "xor": shape_for(len(keys), width, grown=1 + 0.02 * attempt),
                "add": matrix_shape(len(keys), width, self.layout),
            }
            wanted: dict[str, Shape] = {one: shapes[one] for one in self.arithmetics}
            if "xor" not in wanted or placed(digests, wanted["xor"]) is not None:
                return salt, digests, wanted
        raise InfeasibleError("no filter was found for these keys", code="no-filter")

    def _records(
        self,
        name: str,
        entries: Entries,
        digests: Digests,
        order: list[int],
        width: int,
        edition: str,
    ) -> Iterator[bytes]:
        """Give the signed records in the order of the digests."""
        prints = digests.fingerprints.tolist()
        sign = self.publisher.sign
        for number, entry in enumerate(entries.read(order)):
            if number % _PIECE == 0:
                self.progress(f"sign {name}", number, len(order))
            said = message("entry", self.table, name, self.version, number, entry, edition=edition)
            yield pack_record(prints[number], entry, sign(said), width)

    def _filter(self, file: str, shape: Shape, digests: Digests, records: Bytes) -> None:
        found = placed(digests, shape)
        assert found is not None  # `_placed` chose a salt for which it is not

        def pieces() -> Iterator[tuple[int, Bytes]]:
            for first in range(0, len(records), _PIECE):
                yield first, records[first : first + _PIECE]

        path = self.folder / file
        mapped = np.memmap(path, np.uint8, "w+", shape=(shape.slots, shape.width))
        fill(mapped, *found, pieces())
        mapped.flush()
        self._note(file, mapped)

    def _directory(self, part: Part, digests: Digests) -> None:
        def sign(number: int, content: bytes) -> bytes:
            said = message(
                "range",
                self.table,
                part.name,
                self.version,
                number,
                content,
                edition=part.edition or "",
            )
            return self.publisher.sign(said)

        self._block(part, "directory", directory_of(digests, part.ranges, sign), self.version)

    def delta(
        self, part: Part, changed: Mapping[int, bytes], base: int, before: Bytes | None = None
    ) -> Part:
        """Write the delta table of a part: fingerprints and entries; the other places are empty.

        Return the part with it.

        Where the slots of the version before are given, also what changed since, if that is less
        than the hint.
        """
        records = []
        given = list(changed.items())
        edition = _edition([(part.edition or "").encode(), *changed.values()])
        for place in range(part.delta):
            fingerprint, entry = given[place] if place < len(given) else (0, b"")
            said = message(
                "delta", self.table, part.name, self.version, place, entry, edition=edition
            )
            records.append(pack_record(fingerprint, entry, self.publisher.sign(said), part.width))
        rows = as_rows(records, part.width)
        self._block(part, "delta", rows, base)
        if before is not None:
            file = part.file("delta", "add", base, self.version)
            changes = change_list(before, rows)
            if len(changes) < self.files[hint_file(file)][1]:
                self._write(changes_file(file), np.frombuffer(changes, np.uint8))
        return dataclasses.replace(part, changed=tuple(changed), delta_edition=edition)

    def _block(self, part: Part, block: str, rows: Bytes, base: int) -> None:
        for arithmetic in self.arithmetics:
            file = part.file(block, arithmetic, base, self.version)
            if arithmetic == "xor":
                self._write(file, rows)
            else:
                seed = seed_for(self.seed, part, block, base)
                self._matrix(file, rows, part.shapes("add")[block], seed)

    def _matrix(self, file: str, rows: Bytes, shape: Shape, seed: bytes) -> None:
        """Write slots as the matrix of a scheme with one server, and its hint."""
        slots = np.zeros((shape.slots, shape.width), np.uint8)
        slots[: len(rows)] = rows
        matrix = matrix_of(shape, slots)
        del slots
        public = public_of(matrix, seed, progress=self.progress)
        self._write(hint_file(file), packed(public).view(np.uint8))
        self._write(file, panelled(matrix))

    def _write(self, file: str, content: Bytes) -> None:
        flat = np.ascontiguousarray(content)
        (self.folder / file).write_bytes(flat.data)
        self._note(file, flat)

    def _note(self, file: str, content: Bytes) -> None:
        self.files[file] = (hashlib.sha256(content.data).hexdigest(), content.nbytes)


def _edition(entries: Iterable[bytes]) -> str:
    """Return one digest of entries in their order."""
    digest = hashlib.sha256()
    for entry in entries:
        digest.update(len(entry).to_bytes(4, "little") + entry)
    return digest.hexdigest()


def _require_unique(keys: Sequence[Any], column: str) -> None:
    seen = set()
    for key in keys:
        written = json.dumps(key)
        if written in seen:
            raise InputError(
                f"the key {key!r} is there more than once in column {column!r}",
                code="duplicate-key",
                column=column,
                hint="choose a column without repeated values, or publish one row for each key",
            )
        seen.add(written)
