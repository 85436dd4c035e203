"""The side that is called: accept pinned parties, each connection in a thread of its own."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Mapping

from discreet.errors import DiscreetError, EngineError, InputError
from discreet.protocols.transport.client import address_of, error_fields
from discreet.protocols.transport.frames import Message
from discreet.protocols.transport.identity import Identity, certificate_pin, pin_of
from discreet.protocols.transport.link import Link

__all__ = ["Server", "answer_requests"]

_HANDSHAKE_LIMIT = 10.0


class Server:
    """Listens at an address and hands every accepted link to `handle`, in its own thread.

    Parameters
    ----------
    address
        Where to listen, `host:port`.
    identity
        Key and certificate of this party.
    clients
        Certificates (PEM) of the parties that may connect, by name. None lets anybody connect
        without saying who they are, as users who look something up do.
    handle
        Called with each link. An error it raises of our own is sent to the other side.
    time_limit
        Seconds that one message may take.
    connections
        How many links may be open at once; one more is closed at once. As many again may be greeting: a
        newcomer then takes the place of whoever has been at it for longest, so that strangers who
        connect and say nothing shut nobody out.
    """

    def __init__(
        self,
        address: str,
        *,
        identity: Identity,
        clients: Mapping[str, str] | None,
        handle: Callable[[Link], None],
        time_limit: float = 30.0,
        connections: int = 64,
    ) -> None:
        self._names = (
            None if clients is None else {certificate_pin(p): n for n, p in clients.items()}
        )
        self._context = _context(identity, clients)
        self._handle = handle
        self._time_limit = time_limit
        self._free = threading.BoundedSemaphore(connections)
        self._greeting: dict[socket.socket, None] = {}
        self._most = connections
        self._open: set[Link] = set()
        self._lock = threading.Lock()
        self._closed = False
        self.address = address
        self._socket = _listen(address)
        self._thread = threading.Thread(target=self._accept, name=f"listen {address}", daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        while not self._closed:
            try:
                plain, _ = self._socket.accept()
            except OSError:
                return  # closed
            with self._lock:
                self._greeting[plain] = None
                if len(self._greeting) > self._most:
                    longest = next(iter(self._greeting))
                    del self._greeting[longest]
                    with contextlib.suppress(OSError):
                        longest.shutdown(socket.SHUT_RDWR)
            threading.Thread(target=self._serve, args=(plain,), daemon=True).start()

    def _serve(self, plain: socket.socket) -> None:
        try:
            link = self._greet(plain)
        finally:
            with self._lock:
                self._greeting.pop(plain, None)
        if link is None:
            return
        if not self._free.acquire(blocking=False):
            link.close()
            return
        try:
            with self._lock:
                self._open.add(link)
            try:
                self._handle(link)
            except DiscreetError as error:
                with contextlib.suppress(DiscreetError):
                    link.send(Message("error", error_fields(error)))
            except Exception:
                # What went wrong may quote data; the other side learns that it did, no more.
                failed = EngineError("the party failed", code="party-failed")
                with contextlib.suppress(DiscreetError):
                    link.send(Message("error", error_fields(failed)))
            finally:
                with self._lock:
                    self._open.discard(link)
                link.close()
        finally:
            self._free.release()

    def _greet(self, plain: socket.socket) -> Link | None:
        """Return the link to a party that is known; others get nothing, not even an answer."""
        try:
            plain.settimeout(_HANDSHAKE_LIMIT)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = self._context.wrap_socket(plain, server_side=True)
        except OSError:
            plain.close()
            return None
        peer = ""
        if self._names is not None:
            shown = connection.getpeercert(binary_form=True)
            known = None if shown is None else self._names.get(pin_of(shown))
            if known is None:
                connection.close()
                return None
            peer = known
        return Link(connection, peer=peer, time_limit=self._time_limit)

    def close(self) -> None:
        """Stop listening and end what is open."""
        self._closed = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        with self._lock:
            for link in self._open:
                link.abort()
        self._thread.join(timeout=5)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _listen(address: str) -> socket.socket:
    host, port = address_of(address)
    try:
        return socket.create_server((host, port), backlog=128)
    except OSError as error:
        raise InputError(
            f"cannot listen at {address}: {error.strerror or 'the address is not of this machine'}",
            code="port-in-use",
            hint="stop what listens there, or give this party another address in the policy",
        ) from error


def _context(identity: Identity, clients: Mapping[str, str] | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_3
    context.num_tickets = 0  # every connection shows its certificate; none is resumed
    context.load_cert_chain(identity.certificate, identity.key)
    if clients is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata="".join(clients.values()))
    return context


def answer_requests(
    answer: Callable[[str, Message], Message], *, limit: int, idle: float = 300.0
) -> Callable[[Link], None]:
    """Return a handler that answers requests of at most `limit` bytes, one after the other.

    `answer` is called with the name of the party and its message. An error of our own becomes the
    answer, and the next request is awaited, for up to `idle` seconds.
    """

    def handle(link: Link) -> None:
        while True:
            try:
                message = link.receive(limit=limit, time_limit=idle)
            except EngineError:
                return  # gone, or silent for too long
            try:
                reply = answer(link.peer, message)
            except DiscreetError as error:
                reply = Message("error", error_fields(error))
            link.send(reply)

    return handle
