"""What the publisher signs: entries, ranges of the directory and the statement of a version."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Literal

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from discreet.data.keys import read_key_file
from discreet.errors import InputError

__all__ = ["SIGNATURE", "Publisher", "Reader", "message"]

#: Bytes of a signature.
SIGNATURE = 64
_PREFIX = "ed25519:"


def message(
    what: Literal["entry", "delta", "range", "row", "statement"],
    table: str,
    part: str,
    version: int,
    place: int,
    content: bytes,
    *,
    edition: str = "",
) -> bytes:
    """Return what is signed: nothing signed for one purpose can stand for another.

    `edition` is the digest of everything signed beside it: a publisher who begins a table anew, under
    the same name and from version 1, signs no row that could be shown as one of the first table.
    """
    words = ("discreet retrieval", what, table, part, edition)
    names = [word.encode() for word in words]
    lengths = b"".join(struct.pack("<I", len(name)) + name for name in names)
    return lengths + struct.pack("<QQ", version, place) + content


class Publisher:
    """Signs; made from a key file, so that the same file always signs as the same publisher.

    Examples
    --------
    >>> publisher = Publisher(bytes(32))
    >>> signed = publisher.sign(b"row")
    >>> publisher.reader.is_signed(b"row", signed), publisher.reader.is_signed(b"raw", signed)
    (True, False)
    """

    def __init__(self, secret: bytes) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(secret)
        self.sign = self._key.sign

    @classmethod
    def read(cls, file: str | Path) -> Publisher:
        """Return the publisher of a key file."""
        return cls(read_key_file(file, drawn=True))

    @property
    def reader(self) -> Reader:
        """What checks the signatures."""
        raw = self._key.public_key().public_bytes(
            serialization.Encoding.Raw, serialization.PublicFormat.Raw
        )
        return Reader(_PREFIX + raw.hex())


class Reader:
    """Checks signatures of one publisher, known by a text such as `ed25519:9f…`."""

    def __init__(self, public: str) -> None:
        try:
            if not public.startswith(_PREFIX):
                raise ValueError
            self._key = Ed25519PublicKey.from_public_bytes(
                bytes.fromhex(public.removeprefix(_PREFIX))
            )
        except ValueError:
            raise InputError(
                "the publisher's key is not one",
                code="publisher-key",
                hint="write ed25519: and 64 hexadecimal digits, as `discreet retrieve build` prints",
            ) from None
        self.public = public

    def is_signed(self, content: bytes, signature: bytes) -> bool:
        """Whether the publisher signed this."""
        try:
            self._key.verify(signature, content)
        except InvalidSignature:
            return False
        return True
