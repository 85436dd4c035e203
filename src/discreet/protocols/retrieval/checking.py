"""What the client makes of what it fetched: the value of a key, its proven absence, or a refusal.

A look-up reads twice. The first answers say, proven, whether there is an entry of the key and which
number it has; the second bring that entry, or else that of a decoy, a key that is there. So everything
that comes back is signed, each entry for its own number, and a server that spoils any of it makes the
look-up fail whatever the key is: else what nobody checks would show, by who does not complain, what
was looked for. An answer of SimplePIR brings a column of entries, and all of them are checked.
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
    #: The number of its entry, once it is known.
    number: int = 0


@dataclasses.dataclass(frozen=True)
class Standing:
    """What the first sums say of a key."""

    #: Whether all of it is signed, for these places and this version.
    is_signed: bool = False
    #: The number of the key's entry; None if there is none.
    number: int | None = None
    #: What the delta table has at the place that was read.
    changed: bytes = b""


def find(part: Part, key: Any, arithmetic: Arithmetic, rng: Randomness) -> Target:
    """Return where to look for a key; what the delta does not have is looked for anywhere in it."""
    digests = Digests.of([key], bytes.fromhex(part.salt))
    fingerprint = int(digests.fingerprints[0])
    is_changed = fingerprint in part.changed
    place = (
        part.changed.index(fingerprint) if is_changed else int(rng.integers(0, part.delta, 1)[0])
    )
    slots = {
        # In a matrix, the directory has yet to say where.
        "filter": digests.slots(part.filters["xor"])[0].tolist() if arithmetic == "xor" else [0],
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
        signed = message(
            "range",
            statement.table,
            part.name,
            statement.base,
            number,
            content,
            edition=part.edition or "",
        )
        return reader.is_signed(signed, signature)

    known = listed(sums["directory"], number, of_range)
    delta = unpack_record(sums["delta"])
    if known is None or delta is None:
        return Standing()
    fingerprint, entry, signature = delta
    wanted = part.changed[place] if place < len(part.changed) else 0
    signed = message(
        "delta",
        statement.table,
        part.name,
        statement.version,
        place,
        entry,
        edition=part.delta_edition or "",
    )
    if fingerprint != wanted or not reader.is_signed(signed, signature):
        return Standing()
    # It is read after the second message has left: when that leaves must not tell what it says.
    return Standing(True, known.get(target.fingerprint), entry)


def aimed(target: Target, standing: Standing, decoy: Target, arithmetic: Arithmetic) -> Target:
    """Return whose entry is fetched: the key's own, or a decoy's; with the same work for both."""
    number = standing.number or 0
    place = {} if arithmetic == "xor" else {"filter": [number]}
    own = dataclasses.replace(target, number=number, slots=target.slots | place)
    return (own, decoy)[standing.number is None]


def proven(
    statement: Statement,
    part: Part,
    target: Target,
    standing: Standing,
    aim: Target,
    record: bytes,
    beside: dict[int, bytes],
    reader: Reader,
) -> Any:
    """Return the value that the publisher signed for a key; None if it is proven absent.

    `beside` are other entries that the answer tells, by number. Everything is checked whether it is needed or not. Any: a row, or a list of keys.

    Raises
    ------
    RefusedError
        If anything is not what the publisher signed, always with the same text.
    """
    found = {**beside, aim.number: record}
    checked = {number: _entry(statement, part, number, found[number], reader) for number in found}
    if not standing.is_signed or None in checked.values():
        raise _bad()
    key, value = checked[aim.number]
    if key != aim.key:
        raise _bad()
    if target.is_changed:
        key, value = json.loads(standing.changed)
        if key != target.key:
            raise _bad()
        return value
    return None if standing.number is None else value


def _entry(statement: Statement, part: Part, number: int, record: bytes, reader: Reader) -> Any:
    """Return key and value, or None if they are not signed for this number.

    Numbers without an entry fill a matrix up; they are zeros. Any: a row, or a list of keys.
    """
    assert part.entries is not None  # others are refused when the statement is read
    if number >= part.entries:
        return None if any(record) else (None, None)
    found = unpack_record(record)
    if found is None:
        return None
    fingerprint, entry, signature = found
    signed = message(
        "entry",
        statement.table,
        part.name,
        statement.base,
        number,
        entry,
        edition=part.edition or "",
    )
    if not reader.is_signed(signed, signature):
        return None
    key, value = json.loads(entry)
    own = Digests.of([key], bytes.fromhex(part.salt)).fingerprints[0]
    return (key, value) if fingerprint == own else None


def _bad() -> RefusedError:
    """Return the one error of all wrong answers."""
    return RefusedError(
        "an answer is not what the publisher signed: a server is wrong or lies",
        code="bad-answer",
        hint="tell the publisher by another way than these servers, and do not ask them again: whether "
        "you do would tell them that the answer was of use",
    )
