"""A member of a crowd as a process: forwards searches of others, and its own user's among them.

Links are mutual TLS with pinned certificates. A path is laid once, hop by hop, and kept: paths that
are formed again for one author name the author. Each hop gives a path another number, so that two
members who work together cannot compare numbers, and no message says how far it has come.
"""

from __future__ import annotations

import collections
import dataclasses
import json
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Any, ClassVar, Self

from discreet.errors import EngineError, InputError, RefusedError
from discreet.protocols.search.backends import Backend, Document
from discreet.protocols.search.crowds import Crowds
from discreet.protocols.search.proxy import Found
from discreet.protocols.transport import (
    Identity,
    Message,
    Server,
    answer_requests,
    connect,
    request,
)
from discreet.protocols.transport.identity import certificate_pin, read_certificate
from discreet.randomness import Randomness
from discreet.registry import Record, parameter

__all__ = ["CrowdMember", "MemberEntry"]

#: Paths of others that are kept; the oldest are laid anew.
_PATHS = 10_000
_TERM = 4_000
_BYTES = 1 << 26
_SECONDS = 60.0


@dataclasses.dataclass(frozen=True)
class MemberEntry(Record):
    """One member: where it listens, and the certificate by which the others know it."""

    spelled: ClassVar[str] = "certificate"
    certificate: str = parameter(
        help="its .crt file, from `discreet key new --for party`", file="read"
    )
    address: str = parameter(help="host:port")


class CrowdMember:
    """Takes part in a crowd, and searches through it for its own user.

    Parameters
    ----------
    name
        Which of the members this is.
    members
        Everybody in the crowd, this member included.
    crowd
        The crowd's parameters; its probability of forwarding.
    backend
        The engine that the last member of a path asks.
    identity
        Key and certificate of this member.
    """

    def __init__(
        self,
        name: str,
        members: Mapping[str, MemberEntry],
        crowd: Crowds,
        backend: Backend,
        *,
        identity: Identity,
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
        shown = {who: read_certificate(entry.certificate) for who, entry in members.items()}
        self._pins = {who: certificate_pin(pem) for who, pem in shown.items()}
        if identity.pin != self._pins[name]:
            raise InputError(
                f"the key is not that of {name!r}",
                code="wrong-key",
                hint="give the key that belongs to the certificate in the policy",
            )
        self._crowd, self._backend, self._identity = crowd, backend, identity
        self._rng = rng or Randomness.secure()
        self._lock = threading.Lock()
        self._next: collections.OrderedDict[tuple[str, str], tuple[str, str] | None]
        self._next = collections.OrderedDict()
        #: Where this user's own searches go first: one path for as long as the member runs.
        self._own = (self._drawn(), self._number())
        self._server = Server(
            members[name].address,
            identity=identity,
            clients=shown,
            handle=answer_requests(self.answer, limit=_TERM),
        )

    def search(self, term: str) -> Found:
        """Return the documents with a term, fetched by whoever ends the path."""
        sent = term.encode()
        if not 0 < len(sent) <= _TERM:
            raise InputError(
                f"a term has 1 to {_TERM:,} bytes, found {len(sent):,}", code="parameter-range"
            )
        return Found(_read(self._forward(*self._own, sent)), 1, 1)

    def answer(self, peer: str, message: Message) -> Message:
        """Forward the search of another member, or send it to the engine."""
        path = message.fields.get("path")
        if message.label != "search" or not isinstance(path, str) or len(path) != 32:
            raise RefusedError("this is no search of a crowd", code="message-malformed")
        step = self._step(peer, path)
        if step is not None:
            return Message("found", {}, self._forward(*step, bytes(message.body)))
        try:
            term = bytes(message.body).decode()
        except UnicodeDecodeError:
            raise RefusedError("a search is UTF-8 text", code="message-malformed") from None
        found = self._backend.matching(self._backend.search([term]), term)
        body = json.dumps(found, default=str).encode()
        if len(body) > _BYTES:
            raise EngineError("too much was found to be sent", code="too-many-documents")
        return Message("found", {}, body)

    def _step(self, peer: str, path: str) -> tuple[str, str] | None:
        """Return where a path leads, laid the first time; None where it ends here."""
        with self._lock:
            place = (peer, path)
            if place not in self._next:
                ends = not self._rng.bernoulli(self._crowd.pf, 1)[0]
                self._next[place] = None if ends else (self._drawn(), self._number())
                if len(self._next) > _PATHS:
                    self._next.popitem(last=False)
            return self._next[place]

    def _drawn(self) -> str:
        names = list(self._addresses)
        return names[int(self._rng.integers(0, len(names), 1)[0])]

    def _number(self) -> str:
        return self._rng.bytes(16).hex()

    def _forward(self, who: str, path: str, term: bytes) -> bytes:
        with connect(
            self._addresses[who],
            pin=self._pins[who],
            peer=who,
            identity=self._identity,
            time_limit=_SECONDS,
        ) as link:
            found = request(link, "search", {"path": path}, term, limit=_BYTES)
        return bytes(found.body)

    def close(self) -> None:
        """Leave the crowd."""
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


def _read(body: bytes) -> list[Document]:
    """Return documents that another member fetched; it is not trusted."""
    try:
        found: Any = json.loads(body)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or not all(isinstance(row, dict) for row in found):
        raise RefusedError(
            "a member of the crowd answered something else than documents", code="bad-answer"
        )
    return found
