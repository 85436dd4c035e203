"""Every party linked with every other, one connection for each direction.

Each direction has its own connection and each receiver its own sending thread. With one thread for
all, two parties whose messages exceed the socket buffers would wait for each other forever.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence

from discreet.errors import DiscreetError, EngineError, RefusedError
from discreet.protocols.transport.frames import Message
from discreet.protocols.transport.link import Link
from discreet.protocols.transport.transcript import Transcript

__all__ = ["Mesh", "Waiting"]

_LAST = None


class Waiting:
    """Links that arrived for a session and wait for it to take them up.

    A link that nobody takes up within the time limit is closed. So is the oldest of a party that has
    more than `limit` waiting: one party's links that are of no use keep nobody out.
    """

    def __init__(self, *, limit: int = 16) -> None:
        self._links: dict[tuple[str, str], Link] = {}
        self._taken: dict[int, threading.Event] = {}
        self._left: list[tuple[str, str]] = []
        self._changed = threading.Condition()
        self._limit = limit

    def offer(self, session: str, link: Link, *, time_limit: float) -> None:
        """Keep a link until the session is done with it; called in the link's own thread."""
        done = threading.Event()
        with self._changed:
            if (session, link.peer) in self._links:
                raise RefusedError("the session has this link already", code="session-taken")
            same = [one for one in self._links if one[1] == link.peer]
            for oldest in same[: max(len(same) - self._limit + 1, 0)]:
                self._taken.pop(id(self._links.pop(oldest))).set()
            self._links[session, link.peer] = link
            self._taken[id(link)] = done
            self._changed.notify_all()
        if not done.wait(time_limit):
            with self._changed:
                if self._taken.pop(id(link), None) is not None:
                    del self._links[session, link.peer]
                    return
            done.wait()

    def leave(self, session: str, peer: str) -> None:
        """Note that a party takes no part in a session: nobody waits for it any longer."""
        with self._changed:
            same = [one for one in self._left if one[1] == peer]
            for oldest in same[: max(len(same) - self._limit + 1, 0)]:
                self._left.remove(oldest)
            self._left.append((session, peer))
            self._changed.notify_all()

    def take(self, session: str, peer: str, *, until: float) -> tuple[Link, threading.Event]:
        """Return the link of a party and the event that lets it go."""
        with self._changed:
            while (session, peer) not in self._links:
                if (session, peer) in self._left:
                    raise EngineError(f"{peer} takes no part", code="party-gone")
                left = until - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    raise EngineError(
                        f"{peer} did not join the session in time",
                        code="party-missing",
                        hint="start that party, or correct its address in the policy",
                    )
            link = self._links.pop((session, peer))
            return link, self._taken.pop(id(link))


class Mesh:
    """A session of one party with others: queues to send, links to receive.

    Parameters
    ----------
    transcript
        Where messages are counted.
    sends
        The parties that are sent to, with a function that connects to each and says hello.
    receives
        The parties whose messages are awaited.
    waiting, session
        Where the links of the others arrive, and under which session.
    time_limit
        Seconds to wait for a party.
    may_leave
        Parties whose loss the session survives: what is sent to them is dropped, and what is
        awaited of them raises an error that the caller may take for an answer.
    """

    def __init__(
        self,
        transcript: Transcript,
        sends: Mapping[str, Callable[[], Link]],
        receives: Sequence[str],
        *,
        waiting: Waiting,
        session: str,
        time_limit: float,
        may_leave: Collection[str] = (),
    ) -> None:
        self.transcript = transcript
        self._may_leave = frozenset(may_leave)
        self._until = time.monotonic() + time_limit
        self._sending: dict[str, tuple[queue.Queue[Message | None], threading.Thread]] = {}
        self._receiving: dict[str, tuple[Link, threading.Event]] = {}
        self._failed: list[DiscreetError] = []
        try:
            for peer, call in sends.items():
                try:
                    link = call()
                except EngineError:
                    if peer in self._may_leave:
                        continue
                    raise
                link.keep(sent=transcript.sent(peer))
                outgoing: queue.Queue[Message | None] = queue.Queue()
                thread = threading.Thread(
                    target=self._send_all, args=(peer, link, outgoing), daemon=True
                )
                thread.start()
                self._sending[peer] = outgoing, thread
            for peer in receives:
                try:
                    link, done = waiting.take(session, peer, until=self._until)
                except EngineError:
                    if peer in self._may_leave:
                        continue
                    raise
                link.time_limit = time_limit
                link.keep(received=transcript.received(peer))
                self._receiving[peer] = link, done
        except DiscreetError:
            self.close()
            raise

    def _send_all(self, peer: str, link: Link, outgoing: queue.Queue[Message | None]) -> None:
        failed: list[DiscreetError] = [] if peer in self._may_leave else self._failed
        with link:
            while (message := outgoing.get()) is not _LAST:
                if failed:
                    continue
                try:
                    link.send(message)
                except DiscreetError as error:
                    failed.append(error)

    def send(self, peer: str, label: str, body: bytes | memoryview = b"") -> None:
        """Queue a message for a party."""
        if self._failed:
            raise self._failed[0]
        if peer not in self._sending and peer in self._may_leave:
            return
        self._sending[peer][0].put(Message(label, {}, body))

    def receive(self, peer: str, label: str, *, size: int) -> bytearray:
        """Return the body of the next message, which must have this label and size."""
        if self._failed:
            raise self._failed[0]
        if peer not in self._receiving and peer in self._may_leave:
            raise EngineError(f"{peer} did not join the session", code="party-missing")
        body = self._receiving[peer][0].receive(label, limit=size).body
        if len(body) != size:
            raise RefusedError(
                f"a message of {len(body)} bytes arrived where {size} were due",
                code="message-unexpected",
            )
        assert isinstance(body, bytearray)
        return body

    def exchange(
        self, label: str, out: Mapping[str, bytes | memoryview], into: Mapping[str, int]
    ) -> dict[str, bytearray]:
        """Send to some parties, receive from some: one round."""
        for peer, body in out.items():
            self.send(peer, label, body)
        self.transcript.rounds.append(label)
        return {peer: self.receive(peer, label, size=size) for peer, size in into.items()}

    def close(self) -> None:
        """Leave once everything queued was sent."""
        for outgoing, _ in self._sending.values():
            outgoing.put(_LAST)
        for _, thread in self._sending.values():
            thread.join()
        for _, done in self._receiving.values():
            done.set()
        self._receiving = {}

    def __enter__(self) -> Mesh:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
