"""The directory of absence: which keys there are, as signed lists of fingerprints.

Keys are divided by their digests into ranges of 64 on average. A range is a record of 1 KiB that
lists the fingerprints in it, signed, and says how many keys the ranges before it have: records are
numbered in this order. A client reads the range of its key with every look-up: if the
fingerprint is not listed, the key is proven absent.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from discreet.protocols.retrieval.digests import Digests
from discreet.protocols.retrieval.schemes._base import Bytes
from discreet.protocols.retrieval.signing import SIGNATURE

__all__ = ["RANGE", "directory_of", "in_order", "listed", "ranges_for"]

#: Bytes of a range, and how many fingerprints fit.
RANGE = 1024
_HEAD = struct.Struct("<IQ")
_PLACES = 112
_AVERAGE = 64


def ranges_for(digests: Digests) -> int:
    """Return how many ranges there must be for the fullest to fit."""
    many = max(-(-len(digests.words) // _AVERAGE), 1)
    while np.bincount(digests.ranges(many), minlength=1).max(initial=0) > _PLACES:
        many += -(-many // 8)
    return many


def in_order(digests: Digests, many: int) -> npt.NDArray[np.int64]:
    """Return the order of keys: by range, in a range by fingerprint, whatever the order of the rows."""
    return np.lexsort((digests.fingerprints, digests.ranges(many)))


def directory_of(digests: Digests, many: int, sign: Callable[[int, bytes], bytes]) -> Bytes:
    """Return the directory of keys in order; `sign` is given a range's number and its content."""
    ends = np.searchsorted(digests.ranges(many), np.arange(many + 1))
    directory = np.zeros((many, RANGE), np.uint8)
    for number in range(many):
        inside = digests.fingerprints[ends[number] : ends[number + 1]]
        content = _HEAD.pack(inside.size, int(ends[number])) + inside.tobytes()
        made = content + sign(number, content)
        directory[number, : len(made)] = np.frombuffer(made, np.uint8)
    return directory


def listed(
    record: bytes, number: int, is_signed: Callable[[int, bytes, bytes], bool]
) -> dict[int, int] | None:
    """Return the records of a range by fingerprint, or None if the publisher did not sign it."""
    many, first = _HEAD.unpack_from(record)
    end = _HEAD.size + 8 * many
    if many > _PLACES or any(record[end + SIGNATURE :]):
        return None
    if not is_signed(number, record[:end], record[end : end + SIGNATURE]):
        return None
    prints = np.frombuffer(record, "<u8", many, offset=_HEAD.size).tolist()
    return dict(zip(prints, range(first, first + many), strict=True))
