"""Points of P-256 by their first coordinate: hashed to, and multiplied by a secret.

A point and its opposite have the same first coordinate, and so have their multiples; whoever gets
a coordinate may take either of the two points.
"""

from __future__ import annotations

import hashlib

from cryptography.hazmat.primitives.asymmetric import ec

from discreet.errors import RefusedError
from discreet.randomness import Randomness

__all__ = ["hashed_to_curve", "multiplied", "new_secret"]

_CURVE = ec.SECP256R1()
_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


def new_secret(rng: Randomness) -> ec.EllipticCurvePrivateKey:
    """Return a secret factor; 320 random bits modulo the order are as good as uniform."""
    number = int.from_bytes(rng.bytes(40), "big") % (_ORDER - 1) + 1
    return ec.derive_private_key(number, _CURVE)


def hashed_to_curve(person: bytes, salt: bytes) -> bytes:
    """Return the first coordinate of a point that nobody knows the logarithm of.

    Hashes are tried until one is a coordinate; every second is. How long that takes depends on the
    identifier, and is seen by its own owner alone.
    """
    counter = 0
    while True:
        tried = hashlib.sha256(
            len(salt).to_bytes(2, "big") + salt + counter.to_bytes(4, "big") + person
        ).digest()
        try:
            _point(tried)
        except ValueError:
            counter += 1
        else:
            return tried


def _point(coordinate: bytes) -> ec.EllipticCurvePublicKey:
    return ec.EllipticCurvePublicKey.from_encoded_point(_CURVE, b"\x02" + coordinate)


def multiplied(secret: ec.EllipticCurvePrivateKey, coordinate: bytes) -> bytes:
    """Return the first coordinate of a multiple; refuse what is on no point of the curve."""
    try:
        point = _point(coordinate)
    except ValueError:
        raise RefusedError("a point beside the curve arrived", code="message-malformed") from None
    return secret.exchange(ec.ECDH(), point)
