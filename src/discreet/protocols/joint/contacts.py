"""How one party reaches the others: addresses, pins and the agreement, from the policy."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from discreet.errors import InputError
from discreet.protocols.joint.declaration import PartyEntry
from discreet.protocols.transport.client import connect
from discreet.protocols.transport.identity import Identity, certificate_pin
from discreet.protocols.transport.link import Link
from discreet.protocols.transport.session import Agreement

__all__ = ["Contacts", "Listing"]


class Listing(Protocol):
    """Who the parties are and what their sessions are bound to: a policy, for instance."""

    @property
    def parties(self) -> Mapping[str, PartyEntry]:
        """Address and certificate of each party."""

    @property
    def folder(self) -> str:
        """Where certificates are found."""

    @property
    def time_limit(self) -> float:
        """Seconds to wait for a party."""

    def certificates(self) -> dict[str, str]:
        """Return the certificate of each party."""

    def agreement(self) -> Agreement:
        """Return what sessions are bound to."""


class Contacts:
    """The other parties, as the party of some name reaches them.

    `key` is its private key; by default the file beside its certificate.
    """

    def __init__(self, policy: Listing, name: str, key: str | Path | None = None) -> None:
        if name not in policy.parties:
            raise InputError(
                f"there is no party {name!r}",
                code="unknown-party",
                hint="choose one of " + ", ".join(policy.parties),
            )
        certificate = Path(policy.folder) / policy.parties[name].certificate
        self.identity = Identity.read(certificate, key or certificate.with_suffix(".key"))
        self.agreement = policy.agreement()
        self.certificates = {n: pem for n, pem in policy.certificates().items() if n != name}
        self._policy = policy

    def secret(self, purpose: bytes) -> bytes:
        """Return a secret of this party that follows from its private key and is kept nowhere."""
        key = serialization.load_pem_private_key(self.identity.key.read_bytes(), None)
        content = key.private_bytes(
            serialization.Encoding.DER,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        return HKDF(SHA256(), 32, salt=None, info=purpose).derive(content)

    def call(self, peer: str, *, session: str, purpose: str) -> Link:
        """Return a link to a party that holds the same policy."""
        address = self._policy.parties[peer].address
        assert address is not None  # the policy requires it of owners and nodes
        link = connect(
            address,
            pin=certificate_pin(self.certificates[peer]),
            peer=peer,
            identity=self.identity,
            time_limit=self._policy.time_limit,
        )
        try:
            self.agreement.call(link, session=session, purpose=purpose)
        except BaseException:
            link.close()
            raise
        return link
