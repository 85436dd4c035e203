"""A member of a crowd as a process: forwards searches of others, and its own user's among them.

Links are mutual TLS with pinned certificates. A path is laid once, hop by hop, and kept: paths that
are formed again for one author name the author. Each hop gives a path another number, so that two
members who work together cannot compare numbers, and no message says how far it has come.

Where the next member is away, whoever would forward to it draws another; the path before it stays as it
is (Reiter and Rubin: the predecessor of a member that fails). Author and forwarders do so alike.
"""

from __future__ import annotations

import collections
import dataclasses
import threading
from collections.abc import Collection, Mapping

from discreet.errors import EngineError, RefusedError
from discreet.protocols.search.backends import Backend, Found
from discreet.protocols.search.member import (
    MOST_BYTES,
    MemberEntry,
    SearchMember,
    encoded_term,
    read_documents,
)
from discreet.protocols.transport import Identity, Message
from discreet.protocols.transport.client import raise_error
from discreet.randomness import Randomness

__all__ = ["CrowdMember"]

#: Paths of others that are kept; the oldest are laid anew.
_PATHS = 10_000
_LIMIT = 4_000
#: With fewer members at work than these, whoever seeks is too easily named.
_CROWD = 3


@dataclasses.dataclass
class _Hop:
    """Where a path goes next, and its number there; changed when that member is away."""

    who: str
    path: str


class CrowdMember(SearchMember):
    """Takes part in a crowd, and searches through it for its own user.

    Parameters
    ----------
    name, members, backend, identity
        As of every member.
    pf
        Probability with which a search is forwarded once more.
    """

    def __init__(
        self,
        name: str,
        members: Mapping[str, MemberEntry],
        backend: Backend,
        *,
        identity: Identity,
        pf: float,
        rng: Randomness | None = None,
    ) -> None:
        self._pf = pf
        self._lock = threading.Lock()
        self._next: collections.OrderedDict[tuple[str, str], _Hop | None]
        self._next = collections.OrderedDict()
        super().__init__(name, members, backend, identity=identity, limit=_LIMIT, rng=rng)
        #: Where this user's own searches go first: one path for as long as the member runs.
        self._own = self._hop()

    def search(self, term: str) -> Found:
        """Return the documents with a term, fetched by whoever ends the path."""
        return Found(read_documents(self._forward(self._own, encoded_term(term))), 1, 1)

    def answer(self, peer: str, message: Message) -> Message:
        """Forward the search of another member, or send it to the engine."""
        path = message.fields.get("path")
        if message.label != "search" or not isinstance(path, str) or len(path) != 32:
            raise RefusedError("this is no search of a crowd", code="message-malformed")
        hop = self._step(peer, path)
        term = bytes(message.body)
        found = self._ask_engine(term) if hop is None else self._forward(hop, term)
        return Message("found", {}, found)

    def _step(self, peer: str, path: str) -> _Hop | None:
        """Return where a path leads, laid the first time; None where it ends here."""
        with self._lock:
            place = (peer, path)
            if place not in self._next:
                ends = not self._rng.bernoulli(self._pf, 1)[0]
                self._next[place] = None if ends else self._hop()
                if len(self._next) > _PATHS:
                    self._next.popitem(last=False)
            return self._next[place]

    def _hop(self, away: Collection[str] = ()) -> _Hop:
        names = [name for name in self._addresses if name not in away]
        who = names[int(self._rng.integers(0, len(names), 1)[0])]
        return _Hop(who, self._rng.bytes(16).hex())

    def _forward(self, hop: _Hop, term: bytes) -> bytes:
        """Send a search on; a hop that is away is replaced for this search and those that follow."""
        away: set[str] = set()
        while True:
            with self._lock:
                who, path = hop.who, hop.path
            try:
                return self._sent(who, path, term)
            except _AwayError as error:
                away.add(who)
                if len(self._addresses) - len(away) < _CROWD:
                    raise error.reason from error
            self._replace(hop, who, away)

    def _replace(self, hop: _Hop, who: str, away: Collection[str]) -> None:
        with self._lock:
            if hop.who == who:  # else another search was quicker, and both follow one path
                new = self._hop(away)
                hop.who, hop.path = new.who, new.path

    def _sent(self, who: str, path: str, term: bytes) -> bytes:
        # A path may pass the same two members twice: a link that is shared would wait for itself.
        try:
            link = self._connect(who)
        except EngineError as error:
            raise _AwayError(error) from error
        with link:
            try:
                link.send(Message("search", {"path": path}, term))
                found = link.receive(limit=MOST_BYTES)
            except EngineError as error:
                # Who is slow is not away: everybody before it on the path would draw anew, too.
                if error.code == "party-gone":
                    raise _AwayError(error) from error
                raise
        if found.label == "error":
            raise_error(found.fields)
        return bytes(found.body)


class _AwayError(Exception):
    """The next member is away; what is behind it says so in a message, which is not this."""

    def __init__(self, reason: EngineError) -> None:
        super().__init__(reason)
        self.reason = reason
