"""What takes part in a disguise that needs others: a process that the other members know by its pin."""

from __future__ import annotations

import abc
import dataclasses
import json
from collections.abc import Mapping
from types import TracebackType
from typing import Any, ClassVar, Self

from discreet.errors import EngineError, InputError, RefusedError
from discreet.protocols.search.backends import Backend, Document, Found
from discreet.protocols.search.terms import require_text
from discreet.protocols.transport import (
    Identity,
    Link,
    Message,
    Server,
    answer_requests,
    connect,
)
from discreet.protocols.transport.identity import certificate_pin, read_certificate
from discreet.randomness import Randomness
from discreet.registry import Record, parameter

__all__ = ["MOST_BYTES", "MemberEntry", "SearchMember"]

#: Bytes of documents that one search may bring.
MOST_BYTES = 1 << 26
_TERM = 4_000
_SECONDS = 60.0


@dataclasses.dataclass(frozen=True)
class MemberEntry(Record):
    """One member: where it listens, and the certificate by which the others know it."""

    spelled: ClassVar[str] = "certificate"
    certificate: str = parameter(
        help="its .crt file, from `discreet key new --for party`", file="read"
    )
    address: str = parameter(help="host:port")


class SearchMember(abc.ABC):
    """Takes part in a disguise, and searches through it for its own user.

    Parameters
    ----------
    name
        Which of the members this is.
    members
        Everybody who takes part, this member included.
    backend
        The engine that this member asks.
    identity
        Key and certificate of this member.
    limit
        Bytes that one message from another member may have.
    """

    def __init__(
        self,
        name: str,
        members: Mapping[str, MemberEntry],
        backend: Backend,
        *,
        identity: Identity,
        limit: int,
        rng: Randomness | None = None,
    ) -> None:
        if name not in members or len(members) < 3:
            raise InputError(
                f"{name!r} is not among the members"
                if name not in members
                else f"{len(members)} members are no crowd",
                code="crowd-too-small" if name in members else "unknown-member",
                hint=f"the members are {', '.join(members)}; at least three are needed",
            )
        self.name = name
        self._addresses = {who: entry.address for who, entry in members.items()}
        self._certificates = {who: read_certificate(e.certificate) for who, e in members.items()}
        self._pins = {who: certificate_pin(pem) for who, pem in self._certificates.items()}
        if identity.pin != self._pins[name]:
            raise InputError(
                f"the key is not that of {name!r}",
                code="wrong-key",
                hint="give the key that belongs to the certificate in the policy",
            )
        self._backend, self._identity = backend, identity
        self._rng = rng or Randomness.secure()
        self._server = Server(
            members[name].address,
            identity=identity,
            clients=self._certificates,
            handle=answer_requests(self.answer, limit=limit),
            connections=max(64, 4 * len(members)),
        )

    @abc.abstractmethod
    def search(self, term: str) -> Found:
        """Return the documents with a term, fetched so that the engine does not know for whom."""

    @abc.abstractmethod
    def answer(self, peer: str, message: Message) -> Message:
        """Answer a message of another member."""

    def _connect(self, who: str) -> Link:
        return connect(
            self._addresses[who],
            pin=self._pins[who],
            peer=who,
            identity=self._identity,
            time_limit=_SECONDS,
        )

    def _ask_engine(self, term: bytes) -> bytes:
        """Return what the engine finds for the term of another member, to be sent back."""
        try:
            text = require_text(term.decode())
        except (UnicodeDecodeError, InputError):
            raise RefusedError("a search is UTF-8 text", code="message-malformed") from None
        found = self._backend.matching(self._backend.search([text]), text)
        body = json.dumps(found, default=str).encode()
        if len(body) > MOST_BYTES:
            raise EngineError("too much was found to be sent", code="too-many-documents")
        return body

    def close(self) -> None:
        """Take part no more."""
        self._server.close()
        self._backend.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def encoded_term(term: str) -> bytes:
    """Return a term as it is sent; nobody's engine reads control characters in it."""
    sent = require_text(term).encode()
    if not 0 < len(sent) <= _TERM:
        raise InputError(
            f"a term has 1 to {_TERM:,} bytes, found {len(sent):,}", code="parameter-range"
        )
    return sent


def read_documents(body: bytes) -> list[Document]:
    """Return documents that another member fetched; it is not trusted."""
    try:
        found: Any = json.loads(body)  # Any: a stranger's JSON
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or not all(isinstance(row, dict) for row in found):
        raise RefusedError("a member answered something else than documents", code="bad-answer")
    return found
