"""The side that calls: connect to a pinned party, ask, and raise what it refuses."""

from __future__ import annotations

import re
import socket
import ssl
import time
from collections.abc import Mapping
from typing import Any

from discreet.errors import (
    DiscreetError,
    EngineError,
    InfeasibleError,
    InputError,
    RefusedError,
)
from discreet.protocols.transport.frames import Message
from discreet.protocols.transport.identity import Identity, pin_of
from discreet.protocols.transport.link import Link

__all__ = ["address_of", "connect", "error_fields", "raise_error", "request"]

_KINDS: dict[str, type[DiscreetError]] = {
    kind.__name__: kind for kind in (InputError, RefusedError, InfeasibleError, EngineError)
}
_PAUSE = 0.05
_CODE = re.compile(r"[a-z0-9-]{1,64}")


def address_of(text: str) -> tuple[str, int]:
    """Return host and port of an address.

    >>> address_of("localhost:7001"), address_of("[::1]:7001")
    (('localhost', 7001), ('::1', 7001))
    """
    host, _, port = text.removeprefix("https://").rstrip("/").rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 1 << 16:
        raise InputError(
            f"{text!r} is not an address",
            code="address-malformed",
            hint="write host:port, such as localhost:7001",
        )
    return host.strip("[]"), int(port)


def connect(
    address: str,
    *,
    pin: str,
    peer: str = "",
    identity: Identity | None = None,
    time_limit: float = 30.0,
    patience: float = 0.0,
) -> Link:
    """Return a link to the party at an address, which must show the certificate of the pin.

    `identity` is shown to it where given. A party that is not there yet is tried again for
    `patience` seconds. Nothing is sent before the certificate was compared.
    """
    until = time.monotonic() + patience
    context = _context(identity)
    host, port = address_of(address)
    who = peer or address
    while True:
        try:
            plain = socket.create_connection((host, port), timeout=max(time_limit, 0.1))
            break
        except OSError as error:
            if time.monotonic() >= until:
                raise EngineError(
                    f"{who} does not answer at {address}",
                    code="party-missing",
                    hint="start that party, or correct its address in the policy",
                ) from error
            time.sleep(_PAUSE)
    try:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = context.wrap_socket(plain, server_hostname=None)
    except OSError as error:
        plain.close()
        raise _no_handshake(error, who, address, time_limit) from error
    shown = connection.getpeercert(binary_form=True)
    if shown is None or pin_of(shown) != pin:
        connection.close()
        raise RefusedError(
            f"{who} at {address} shows another certificate than the pinned one",
            code="wrong-pin",
            hint="ask that party for its certificate again, by another way than this network",
        )
    return Link(connection, peer=peer, time_limit=time_limit)


def _no_handshake(error: OSError, who: str, address: str, time_limit: float) -> EngineError:
    """Return why a party that took the connection did not go on with it."""
    if isinstance(error, TimeoutError):
        return EngineError(
            f"{who} did not answer within {time_limit:g} s",
            code="party-timeout",
            hint="see whether that party still runs, or allow more time",
        )
    if isinstance(error, ssl.SSLEOFError | ConnectionError):
        return EngineError(
            f"{who} at {address} closed the connection at once",
            code="party-missing",
            hint="it may have as many connections as it takes: try again. Else see whether that party still "
            "runs, or correct its address in the policy",
        )
    return EngineError(
        f"{who} at {address} does not speak TLS 1.3",
        code="party-not-tls",
        hint="see that the address is that of the party and its port",
    )


def _context(identity: Identity | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_3
    # No authority vouches for a party: `connect` compares its certificate with the pin.
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if identity is not None:
        context.load_cert_chain(identity.certificate, identity.key)
    return context


def request(
    link: Link,
    label: str,
    fields: Mapping[str, Any] | None = None,
    body: bytes = b"",
    *,
    limit: int = 0,
    time_limit: float | None = None,
) -> Message:
    """Send a request and return its answer, of at most `limit` bytes; raise what was refused."""
    link.send(Message(label, fields or {}, body))
    answer = link.receive(limit=limit, time_limit=time_limit)
    if answer.label == "error":
        raise_error(answer.fields, link.peer)
    return answer


def error_fields(error: DiscreetError) -> dict[str, Any]:
    """Return an error as fields of a message; facts stay at home."""
    kind = next((name for name, known in _KINDS.items() if isinstance(error, known)), "EngineError")
    return {"kind": kind, "message": error.message, "code": error.code, "hint": error.hint}


def raise_error(fields: Mapping[str, Any], peer: str) -> None:
    """Raise the error that another party sent, as its words: nobody may take them for our own.

    Its texts are cut to what a line can hold; what is no error at all is refused.
    """
    kind = _KINDS.get(str(fields.get("kind")))
    told, code, hint = (fields.get(name) for name in ("message", "code", "hint"))
    who = peer or "the other side"
    is_said = isinstance(told, str) and isinstance(code, str) and isinstance(hint, str | None)
    if kind is None or not is_said or not _CODE.fullmatch(str(code)):
        raise RefusedError(
            f"{who} answered something else than an answer or an error",
            code="bad-answer",
            hint="tell whoever runs it",
        )
    said = _printable(told) or "no reason"
    raise kind(
        f"{who} says: {said}",
        code=str(code),
        hint=f"{who} says: {_printable(hint)}" if hint else None,
    )


def _printable(text: object) -> str:
    return "".join(c if c.isprintable() else " " for c in str(text)[:500])
