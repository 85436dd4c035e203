"""SCRAM-SHA-256 (RFC 5802, RFC 7677), the server's side: passwords are never sent nor stored.

A verifier, as PostgreSQL writes it, is ``SCRAM-SHA-256$<iterations>:<salt>$<stored>:<server>``.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import hashlib
import hmac
import os
import stringprep
import unicodedata
from collections.abc import Iterable

__all__ = ["Exchange", "ScramError", "Strangers", "Verifier", "make_verifier"]

_ITERATIONS = 15_000


class ScramError(Exception):
    """The exchange failed; the client is told only that authentication failed."""


@dataclasses.dataclass(frozen=True)
class Verifier:
    """What the server keeps of a password."""

    iterations: int
    salt: bytes
    stored_key: bytes
    server_key: bytes

    @classmethod
    def parse(cls, text: str) -> Verifier:
        """Read a verifier as PostgreSQL writes it."""
        try:
            scheme, iterations_salt, keys = text.split("$")
            iterations, salt = iterations_salt.split(":")
            stored, server = keys.split(":")
            if scheme != "SCRAM-SHA-256":
                raise ValueError
            return cls(
                int(iterations),
                *(base64.b64decode(part, validate=True) for part in (salt, stored, server)),
            )
        except (ValueError, binascii.Error):
            raise ScramError("not a SCRAM-SHA-256 verifier") from None

    def __str__(self) -> str:
        salt, stored, server = (
            base64.b64encode(part).decode()
            for part in (self.salt, self.stored_key, self.server_key)
        )
        return f"SCRAM-SHA-256${self.iterations}:{salt}${stored}:{server}"


def make_verifier(
    password: str, *, salt: bytes | None = None, iterations: int = _ITERATIONS
) -> Verifier:
    """Return the verifier of a password.

    >>> str(make_verifier("secret", salt=bytes(16), iterations=4096)).split("$")[0]
    'SCRAM-SHA-256'
    """
    salt = os.urandom(16) if salt is None else salt
    salted = hashlib.pbkdf2_hmac("sha256", _prepared(password).encode(), salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    return Verifier(
        iterations,
        salt,
        hashlib.sha256(client_key).digest(),
        hmac.digest(salted, b"Server Key", "sha256"),
    )


def _prepared(password: str) -> str:
    """Normalise a password as clients do (SASLprep); one that cannot be is used as it is."""
    mapped = "".join(
        " " if stringprep.in_table_c12(ch) else ch
        for ch in password
        if not stringprep.in_table_b1(ch)
    )
    prepared = unicodedata.normalize("NFKC", mapped)
    forbidden = (
        stringprep.in_table_c12, stringprep.in_table_c21_c22, stringprep.in_table_c3, stringprep.in_table_c4,
        stringprep.in_table_c5, stringprep.in_table_c6, stringprep.in_table_c7, stringprep.in_table_c8, stringprep.in_table_c9,
    )  # fmt: skip
    if not prepared or any(test(ch) for ch in prepared for test in forbidden):
        return password
    return prepared


class Strangers:
    """What unknown users are shown, so that they cannot be told from known ones.

    Salts and iterations of a name must stay the same from one process to another and over
    restarts, as those of a user do. So they come from what only the server knows: its verifiers.
    """

    def __init__(self, verifiers: Iterable[str | None]) -> None:
        texts = sorted(text for text in verifiers if text)
        key = "\n".join(texts).encode() if texts else os.urandom(32)
        self.secret = hmac.digest(key, b"strangers", "sha256")
        self._iterations = []
        for text in texts:
            try:
                self._iterations.append(Verifier.parse(text).iterations)
            except ScramError:
                continue  # its user cannot log in either

    def iterations(self, user: str) -> int:
        """Return the iterations told for a name: those of some user, always the same."""
        if not self._iterations:
            return _ITERATIONS
        mark = hmac.digest(self.secret, b"iterations" + user.encode(), "sha256")
        return self._iterations[int.from_bytes(mark[:8], "big") % len(self._iterations)]


class Exchange:
    """One authentication: first message, challenge, proof, server's signature.

    For an unknown user the exchange runs against a verifier nobody has the password of, with a
    salt that is always the same for that name, so that users cannot be told from strangers.
    """

    def __init__(
        self,
        verifier: Verifier | None,
        *,
        user: str,
        secret: bytes,
        binding: bytes | None = None,
        iterations: int = _ITERATIONS,
    ) -> None:
        self._known = verifier is not None
        if verifier is None:
            salt = hmac.digest(secret, b"salt" + user.encode(), "sha256")[:16]
            verifier = Verifier(iterations, salt, os.urandom(32), os.urandom(32))
        self._verifier = verifier
        self._binding = binding
        self._first = b""
        self._server_first = b""
        self._header = b""
        self._nonce = b""

    def challenge(self, client_first: bytes, mechanism: str) -> bytes:
        """Answer the client's first message."""
        parts = client_first.split(b",", 2)
        if len(parts) != 3:
            raise ScramError("malformed first message")
        flag = parts[0]
        plus = mechanism == "SCRAM-SHA-256-PLUS"
        if plus != flag.startswith(b"p="):
            raise ScramError("channel binding does not fit the mechanism")
        if plus and (flag != b"p=tls-server-end-point" or self._binding is None):
            raise ScramError("unknown channel binding")
        if flag == b"y" and self._binding is not None:
            raise ScramError("downgraded channel binding")
        if not plus and flag not in (b"n", b"y"):
            raise ScramError("malformed channel binding flag")
        self._header = b",".join(parts[:2]) + b","
        self._first = parts[2]
        fields = dict(part.split(b"=", 1) for part in self._first.split(b",") if b"=" in part)
        if b"r" not in fields or not fields[b"r"]:
            raise ScramError("no nonce")
        self._nonce = fields[b"r"] + base64.b64encode(os.urandom(18))
        salt = base64.b64encode(self._verifier.salt)
        self._server_first = b"r=%b,s=%b,i=%d" % (self._nonce, salt, self._verifier.iterations)
        return self._server_first

    def finish(self, client_final: bytes) -> bytes:
        """Check the client's proof and return the server's signature."""
        without, mark, proof_text = client_final.rpartition(b",p=")
        if not mark:
            raise ScramError("no proof")
        fields = dict(part.split(b"=", 1) for part in without.split(b",") if b"=" in part)
        expected = self._header + (self._binding or b"" if self._header.startswith(b"p=") else b"")
        if fields.get(b"c") != base64.b64encode(expected) or fields.get(b"r") != self._nonce:
            raise ScramError("binding or nonce differs")
        try:
            proof = base64.b64decode(proof_text, validate=True)
        except binascii.Error:
            raise ScramError("malformed proof") from None
        signed = b",".join((self._first, self._server_first, without))
        signature = hmac.digest(self._verifier.stored_key, signed, "sha256")
        if len(proof) != len(signature):
            raise ScramError("malformed proof")
        key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        right = hmac.compare_digest(hashlib.sha256(key).digest(), self._verifier.stored_key)
        if not (right and self._known):
            raise ScramError("wrong password")
        return b"v=" + base64.b64encode(hmac.digest(self._verifier.server_key, signed, "sha256"))
