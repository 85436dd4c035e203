"""The statement of a version: what a table is, where everything in it lies, signed by its publisher."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import re
from typing import Any, Literal

from discreet.errors import RefusedError
from discreet.protocols.retrieval.schemes._base import Shape
from discreet.protocols.retrieval.signing import Publisher, Reader, message

__all__ = ["BLOCKS", "ROUNDS", "Part", "Statement", "changes_file", "hint_file", "seed_for"]

#: The blocks that every look-up by key reads.
BLOCKS = ("filter", "directory", "delta")
#: The blocks of each of its two messages: first whether there is such a key, then an entry.
ROUNDS = (("directory", "delta"), ("filter",))
Arithmetic = Literal["xor", "add"]
#: What parts and files are called: whoever opens a stranger's table opens nothing beside its folder.
_PLAIN = re.compile(r"\w[\w.-]*", re.ASCII)


@dataclasses.dataclass(frozen=True)
class Part:
    """Entries by one key: the table's own, or one of its secondary keys."""

    name: str
    #: The key's column and how its values are written.
    column: str
    kind: str
    #: Rows that one key may have: 1 for the table's own key.
    limit: int
    salt: str
    width: int
    ranges: int
    delta: int
    #: Shapes of what holds the entries, by arithmetic: a keyword filter, or a matrix in their order.
    filters: dict[str, Shape]
    #: How many entries there are, numbered in the order of the directory. None: of an older version.
    entries: int | None = None
    #: Fingerprints of the changed keys, in the order of their places in the delta table.
    changed: tuple[int, ...] = ()
    #: Digests of all entries, and of all changes since: what every signature belongs to.
    edition: str | None = None
    delta_edition: str | None = None
    #: The key of entry 0, fetched in place of one that is not there. Any: a key, as published.
    decoys: tuple[Any, ...] | None = None

    @property
    def is_old(self) -> bool:
        """Whether an older version wrote it, so that not everything about it can be checked."""
        return None in (self.entries, self.decoys, self.edition, self.delta_edition)

    def shapes(self, arithmetic: Arithmetic) -> dict[str, Shape]:
        """Return the shapes of the blocks that a look-up reads."""
        from discreet.protocols.retrieval.directory import RANGE

        return {
            "filter": self.filters[arithmetic],
            "directory": Shape(columns=self.ranges, width=RANGE),
            "delta": Shape(columns=self.delta, width=self.width),
        }

    def file(self, block: str, arithmetic: Arithmetic, base: int, version: int) -> str:
        """Return the name of a block's file; what an update leaves alone keeps its name."""
        number = version if block == "delta" else base
        return f"{self.name}-{block}-{arithmetic}-{number}.bin"


@dataclasses.dataclass(frozen=True)
class Statement:
    """What everybody may know of a version."""

    table: str
    version: int
    #: The version whose rows the filter and the directory hold.
    base: int
    rows: int
    #: Names and kinds of the published columns; the key is the first.
    columns: tuple[tuple[str, str], ...]
    parts: tuple[Part, ...]
    #: SHA-256 and size of each file.
    files: dict[str, tuple[str, int]]
    #: Seed of the public matrix for one server.
    seed: str
    publisher: str
    expires: float | None = None

    @functools.cached_property
    def root(self) -> str:
        """One digest for everything that was published."""
        return hashlib.sha256(self.content()).hexdigest()

    @property
    def arithmetics(self) -> tuple[str, ...]:
        """For which schemes the table was built."""
        return tuple(self.parts[0].filters)

    def part(self, name: str) -> Part:
        """Return a part by name."""
        return next(part for part in self.parts if part.name == name)

    def content(self) -> bytes:
        """Return the bytes that are signed."""
        return json.dumps(dataclasses.asdict(self), sort_keys=True).encode()

    def signed(self, publisher: Publisher) -> bytes:
        """Return the statement with its signature in front."""
        content = self.content()
        return publisher.sign(message("statement", self.table, "", 0, 0, content)) + content

    @classmethod
    def read(cls, held: bytes, table: str, reader: Reader | None = None) -> Statement:
        """Return a statement; with a reader only one that its publisher signed.

        Raises
        ------
        RefusedError
            If the signature is not the publisher's, or the statement is about another table.
        """
        signature, content = held[:64], held[64:]
        try:
            found = json.loads(content)
            if reader is None:
                reader = Reader(found["publisher"])
            if not reader.is_signed(message("statement", table, "", 0, 0, content), signature):
                raise ValueError
            made = cls._of(found)
            if made.table != table or made.publisher != reader.public:
                raise ValueError
        except (ValueError, KeyError, TypeError, RecursionError):
            raise RefusedError(
                f"what describes the table {table!r} is not signed by its publisher",
                code="statement-not-signed",
                hint="check the publisher's key, and tell the publisher if it is right",
            ) from None
        return made

    @classmethod
    def _of(cls, found: Any) -> Statement:
        # Any: JSON that the publisher signed.
        parts = tuple(
            Part(
                **{
                    **part,
                    "filters": {a: Shape(**shape) for a, shape in part["filters"].items()},
                    "changed": tuple(part["changed"]),
                    "decoys": None if part.get("decoys") is None else tuple(part["decoys"]),
                }
            )
            for part in found["parts"]
        )
        columns = tuple((name, kind) for name, kind in found["columns"])
        files = {name: (digest, size) for name, (digest, size) in found["files"].items()}
        names = [*files, *(part.name for part in parts)]
        names += [f"{found['version']}", f"{found['base']}"]
        if not all(_PLAIN.fullmatch(name) for name in names):
            raise ValueError("no name of a file")
        return cls(**{**found, "parts": parts, "columns": columns, "files": files})

    def seed_of(self, part: Part, block: str) -> bytes:
        """Return the seed of the public matrix for a block."""
        return seed_for(bytes.fromhex(self.seed), part, block, self.base)


def seed_for(seed: bytes, part: Part, block: str, base: int) -> bytes:
    """Return the seed of the public matrix for a block: each has its own, and keeps it with updates."""
    return hashlib.sha256(seed + part.file(block, "add", base, base).encode()).digest()[:16]


def hint_file(file: str) -> str:
    """Return the name of the hint that belongs to a block's file."""
    return file.removesuffix(".bin") + ".hint"


def changes_file(file: str) -> str:
    """Return the name of the list of what changed in a block since the version before."""
    return file.removesuffix(".bin") + ".changes"
