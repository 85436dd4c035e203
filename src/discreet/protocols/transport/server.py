"""The side that is called: accept pinned parties, each connection in a thread of its own."""

from __future__ import annotations

import collections
import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping

from discreet.errors import DiscreetError, EngineError, InputError
from discreet.protocols.transport.client import address_of, error_fields
from discreet.protocols.transport.frames import Message
from discreet.protocols.transport.identity import Identity, certificate_pin, pin_of
from discreet.protocols.transport.link import Link

__all__ = ["Server", "answer_requests"]

_HANDSHAKE_LIMIT = 10.0
#: Seconds in which a connection that is ended makes room for another.
_ROOM_LIMIT = 1.0


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
        How many may be open at once. One more takes the place of the one that has been silent longest,
        of the address that has most: of a party that is still to show who it is or, where anybody may
        connect, of any.
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
        self._open: set[Link] = set()
        #: Connections whose handshake is not done: from where, and since when.
        self._greeting: dict[ssl.SSLSocket, tuple[str, float]] = {}
        self._lock = threading.Lock()
        self._closed = False
        self.address = address
        self._socket = _listen(address)
        self._thread = threading.Thread(target=self._accept, name=f"listen {address}", daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        while not self._closed:
            try:
                plain, (host, *_) = self._socket.accept()
            except OSError:
                return  # closed
            if not self._free.acquire(blocking=False):
                self._make_room()
                if not self._free.acquire(timeout=_ROOM_LIMIT):
                    plain.close()
                    continue
            threading.Thread(target=self._serve, args=(plain, host), daemon=True).start()

    def _make_room(self) -> None:
        """End the connection that has been silent longest: strangers may not keep others out.

        It is one of whoever has most of them, so that many from one address do not end those of others.
        """
        with self._lock:
            silent: list[tuple[str, float, ssl.SSLSocket | Link]] = []
            silent += [(host, since, one) for one, (host, since) in self._greeting.items()]
            if self._names is None:
                silent += [(one.host, one.silent_since, one) for one in self._open]
            held = collections.Counter(host for host, *_ in silent)
            silent = [one for one in silent if one[1]]
            if not silent:
                return
            *_, longest = min(silent, key=lambda one: (-held[one[0]], one[1]))
        with contextlib.suppress(OSError):
            if isinstance(longest, Link):
                longest.abort()
            else:
                longest.shutdown(socket.SHUT_RDWR)

    def _serve(self, plain: socket.socket, host: str) -> None:
        try:
            link = self._greet(plain, host)
            if link is None:
                return
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

    def _greet(self, plain: socket.socket, host: str) -> Link | None:
        """Return the link to a party that is known; others get nothing, not even an answer."""
        try:
            plain.settimeout(_HANDSHAKE_LIMIT)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = self._context.wrap_socket(
                plain, server_side=True, do_handshake_on_connect=False
            )
        except OSError:
            plain.close()
            return None
        with self._lock:
            self._greeting[connection] = host, time.monotonic()
        try:
            connection.do_handshake()
        except (OSError, ValueError):
            connection.close()
            return None
        finally:
            with self._lock:
                del self._greeting[connection]
        peer = ""
        if self._names is not None:
            shown = connection.getpeercert(binary_form=True)
            known = None if shown is None else self._names.get(pin_of(shown))
            if known is None:
                connection.close()
                return None
            peer = known
        return Link(connection, peer=peer, time_limit=self._time_limit, host=host)

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

    `answer` is called with the name of the party, or its address where nobody has to say a name, and
    its message. An error of our own becomes the answer, and the next request is awaited, for up to
    `idle` seconds.
    """

    def handle(link: Link) -> None:
        while True:
            try:
                link.silent_since = time.monotonic()
                message = link.receive(limit=limit, time_limit=idle)
            except EngineError:
                return  # gone, or silent for too long
            link.silent_since = 0.0
            try:
                reply = answer(link.peer or link.host, message)
            except DiscreetError as error:
                reply = Message("error", error_fields(error))
            # Whoever does not read an answer waits, too: strangers may not hold their place that way.
            link.silent_since = time.monotonic()
            link.send(reply)

    return handle
