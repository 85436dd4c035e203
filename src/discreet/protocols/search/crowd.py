"""A member of a crowd as a process: forwards searches of others, and its own user's among them.

Links are mutual TLS with pinned certificates. A path is laid once, hop by hop, and kept: paths that
are formed again for one author name the author. Each hop gives a path another number, so that two
members who work together cannot compare numbers, and no message says how far it has come.

Where the next member is away, whoever would forward to it draws another; the path before it stays as it
is (Reiter and Rubin: the predecessor of a member that fails). Author and forwarders do so alike. A member
that answers with an error is replaced in the same way, a few times for each hop.
"""

from __future__ import annotations

import collections
import dataclasses
import threading
from collections.abc import Collection, Mapping

from discreet.errors import DiscreetError, EngineError, RefusedError
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
#: With fewer members at work than these, whoever seeks is too easily named.
_CROWD = 3
#: Errors from behind a member until it is replaced, and how often a path allows that at one hop.
_CHANCES, _REDRAWN = 2, 3
#: An error that a member hands on, and whom it is said to be from.
_FAILED_BEYOND, _BEYOND = "path-failed", "a member further along the path"


@dataclasses.dataclass
class _Hop:
    """Where a path goes next, and its number there; changed when that member is away."""

    who: str
    path: str
    #: Searches in a row that failed, and how often it was replaced for that.
    failures: int = 0
    redrawn: int = 0


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
        if hop is None:
            return Message("found", {}, self._ask_engine(term))
        try:
            return Message("found", {}, self._forward(hop, term))
        except DiscreetError as error:
            # It names nobody: who is on a path is not told along it.
            told = error.message.rpartition(" says: ")[2]
            raise EngineError(f"{_BEYOND} says: {told}", code=_FAILED_BEYOND) from error

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
        """Send a search on; a hop that fails is replaced for this search and those that follow."""
        away: set[str] = set()
        while True:
            with self._lock:
                who, path = hop.who, hop.path
            try:
                found = self._sent(who, path, term)
            except _AwayError as error:
                away.add(who)
                if len(self._addresses) - len(away) < _CROWD:
                    raise error.reason from error
                self._replace(hop, who, away)
            except _FailedError as error:
                away.add(who)
                if not self._is_given_up(hop, who, away, is_beyond=error.is_beyond):
                    raise error.reason from error
                self._replace(hop, who, away)
                if error.is_beyond:  # whoever is behind has tried others for this search
                    raise error.reason from error
            else:
                with self._lock:
                    hop.failures = 0
                return found

    def _is_given_up(self, hop: _Hop, who: str, away: Collection[str], *, is_beyond: bool) -> bool:
        """Whether a hop that answered with an error is replaced, which a path allows a few times.

        Without that bound an engine could have paths formed again for as long as it fails, and paths
        that are formed again name the author. Who hands on an error from behind it gets a second chance.
        """
        with self._lock:
            if hop.who != who:
                return True  # another search was quicker
            hop.failures += 1
            if is_beyond and hop.failures < _CHANCES:
                return False
            if hop.redrawn >= _REDRAWN or len(self._addresses) - len(away) < _CROWD:
                return False
            hop.redrawn, hop.failures = hop.redrawn + 1, 0
            return True

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
        except RefusedError as error:  # somebody else is at its address
            raise _FailedError(error, is_beyond=False) from error
        with link:
            try:
                found = request(link, "search", {"path": path}, term, limit=MOST_BYTES)
                read_documents(bytes(found.body))
            except DiscreetError as error:
                if error.code == "party-gone" and not error.message.startswith(f"{who} says"):
                    raise _AwayError(error) from error
                # Who is slow may wait for others, as does who hands on an error.
                is_beyond = error.code in (_FAILED_BEYOND, "party-timeout")
                raise _FailedError(error, is_beyond=is_beyond) from error
        return bytes(found.body)


class _AwayError(Exception):
    """The next member is away; what is behind it says so in a message, which is not this."""

    def __init__(self, reason: DiscreetError) -> None:
        super().__init__(reason)
        self.reason = reason


class _FailedError(Exception):
    """The next member answers with an error, its own or one from behind it, or with nonsense."""

    def __init__(self, reason: DiscreetError, *, is_beyond: bool) -> None:
        super().__init__(reason)
        self.reason, self.is_beyond = reason, is_beyond
