"""A peer as a process: posts its user's searches into shared spaces, and submits those of others.

A search waits, sealed, in a space until another of its users reads it, asks the engine and posts the
answer. The reader knows the author up to the users of the space; the keeper of the space knows the
author, and not the search; the engine knows the reader.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Mapping, Sequence

from discreet.errors import DiscreetError, EngineError, InputError, RefusedError
from discreet.protocols.search.backends import Backend, Document, Found
from discreet.protocols.search.member import (
    MemberEntry,
    SearchMember,
    encoded_term,
    read_documents,
)
from discreet.protocols.search.sealing import Opener, Sealer, padded, unpadded
from discreet.protocols.search.spaces import SharedSpaces, keeper_of
from discreet.protocols.transport import Identity, Link, Message, request
from discreet.randomness import Randomness

__all__ = ["PeerMember"]

#: Sizes to which searches and answers are padded; longer answers are padded to a doubling.
_SEARCH, _ANSWER = 4_096, 65_536
#: Bytes of a sealed answer, and of all that one reading of a space may bring.
_MOST, _SPACE = 1 << 23, 1 << 28
_WAIT = 60.0


class PeerMember(SearchMember):
    """Takes part among peers, and searches through them for its own user.

    Parameters
    ----------
    name, members, backend, identity
        As of every member; the members are the points of the configuration, in their order.
    spaces
        The users of each space, by their number among the members.
    submits_own
        Probability with which an own search is submitted by this member itself.
    rhythm
        Seconds between two readings of a space, on average; None reads only when told to.
    """

    def __init__(
        self,
        name: str,
        members: Mapping[str, MemberEntry],
        backend: Backend,
        *,
        identity: Identity,
        spaces: Sequence[tuple[int, ...]],
        submits_own: float,
        rhythm: float | None = 1.0,
        rng: Randomness | None = None,
    ) -> None:
        names = list(members)
        if len(names) != len(spaces):
            raise InputError(
                f"the configuration is one of {len(spaces)} peers, and {len(names)} are listed",
                code="number-of-members",
                hint="a projective plane of order 2, 3, 5 or 7 has 7, 13, 31 or 57 peers",
            )
        self._submits_own = submits_own
        users = {n: [names[user] for user in line] for n, line in enumerate(spaces)}
        self._keepers = {n: names[keeper_of(n, line, len(names))] for n, line in enumerate(spaces)}
        kept = {n: frozenset(users[n]) for n, who in self._keepers.items() if who == name}
        self._kept = SharedSpaces(kept, most=_MOST)
        self._mine = {n: sorted(who) for n, who in users.items() if name in who}
        self._links: dict[str, tuple[threading.Lock, list[Link]]] = {
            who: (threading.Lock(), []) for who in names
        }
        self._opener = Opener(identity.key)
        #: Own searches that wait, by space and number, and what came back.
        self._waiting: dict[tuple[int, str], bytes | None] = {}
        self._changed = threading.Condition()
        self._closed = threading.Event()
        self._drawing = threading.Lock()
        super().__init__(name, members, backend, identity=identity, limit=_MOST, rng=rng)
        self._sealers = {
            n: Sealer({who: self._certificates[who] for who in line})
            for n, line in self._mine.items()
        }
        if rhythm is not None:
            # A source of its own: two threads must not draw from one.
            drawn = (rhythm, self._rng.spawn())
            threading.Thread(target=self._read_now_and_then, args=drawn, daemon=True).start()

    def search(self, term: str) -> Found:
        """Return the documents with a term, fetched by a peer or, as often as by any, from here."""
        place = self.post(term)
        if place is None:
            return Found(read_documents(self._ask_engine(encoded_term(term))), 1, 1)
        return Found(self.fetch(place, time_limit=_WAIT), 1, 1)

    def post(self, term: str) -> tuple[int, str] | None:
        """Post a search into a space drawn by lot; None where this member submits it itself."""
        sent = encoded_term(term)
        mine = list(self._mine)
        with self._drawing:
            is_own = bool(self._rng.bernoulli(self._submits_own, 1)[0])
            space = mine[int(self._rng.integers(0, len(mine), 1)[0])]
        if is_own:
            return None
        sealed = self._sealers[space].seal(padded(sent, _SEARCH), _context(space, "search"))
        posted = self._asked(space, "post", body=sealed)
        place = (space, str(posted.fields.get("number")))
        with self._changed:
            self._waiting[place] = None
        return place

    def fetch(self, place: tuple[int, str], *, time_limit: float = 0.0) -> list[Document]:
        """Return the documents found for an own search, once a reading of its space brought them."""
        until = time.monotonic() + time_limit
        try:
            with self._changed:
                while (body := self._waiting[place]) is None:
                    left = until - time.monotonic()
                    if left <= 0:
                        raise EngineError(
                            "no peer has submitted the search yet",
                            code="party-timeout",
                            hint="see that other peers run, and search again",
                        )
                    self._changed.wait(left)
        finally:
            with self._changed:
                del self._waiting[place]
        return read_documents(body)

    def read(self, space: int) -> int:
        """Read a space once: submit what others posted, take in answers; return how many of both."""
        posts = self._asked(space, "read", limit=_SPACE)
        done = 0
        for number, is_answer, sealed in _listed(posts):
            with self._changed:
                is_own = (space, number) in self._waiting
            # One post that cannot be opened or searched for must not hold up those behind it.
            with contextlib.suppress(RefusedError):
                if is_own and is_answer:
                    self._take(space, number, sealed)
                    done += 1
                elif not (is_own or is_answer):
                    done += self._submitted(space, number, sealed)
        return done

    def answer(self, peer: str, message: Message) -> Message:
        """Keep spaces for their users."""
        return self._kept.answer(peer, message)

    def _take(self, space: int, number: str, sealed: bytes) -> None:
        body = self._opened(space, sealed, "answer")
        self._asked(space, "drop", number=number)
        with self._changed:
            if (space, number) in self._waiting:
                self._waiting[space, number] = body
            self._changed.notify_all()

    def _submitted(self, space: int, number: str, sealed: bytes) -> bool:
        """Submit the search of another; False where somebody else was quicker."""
        term = self._opened(space, sealed, "search")
        if self._asked(space, "claim", number=number).fields.get("granted") is not True:
            return False
        found = padded(self._ask_engine(term), _ANSWER)
        back = self._sealers[space].seal(found, _context(space, "answer"))
        self._asked(space, "reply", body=back, number=number)
        return True

    def _opened(self, space: int, sealed: bytes, kind: str) -> bytes:
        users = self._mine[space]
        place = users.index(self.name)
        message = self._opener.open(sealed, _context(space, kind), place=place, readers=len(users))
        return unpadded(message)

    def _asked(
        self, space: int, label: str, *, body: bytes = b"", limit: int = 0, **fields: str
    ) -> Message:
        """Ask the keeper of a space, over a link that is kept open and made again once if lost."""
        lock, held = self._links[self._keepers[space]]
        with lock:
            for again in (False, True):
                if self._closed.is_set():
                    raise EngineError("this peer has left", code="party-gone")
                if not held:
                    held.append(self._connect(self._keepers[space]))
                try:
                    return request(held[0], label, {"space": space, **fields}, body, limit=limit)
                except EngineError:
                    held.pop().close()
                    if again:
                        raise
        raise AssertionError  # the second time returns or raises

    def _read_now_and_then(self, rhythm: float, rng: Randomness) -> None:
        """Read the spaces in random order at random times, so that each user is the next alike."""
        mine = list(self._mine)
        while not self._closed.wait(float(rng.exponential(1, rhythm / len(mine))[0])):
            # A peer that is away, or a post that cannot be opened, must not end the readings.
            with contextlib.suppress(DiscreetError):
                self.read(mine[int(rng.integers(0, len(mine), 1)[0])])

    def close(self) -> None:
        """Leave the peers."""
        self._closed.set()
        super().close()
        for lock, held in self._links.values():
            for link in tuple(held):
                link.abort()  # whoever waits for an answer holds the lock
            with lock:
                while held:
                    held.pop().close()


def _context(space: int, kind: str) -> bytes:
    """Return what a post is bound to: a search is not taken for an answer, nor for another space's."""
    return f"{space} {kind}".encode()


def _listed(posts: Message) -> Iterator[tuple[str, bool, bytes]]:
    """Return number, kind and sealed bytes of the posts that a keeper listed; it is not trusted."""
    body, start = bytes(posts.body), 0
    listed = posts.fields.get("posts")
    if not isinstance(listed, list):
        raise RefusedError("a keeper answered something else than posts", code="bad-answer")
    for item in listed:
        match item:
            case [str(number), bool(is_answer), int(size)] if 0 <= size <= len(body) - start:
                yield number, is_answer, body[start : start + size]
                start += size
            case _:
                raise RefusedError("a keeper answered something else than posts", code="bad-answer")
