"""What the client makes of sums it fetched: the value of a key, its proven absence, or a refusal.

A look-up reads twice. The first sums say, proven, whether the filter holds an entry of the key; the
second fetch that entry, or else that of a decoy, a key that is there. So everything that comes back
is signed, and a server that spoils any of it makes the look-up fail whatever the key is: else the sum
of an absent key, which is no entry, could not be checked, and who complains would have found the key.
With SimplePIR that holds for the wanted row of records; the other rows of its answer cannot be checked.
"""

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

__all__ = ["Standing", "Target", "aimed", "find", "is_proven", "proven"]


@dataclasses.dataclass(frozen=True)
class Target:
    """Where everything about a key lies: slots of each block. Any: the key, as published."""

    key: Any
    fingerprint: int
    slots: dict[str, list[int]]
    #: Whether the delta table has the key.
    is_changed: bool


@dataclasses.dataclass(frozen=True)
class Standing:
    """What the first sums say of a key."""

    #: Whether all of it is signed, for these places and this version.
    is_signed: bool = False
    #: Whether the filter holds an entry of the key.
    is_listed: bool = False
    #: The entry of the delta table. Any: a row, or a list of keys.
    changed: Any = None


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


def is_proven(
    statement: Statement, part: Part, target: Target, sums: dict[str, bytes], reader: Reader
) -> Standing:
    """Return what the sums of directory and delta say of a key; all of it is checked."""
    (number,), (place,) = target.slots["directory"], target.slots["delta"]

    def of_range(number: int, content: bytes, signature: bytes) -> bool:
        signed = message("range", statement.table, part.name, statement.base, number, content)
        return reader.is_signed(signed, signature)

    known = listed(sums["directory"], number, of_range)
    delta = unpack_record(sums["delta"])
    if known is None or delta is None:
        return Standing()
    fingerprint, entry, signature = delta
    wanted = part.changed[place] if place < len(part.changed) else 0
    signed = message("delta", statement.table, part.name, statement.version, place, entry)
    if fingerprint != wanted or not reader.is_signed(signed, signature):
        return Standing()
    changed = None
    if target.is_changed:
        key, changed = json.loads(entry)
        if key != target.key:
            return Standing()
    return Standing(True, target.fingerprint in known, changed)


def aimed(
    part: Part, target: Target, standing: Standing, arithmetic: Arithmetic, rng: Randomness
) -> Target:
    """Return whose entry is fetched: the key's own, or a decoy's."""
    if standing.is_listed:
        return target
    assert part.decoys  # others are refused when the statement is read
    return find(part, part.decoys[0], arithmetic, rng)


def proven(
    statement: Statement,
    part: Part,
    target: Target,
    standing: Standing,
    aim: Target,
    record: bytes,
    reader: Reader,
) -> Any:
    """Return the value that the publisher signed for a key; None if it is proven absent.

    Everything is checked whether it is needed or not. Any: a row, or a list of keys.

    Raises
    ------
    RefusedError
        If anything is not what the publisher signed, always with the same text.
    """
    entry = _entry(statement, part, aim, record, reader)
    if entry is None or not standing.is_signed:
        raise _bad()
    if target.is_changed:
        return standing.changed
    return entry[1] if standing.is_listed else None


def _entry(statement: Statement, part: Part, aim: Target, record: bytes, reader: Reader) -> Any:
    """Return key and value, or None if they are not signed. Any: a row, or a list of keys."""
    found = unpack_record(record)
    if found is None or found[0] != aim.fingerprint:
        return None
    _, entry, signature = found
    signed = message("entry", statement.table, part.name, statement.base, 0, entry)
    if not reader.is_signed(signed, signature):
        return None
    known = json.loads(entry)
    return known if known[0] == aim.key else None


def _bad() -> RefusedError:
    """Return the one error of all wrong answers."""
    return RefusedError(
        "an answer is not what the publisher signed: a server is wrong or lies",
        code="bad-answer",
        hint="tell the publisher by another way than these servers, and do not ask them again: whether "
        "you do would tell them that the answer was of use",
    )
