"""One TLS connection between two parties, carrying numbered and bounded messages."""

from __future__ import annotations

import contextlib
import socket
import ssl
import time

from discreet.errors import EngineError, RefusedError
from discreet.protocols.transport.frames import HEAD, Message, pack, read_fields, read_head
from discreet.protocols.transport.transcript import Channel

__all__ = ["Link"]

#: Bodies up to this size leave together with their head, in one TLS record.
_TOGETHER = 1 << 14
#: Memory for a body is reserved as it arrives: a length alone must not cost its receiver anything.
_PIECE = 1 << 20


class Link:
    """A connection to one party. Not for two threads at once: an SSL object is not.

    Parameters
    ----------
    connection
        The TLS connection, its handshake done.
    peer
        Name of the other party; empty where it did not have to say.
    time_limit
        Seconds that one message may take to arrive or to leave.
    host
        Address of the other party, where it is known.
    """

    def __init__(
        self, connection: ssl.SSLSocket, *, peer: str, time_limit: float, host: str = ""
    ) -> None:
        self._connection = connection
        self.peer = peer
        self.host = host
        self.time_limit = time_limit
        self.sent = Channel()
        self.received = Channel()
        #: When it began to wait for a request, or for its answer to be read; 0 while it does not.
        self.silent_since = 0.0
        self._numbers = [0, 0]  # of the next message sent and received

    def keep(self, *, sent: Channel | None = None, received: Channel | None = None) -> None:
        """Count what follows in the channels of a transcript."""
        self.sent = sent or self.sent
        self.received = received or self.received

    def send(self, message: Message) -> None:
        """Send a message."""
        head, header = pack(message, number=self._numbers[0])
        body = message.body
        try:
            self._connection.settimeout(self.time_limit)
            if len(body) <= _TOGETHER:
                self._connection.sendall(b"".join((head, header, body)))
            else:
                self._connection.sendall(head + header)
                self._connection.sendall(body)
        except (OSError, ValueError) as error:
            raise self._lost(error, self.time_limit) from error
        self._numbers[0] += 1
        self.sent.add(head, header, body)

    def receive(
        self, label: str | None = None, *, limit: int = 0, time_limit: float | None = None
    ) -> Message:
        """Return the next message; refuse another label and a body longer than `limit` bytes."""
        allowed = self.time_limit if time_limit is None else time_limit
        until = time.monotonic() + allowed
        head = bytes(self._read(HEAD, until, allowed))
        sizes = read_head(head, number=self._numbers[1], limit=limit)
        header = bytes(self._read(sizes[0], until, allowed))
        body = self._read(sizes[1], until, allowed)
        self._numbers[1] += 1
        self.received.add(head, header, body)
        found, fields = read_fields(header)
        if label is not None and found != label:
            raise RefusedError(
                f"a message {found!r} arrived where {label!r} was due", code="message-unexpected"
            )
        return Message(found, fields, body)

    def _read(self, size: int, until: float, allowed: float) -> bytearray:
        content = bytearray(min(size, _PIECE))
        filled = 0
        while filled < size:
            if filled == len(content):
                content.extend(bytes(min(size - filled, filled)))
            left = until - time.monotonic()
            try:
                if left <= 0:
                    raise TimeoutError
                self._connection.settimeout(left)
                got = self._connection.recv_into(memoryview(content)[filled:])
            except (OSError, ValueError) as error:
                raise self._lost(error, allowed) from error
            if not got:
                raise self._lost(ConnectionResetError(), allowed)
            filled += got
        return content

    def _lost(self, error: Exception, allowed: float) -> EngineError | RefusedError:
        who = self.peer or "the other side"
        if isinstance(error, TimeoutError):
            return EngineError(
                f"{who} did not answer within {allowed:g} s",
                code="party-timeout",
                hint="see whether that party still runs, or allow more time",
            )
        if isinstance(error, ssl.SSLError) and "ALERT" in str(error.reason or ""):
            return RefusedError(
                f"{who} does not accept the certificate of this side",
                code="wrong-pin",
                hint="both policies must name the same certificate for this party",
            )
        return EngineError(f"the connection to {who} was lost", code="party-gone")

    def close(self) -> None:
        """End the connection."""
        with contextlib.suppress(OSError, ValueError):
            self._connection.settimeout(1)
            self._connection.unwrap()
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()

    def abort(self) -> None:
        """End the connection at once, from whatever thread."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Link:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
