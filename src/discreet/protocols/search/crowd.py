"""A member of a crowd as a process: forwards searches of others, and its own user's among them.

Links are mutual TLS with pinned certificates. A path is laid once, hop by hop, and kept: paths that
are formed again for one author name the author. Each hop gives a path another number, so that two
members who work together cannot compare numbers, and no message says how far it has come.
"""

from __future__ import annotations

import collections
import threading
from collections.abc import Mapping

from discreet.errors import RefusedError
from discreet.protocols.search.backends import Backend, Found
from discreet.protocols.search.member import (
    MOST_BYTES,
    MemberEntry,
    SearchMember,
    encoded_term,
    read_documents,
)
from discreet.protocols.transport import Identity, Message, request
from discreet.randomness import Randomness

__all__ = ["CrowdMember"]

#: Paths of others that are kept; the oldest are laid anew.
_PATHS = 10_000
_LIMIT = 4_000


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
        self._next: collections.OrderedDict[tuple[str, str], tuple[str, str] | None]
        self._next = collections.OrderedDict()
        super().__init__(name, members, backend, identity=identity, limit=_LIMIT, rng=rng)
        #: Where this user's own searches go first: one path for as long as the member runs.
        self._own = (self._drawn(), self._number())

    def search(self, term: str) -> Found:
        """Return the documents with a term, fetched by whoever ends the path."""
        return Found(read_documents(self._forward(*self._own, encoded_term(term))), 1, 1)

    def answer(self, peer: str, message: Message) -> Message:
        """Forward the search of another member, or send it to the engine."""
        path = message.fields.get("path")
        if message.label != "search" or not isinstance(path, str) or len(path) != 32:
            raise RefusedError("this is no search of a crowd", code="message-malformed")
        step = self._step(peer, path)
        term = bytes(message.body)
        found = self._ask_engine(term) if step is None else self._forward(*step, term)
        return Message("found", {}, found)

    def _step(self, peer: str, path: str) -> tuple[str, str] | None:
        """Return where a path leads, laid the first time; None where it ends here."""
        with self._lock:
            place = (peer, path)
            if place not in self._next:
                ends = not self._rng.bernoulli(self._pf, 1)[0]
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
        # A path may pass the same two members twice: a link that is shared would wait for itself.
        with self._connect(who) as link:
            found = request(link, "search", {"path": path}, term, limit=MOST_BYTES)
        return bytes(found.body)
