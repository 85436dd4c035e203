"""Masked parts that one aggregator adds up, with owners that may go away at any moment.

Every two owners agree a mask by Diffie-Hellman, added by one and subtracted by the other; every
owner adds a mask of its own as well. The secrets of both are dealt to all owners, t of whom can put
one together. At the end each owner hands out, for every other owner, either its piece of the key
(of one that went away) or its piece of the own mask (of one that stayed), never both.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from discreet.errors import DiscreetError, EngineError, RefusedError
from discreet.protocols.arithmetic.shares import Words, words
from discreet.protocols.joint.protocol import Seat
from discreet.randomness import Randomness

__all__ = ["aggregate", "contribute"]

_KEY = 32
_KEYS = 2 * _KEY
_SIGNATURE = 128  # room for a signature in DER form, its length in front
_PIECES = 2 * _KEY  # of the key and of the own mask
_SEALED = 12 + _PIECES + 16


def _derived(shared: bytes, purpose: bytes, session: bytes) -> bytes:
    return HKDF(SHA256(), 32, salt=session, info=purpose).derive(shared)


def _stream(secret: bytes, size: int) -> Words:
    return Randomness.keyed(secret, b"sum mask").words(size)


def _dealt(secret: bytes, owners: int, stay: int) -> list[bytes]:
    """Return one piece for each owner; so many of them give the secret of 32 bytes back."""
    from Crypto.Protocol.SecretSharing import Shamir

    halves = [dict(Shamir.split(stay, owners, half)) for half in (secret[:16], secret[16:])]
    return [halves[0][place] + halves[1][place] for place in range(1, owners + 1)]


def _joined(pieces: Mapping[int, bytes]) -> bytes:
    from Crypto.Protocol.SecretSharing import Shamir

    halves = [
        [(place + 1, piece[half : half + 16]) for place, piece in pieces.items()]
        for half in (0, 16)
    ]
    return b"".join(bytes(Shamir.combine(half)) for half in halves)


def _present(flags: bytes, owners: tuple[str, ...]) -> list[str]:
    return [owner for owner, flag in zip(owners, flags, strict=True) if flag]


def _require(present: list[str], stay: int) -> None:
    if len(present) < stay:
        raise EngineError(
            f"{len(present)} owners are left, and {stay} must stay",
            code="too-few-owners",
            hint="start the owners that are missing, and ask again",
        )


# -- an owner -----------------------------------------------------------------------------------------
def contribute(seat: Seat, own: npt.NDArray[np.int64], stay: int) -> None:
    """Take part with one's own numbers: keys, pieces, the masked part, the pieces asked for."""
    wire, owners, session = seat.wire, seat.cast.owners, seat.cast.session
    aggregator, n = str(seat.cast.dealer), len(owners)
    sealing, masking = (X25519PrivateKey.from_private_bytes(seat.rng.bytes(_KEY)) for _ in "ab")
    mine = sealing.public_key().public_bytes_raw() + masking.public_key().public_bytes_raw()
    wire.send(aggregator, "keys", mine + _padded(seat.sign(_stated(session, seat.name, mine))))
    listed = bytes(wire.receive(aggregator, "all keys", size=n * (1 + _KEYS + _SIGNATURE)))
    keys = _known_keys(seat, listed, mine, stay)
    own_mask, masking_secret = seat.rng.bytes(_KEY), masking.private_bytes_raw()
    pieces = list(zip(*(_dealt(s, n, stay) for s in (masking_secret, own_mask)), strict=True))
    sealed, held = b"", {}
    for place, owner in enumerate(owners):
        both = b"".join(pieces[place])
        if owner == seat.name:
            held[owner] = both
        if owner not in keys or owner == seat.name:
            sealed += bytes(_SEALED)
            continue
        nonce = seat.rng.bytes(12)
        key = _derived(_agreed(sealing, keys[owner][:_KEY]), b"pieces", session)
        sealed += nonce + AESGCM(key).encrypt(nonce, both, f"{seat.name}>{owner}".encode())
    wire.send(aggregator, "pieces", sealed)
    body = bytes(wire.receive(aggregator, "all pieces", size=n * (1 + _SEALED)))
    dealing = _present(body[:n], owners)
    _require(dealing, stay)
    for place, owner in enumerate(owners):
        if owner == seat.name or owner not in dealing or owner not in keys:
            continue
        box = body[n + place * _SEALED : n + (place + 1) * _SEALED]
        key = _derived(_agreed(sealing, keys[owner][:_KEY]), b"pieces", session)
        try:
            held[owner] = AESGCM(key).decrypt(box[:12], box[12:], f"{owner}>{seat.name}".encode())
        except InvalidTag:
            raise RefusedError("a piece was changed on its way", code="message-malformed") from None
    masked = words(own) + _stream(own_mask, len(own))
    for owner in dealing:
        if owner != seat.name:
            masked = masked + _between(
                seat.name, owner, masking, keys[owner][_KEY:], session, len(own)
            )
    wire.send(aggregator, "masked part", masked.astype("<u8").tobytes())
    flags = bytes(wire.receive(aggregator, "who stayed", size=n))
    stayed = _present(flags, owners)
    _require(stayed, stay)
    if seat.name not in stayed or not set(stayed) <= set(dealing):
        raise RefusedError("the list of those who stayed is not true", code="message-unexpected")
    answer = b""
    for owner in owners:
        both = held.get(owner, bytes(_PIECES))
        # Never both: the key of one who stayed would open its part.
        answer += both[_KEY:] if owner in stayed else both[:_KEY]
    wire.send(aggregator, "asked pieces", answer)


def _stated(session: bytes, owner: str, keys: bytes) -> bytes:
    return b"keys of " + owner.encode() + b"\0" + session + keys


def _padded(signature: bytes) -> bytes:
    return (len(signature).to_bytes(2, "big") + signature).ljust(_SIGNATURE, b"\0")


def _known_keys(seat: Seat, listed: bytes, mine: bytes, stay: int) -> dict[str, bytes]:
    """Return the keys of the owners, each signed with the key behind its pinned certificate."""
    owners = seat.cast.owners
    present = _present(listed[: len(owners)], owners)
    _require(present, stay)
    found = {}
    for place, owner in enumerate(owners):
        if owner not in present:
            continue
        start = len(owners) + place * (_KEYS + _SIGNATURE)
        keys, rest = listed[start : start + _KEYS], listed[start + _KEYS :][:_SIGNATURE]
        length = min(int.from_bytes(rest[:2], "big"), _SIGNATURE - 2)
        if owner == seat.name:
            if keys != mine:
                raise RefusedError("the keys of this owner were changed", code="wrong-signature")
        elif not seat.verify(owner, _stated(seat.cast.session, owner, keys), rest[2 : 2 + length]):
            raise RefusedError(
                f"the keys of {owner} are not signed by its certificate", code="wrong-signature"
            )
        found[owner] = keys
    if seat.name not in found or len(set(found.values())) < len(found):
        raise RefusedError("the list of keys is not true", code="message-unexpected")
    return found


def _agreed(secret: X25519PrivateKey, public: bytes) -> bytes:
    try:
        return secret.exchange(X25519PublicKey.from_public_bytes(public))
    except ValueError:
        raise RefusedError("a key that agrees with everybody arrived", code="wrong-key") from None


def _between(
    name: str, other: str, secret: X25519PrivateKey, public: bytes, session: bytes, size: int
) -> Words:
    """Return the mask between two owners as the first of them adds it."""
    stream = _stream(_derived(_agreed(secret, public), b"mask", session), size)
    return stream if name < other else np.uint64(0) - stream


# -- the aggregator -----------------------------------------------------------------------------------
def aggregate(seat: Seat, size: int, stay: int, meaning: str) -> tuple[npt.NDArray[np.int64], int]:
    """Return the sum over the owners that stayed, and how many they are."""
    owners, n = seat.cast.owners, len(seat.cast.owners)
    width = _KEYS + _SIGNATURE
    keys = _heard(seat, list(owners), "keys", width)
    _require(list(keys), stay)
    listed = bytes(owner in keys for owner in owners)
    listed += b"".join(keys.get(owner, bytes(width)) for owner in owners)
    _told(seat, keys, "all keys", dict.fromkeys(keys, listed))
    sealed = _heard(seat, list(keys), "pieces", n * _SEALED)
    _require(list(sealed), stay)
    flags = bytes(owner in sealed for owner in owners)
    boxes = {
        to: flags
        + b"".join(
            sealed[one][place * _SEALED :][:_SEALED] if one in sealed else bytes(_SEALED)
            for one in owners
        )
        for place, to in enumerate(owners)
    }
    _told(seat, sealed, "all pieces", boxes)
    parts = _heard(seat, list(sealed), "masked part", 8 * size)
    _require(list(parts), stay)
    seat.announce(meaning, size)
    stayed = bytes(owner in parts for owner in owners)
    _told(seat, parts, "who stayed", dict.fromkeys(parts, stayed))
    pieces = _heard(seat, list(parts), "asked pieces", n * _KEY)
    _require(list(pieces), stay)
    total = np.zeros(size, dtype=np.uint64)
    for body in parts.values():
        total = total + np.frombuffer(body, dtype="<u8").astype(np.uint64)
    asked = dict(list(pieces.items())[:stay])
    for place, owner in enumerate(owners):
        if owner not in sealed:
            continue
        secret = _joined(
            {
                owners.index(one): body[place * _KEY : (place + 1) * _KEY]
                for one, body in asked.items()
            }
        )
        if owner in parts:
            total = total - _stream(secret, size)
            continue
        gone = X25519PrivateKey.from_private_bytes(secret)
        for one in parts:
            public = keys[one][_KEY:_KEYS]
            total = total + _between(owner, one, gone, public, seat.cast.session, size)
    found = total.view(np.int64)
    seat.wire.transcript.open(meaning, found.tobytes(), cells=size)
    return found, len(parts)


def _heard(seat: Seat, owners: list[str], label: str, size: int) -> dict[str, bytes]:
    """Return what arrived; whoever is gone or silent is left out from here on."""
    found = {}
    for owner in owners:
        try:
            found[owner] = bytes(seat.wire.receive(owner, label, size=size))
        except EngineError:
            continue
    return found


def _told(seat: Seat, whom: Mapping[str, object], label: str, bodies: Mapping[str, bytes]) -> None:
    for owner in whom:
        try:
            seat.wire.send(owner, label, bodies[owner])
        except DiscreetError:
            continue  # it is missed when it does not answer
