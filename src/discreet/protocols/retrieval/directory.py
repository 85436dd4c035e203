"""The directory of absence: which keys there are, as signed lists of fingerprints.

Keys are divided by their digests into ranges of 64 on average. A range is a record of 1 KiB that
lists the fingerprints in it, signed. A client reads the range of its key with every look-up: if the
fingerprint is not listed, the key is proven absent.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

import numpy as np

from discreet.protocols.retrieval.digests import Digests
from discreet.protocols.retrieval.schemes._base import Bytes
from discreet.protocols.retrieval.signing import SIGNATURE

__all__ = ["RANGE", "directory_of", "listed", "ranges_for"]

#: Bytes of a range, and how many fingerprints fit.
RANGE = 1024
_HEAD = struct.Struct("<I")
_PLACES = 112
_AVERAGE = 64


def ranges_for(digests: Digests) -> int:
    """Return how many ranges there must be for the fullest to fit."""
    many = max(-(-len(digests.words) // _AVERAGE), 1)
    while np.bincount(digests.ranges(many), minlength=1).max(initial=0) > _PLACES:
        many += -(-many // 8)
    return many


def directory_of(digests: Digests, many: int, sign: Callable[[int, bytes], bytes]) -> Bytes:
    """Return the directory; `sign` is given a range's number and its content."""
    ranges = digests.ranges(many)
    # Within a range in numeric order, which tells nothing about the order of the rows.
    order = np.lexsort((digests.fingerprints, ranges))
    ends = np.searchsorted(ranges[order], np.arange(many + 1))
    directory = np.zeros((many, RANGE), np.uint8)
    for number in range(many):
        inside = digests.fingerprints[order[ends[number] : ends[number + 1]]]
        content = _HEAD.pack(inside.size) + inside.tobytes()
        made = content + sign(number, content)
        directory[number, : len(made)] = np.frombuffer(made, np.uint8)
    return directory


def listed(
    record: bytes, number: int, is_signed: Callable[[int, bytes, bytes], bool]
) -> Sequence[int] | None:
    """Return the fingerprints of a range, or None if the publisher did not sign it."""
    (many,) = _HEAD.unpack_from(record)
    end = _HEAD.size + 8 * many
    if many > _PLACES or any(record[end + SIGNATURE :]):
        return None
    if not is_signed(number, record[:end], record[end : end + SIGNATURE]):
        return None
    return np.frombuffer(record, "<u8", many, offset=_HEAD.size).tolist()  # type: ignore[no-any-return]  # integers
