"""Records of fixed width: a fingerprint, a length, an entry, a signature, and zeros."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from discreet.errors import InputError
from discreet.protocols.retrieval.signing import SIGNATURE

__all__ = ["pack_record", "require_width", "unpack_record", "width_for"]

_HEAD = struct.Struct("<QI")
#: Records are whole multiples of this: eight words.
_UNIT = 64
#: Every record takes as much as the longest, in every file and at every server.
_WIDEST = 1 << 20


def width_for(longest: int, wanted: int | None = None, *, built: bool = False) -> int:
    """Return the width of records for entries of at most so many bytes.

    In a table that is `built`, it cannot be chosen any more.

    >>> width_for(100), width_for(100, 1024)
    (192, 1024)
    """
    if wanted is not None:
        require_width(wanted)
    needed = -(-(_HEAD.size + longest + SIGNATURE) // _UNIT) * _UNIT
    if wanted is not None and wanted < needed:
        raise InputError(
            f"the longest row needs records of {needed} bytes, and `width` is {wanted}",
            code="row-too-long",
            hint=f"write width: {needed} (a multiple of {_UNIT})"
            + (" and build the table again" if built else ", or publish fewer columns"),
        )
    return needed if wanted is None else wanted


def require_width(width: int) -> None:
    """Refuse a width that records cannot have."""
    if width % _UNIT or not _UNIT <= width <= _WIDEST:
        raise InputError(
            f"records have a multiple of {_UNIT} bytes up to {_WIDEST:,}, and `width` is {width}",
            code="retrieval-width",
            hint=f"write width: {min(-(-max(width, 1) // _UNIT) * _UNIT, _WIDEST)}, or leave it out",
        )


def pack_record(fingerprint: int, entry: bytes, signature: bytes, width: int) -> bytes:
    """Return a record."""
    return (_HEAD.pack(fingerprint, len(entry)) + entry + signature).ljust(width, b"\0")


def unpack_record(record: bytes) -> tuple[int, bytes, bytes] | None:
    """Return fingerprint, entry and signature; None if these bytes are not a record.

    >>> unpack_record(pack_record(7, b"entry", b"s" * 64, 128))[:2]
    (7, b'entry')
    """
    fingerprint, length = _HEAD.unpack_from(record)
    end = _HEAD.size + length
    # Whatever is not zero behind the signature was put there by somebody else.
    if end + SIGNATURE > len(record) or any(record[end + SIGNATURE :]):
        return None
    return fingerprint, record[_HEAD.size : end], record[end : end + SIGNATURE]


def as_rows(records: Sequence[bytes], width: int) -> npt.NDArray[np.uint8]:
    """Return records as the rows of an array."""
    return np.frombuffer(b"".join(records), np.uint8).reshape(-1, width)
