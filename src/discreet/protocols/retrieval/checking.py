"""What the client makes of sums it fetched: the value of a key, its proven absence, or a refusal."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from discreet.errors import RefusedError
from discreet.protocols.retrieval.digests import Digests
from discreet.protocols.retrieval.directory import listed
from discreet.protocols.retrieval.records import unpack_record
from discreet.protocols.retrieval.signing import Reader, message
from discreet.protocols.retrieval.statement import Arithmetic, Part, Statement
from discreet.randomness import Randomness

__all__ = ["Target", "find", "proven"]


@dataclasses.dataclass(frozen=True)
class Target:
    """Where everything about a key lies: slots of each block. Any: the key, as published."""

    key: Any
    fingerprint: int
    slots: dict[str, list[int]]
    #: Whether the delta table has the key.
    is_changed: bool


def find(part: Part, key: Any, arithmetic: Arithmetic, rng: Randomness) -> Target:
    """Return where to look for a key; what the delta does not have is looked for anywhere in it."""
    digests = Digests.of([key], bytes.fromhex(part.salt))
    fingerprint = int(digests.fingerprints[0])
    is_changed = fingerprint in part.changed
    place = (
        part.changed.index(fingerprint) if is_changed else int(rng.integers(0, part.delta, 1)[0])
    )
    slots = {
        "filter": digests.slots(part.filters[arithmetic])[0].tolist(),
        "directory": [int(digests.ranges(part.ranges)[0])],
        "delta": [place],
    }
    return Target(key, fingerprint, slots, is_changed)


def proven(
    statement: Statement, part: Part, target: Target, sums: dict[str, bytes], reader: Reader
) -> Any:
    """Return the value that the publisher signed for a key; None if it is proven absent.

    Everything is checked whether it is needed or not. Any: a row, or a list of keys.

    Raises
    ------
    RefusedError
        If anything is not what the publisher signed, always with the same text.
    """
    (number,), (place,) = target.slots["directory"], target.slots["delta"]

    def of_range(number: int, content: bytes, signature: bytes) -> bool:
        signed = message("range", statement.table, part.name, statement.base, number, content)
        return reader.is_signed(signed, signature)

    known = listed(sums["directory"], number, of_range)
    delta = unpack_record(sums["delta"])
    if known is None or delta is None:
        raise _bad()
    fingerprint, entry, signature = delta
    wanted = part.changed[place] if place < len(part.changed) else 0
    signed = message("delta", statement.table, part.name, statement.version, place, entry)
    if fingerprint != wanted or not reader.is_signed(signed, signature):
        raise _bad()
    value = None
    if target.fingerprint in known:
        value = _entry(statement, part, target, sums["filter"], reader)
    if target.is_changed:
        key, value = json.loads(entry)
        if key != target.key:
            raise _bad()
    return value


def _entry(statement: Statement, part: Part, target: Target, record: bytes, reader: Reader) -> Any:
    # Any: a row, or a list of keys.
    found = unpack_record(record)
    if found is None or found[0] != target.fingerprint:
        raise _bad()
    _, entry, signature = found
    signed = message("entry", statement.table, part.name, statement.base, 0, entry)
    if not reader.is_signed(signed, signature):
        raise _bad()
    key, value = json.loads(entry)
    if key != target.key:
        raise _bad()
    return value


def _bad() -> RefusedError:
    return RefusedError(
        "an answer is not what the publisher signed: a server is wrong or lies",
        code="bad-answer",
        hint="tell the publisher by another way than these servers, and do not ask them again: whether "
        "you do would tell them that the answer was of use",
    )
