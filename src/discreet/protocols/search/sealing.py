"""Messages that a group of members can read, written by somebody who does not show who wrote them.

Each message has a key of its own, which is wrapped for every reader: an ephemeral Diffie–Hellman
key on P-256 with the key in the reader's certificate, HKDF, AES-GCM. Nothing is signed, so that any
member could have written it. Messages are padded, so that their length tells little.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from discreet.errors import InputError, RefusedError

__all__ = ["Opener", "Sealer", "padded", "unpadded"]

_CURVE = ec.SECP256R1()
_POINT, _WRAPPED = 65, 32 + 16
#: Every key encrypts one message, so that the nonce may be constant.
_NONCE = bytes(12)


class Sealer:
    """Seals messages for some readers.

    Parameters
    ----------
    readers
        Certificates (PEM) by name; the wrapped keys are in the order of the names.
    """

    def __init__(self, readers: Mapping[str, str]) -> None:
        self._keys = [_public_key(name, readers[name]) for name in sorted(readers)]

    def seal(self, message: bytes, context: bytes) -> bytes:
        """Return the message for the readers; the context must be the same when it is opened."""
        ephemeral = ec.generate_private_key(_CURVE)
        point = _point(ephemeral.public_key())
        key = AESGCM.generate_key(256)
        wrapped = b"".join(
            AESGCM(_derived(ephemeral.exchange(ec.ECDH(), reader), point, reader)).encrypt(
                _NONCE, key, context
            )
            for reader in self._keys
        )
        return point + wrapped + AESGCM(key).encrypt(_NONCE, message, context)


class Opener:
    """Opens what was sealed for a member.

    Parameters
    ----------
    key
        The file of the member's private key.
    """

    def __init__(self, key: Path) -> None:
        loaded = serialization.load_pem_private_key(key.read_bytes(), password=None)
        if not isinstance(loaded, ec.EllipticCurvePrivateKey) or loaded.curve.name != _CURVE.name:
            raise _wrong_curve(str(key))
        self._key = loaded

    def open(self, sealed: bytes, context: bytes, *, place: int, readers: int) -> bytes:
        """Return a message sealed for `readers` members, of whom this is the one at `place`."""
        start = _POINT + place * _WRAPPED
        end = _POINT + readers * _WRAPPED
        point = sealed[:_POINT]
        try:
            theirs = ec.EllipticCurvePublicKey.from_encoded_point(_CURVE, point)
            shared = self._key.exchange(ec.ECDH(), theirs)
            wrapping = AESGCM(_derived(shared, point, self._key.public_key()))
            key = wrapping.decrypt(_NONCE, sealed[start : start + _WRAPPED], context)
            return AESGCM(key).decrypt(_NONCE, sealed[end:], context)
        except (InvalidTag, ValueError):
            raise RefusedError("a post cannot be opened", code="bad-post") from None


def padded(message: bytes, size: int) -> bytes:
    """Return a message with its length before it and zeros behind it, of the size or a doubling.

    >>> len(padded(b"gout", 64)), len(padded(bytes(100), 64))
    (64, 128)
    """
    while size < len(message) + 8:
        size *= 2
    return len(message).to_bytes(8, "big") + message.ljust(size - 8, b"\0")


def unpadded(message: bytes) -> bytes:
    """Return what was padded.

    >>> unpadded(padded(b"gout", 64))
    b'gout'
    """
    size = int.from_bytes(message[:8], "big")
    if size > len(message) - 8:
        raise RefusedError("a post cannot be opened", code="bad-post")
    return message[8 : 8 + size]


def _derived(shared: bytes, point: bytes, reader: ec.EllipticCurvePublicKey) -> bytes:
    told = b"discreet search space" + _point(reader)
    return HKDF(algorithm=hashes.SHA256(), length=32, salt=point, info=told).derive(shared)


def _point(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(
        serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
    )


def _public_key(name: str, certificate: str) -> ec.EllipticCurvePublicKey:
    key = x509.load_pem_x509_certificate(certificate.encode()).public_key()
    if not isinstance(key, ec.EllipticCurvePublicKey) or key.curve.name != _CURVE.name:
        raise _wrong_curve(name)
    return key


def _wrong_curve(whose: str) -> InputError:
    return InputError(
        f"the key of {whose} is not on the curve P-256",
        code="wrong-key",
        hint="write a new one with: discreet key new --for party NAME",
    )
