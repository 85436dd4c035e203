"""Messages as bytes: a head of fixed size, a small JSON header, a body.

The head states both lengths, so a reader refuses what is too long before it reserves memory. The
number counts the messages of one direction of one link: a message that is repeated, left out or
out of order is refused.
"""

from __future__ import annotations

import dataclasses
import json
import struct
from collections.abc import Mapping
from typing import Any

from discreet.errors import RefusedError

__all__ = ["HEAD", "Message", "pack", "read_fields", "read_head"]

_MAGIC = b"dscr"
_VERSION = 1
_HEAD = struct.Struct("!4sBQIQ")
HEAD = _HEAD.size
#: What a header may take; anything larger belongs into the body.
HEADER_LIMIT = 1 << 16
_LABEL_LIMIT = 64


@dataclasses.dataclass(frozen=True, eq=False)
class Message:
    """What one party sends another: a label, small fields as plain data, and a body of bytes.

    Examples
    --------
    >>> message = Message("sum", {"session": "x"}, bytes(16))
    >>> head, header = pack(message, number=0)
    >>> read_head(head, number=0, limit=16)
    (23, 16)
    >>> read_fields(header)
    ('sum', {'session': 'x'})
    >>> read_head(head, number=0, limit=8)
    Traceback (most recent call last):
    discreet.errors.RefusedError: a message of 16 bytes ...
    """

    label: str
    fields: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    body: bytes | bytearray | memoryview = b""


def pack(message: Message, *, number: int) -> tuple[bytes, bytes]:
    """Return head and header of a message; the body follows them as it is."""
    header = json.dumps([message.label, dict(message.fields)], separators=(",", ":")).encode()
    if len(header) > HEADER_LIMIT or len(message.label) > _LABEL_LIMIT:
        raise ValueError(f"the header of message {message.label!r} is too long")
    return _HEAD.pack(_MAGIC, _VERSION, number, len(header), len(message.body)), header


def read_head(head: bytes, *, number: int, limit: int) -> tuple[int, int]:
    """Return the lengths of header and body, or refuse the message."""
    magic, version, found, header, body = _HEAD.unpack(head)
    if magic != _MAGIC:
        raise _malformed("it does not begin as one")
    if version != _VERSION:
        raise RefusedError(
            f"the other side frames its messages in version {version}, this side in {_VERSION}",
            code="version-differs",
            hint="run the same version of discreet on both sides",
        )
    if found != number:
        raise RefusedError(
            f"message {found} arrived where message {number} was due: repeated, lost or reordered",
            code="message-out-of-order",
        )
    if header > HEADER_LIMIT or body > limit:
        size = max(header if header > HEADER_LIMIT else 0, body)
        raise RefusedError(
            f"a message of {size} bytes arrived where at most {limit} are due",
            code="message-too-long",
        )
    return header, body


def read_fields(header: bytes) -> tuple[str, dict[str, Any]]:
    """Return label and fields of a header, or refuse it."""
    try:
        found = json.loads(header)
    except (ValueError, RecursionError):
        raise _malformed("its header is not JSON") from None
    match found:
        case [str() as label, dict() as fields] if len(label) <= _LABEL_LIMIT:
            return label, fields
    raise _malformed("its header is not a label and fields")


def _malformed(why: str) -> RefusedError:
    return RefusedError(f"what arrived is not a message: {why}", code="message-malformed")
