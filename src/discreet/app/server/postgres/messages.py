"""The bytes of the protocol: messages to and from plain values, nothing else.

Every reader is total: malformed bytes raise `ProtocolError`, never anything else, so that a hostile
client cannot reach a traceback.
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Sequence

__all__ = [
    "CANCEL_REQUEST",
    "GSS_REQUEST",
    "LARGEST",
    "PROTOCOL_3",
    "SSL_REQUEST",
    "Bind",
    "Column",
    "Parse",
    "ProtocolError",
    "Reader",
]

PROTOCOL_3 = 196608
SSL_REQUEST = 80877103
GSS_REQUEST = 80877104
CANCEL_REQUEST = 80877102
#: A statement is text that a person or a tool wrote; nothing legitimate is larger.
LARGEST = 1 << 20


class ProtocolError(Exception):
    """The client broke the protocol; the connection ends."""


@dataclasses.dataclass(frozen=True)
class Column:
    """One column of a result, as the client is told."""

    name: str
    oid: int
    size: int = -1


@dataclasses.dataclass(frozen=True)
class Parse:
    """A statement to be prepared."""

    name: str
    sql: str
    types: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Bind:
    """Values for a prepared statement, and the formats of values and results."""

    portal: str
    statement: str
    formats: tuple[int, ...]
    values: tuple[bytes | None, ...]
    result_formats: tuple[int, ...]


class Reader:
    """Reads the body of one message from left to right."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0

    def text(self) -> str:
        """Read a zero-terminated text."""
        end = self._body.find(b"\0", self._at)
        if end < 0:
            raise ProtocolError("a text does not end")
        raw = self._body[self._at : end]
        self._at = end + 1
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            raise ProtocolError("a text is not UTF-8") from None

    def int16(self) -> int:
        """Read a two-byte number that cannot be negative."""
        (value,) = struct.unpack("!h", self.take(2))
        if value < 0:
            raise ProtocolError("a count is negative")
        return int(value)

    def int32(self) -> int:
        """Read a four-byte signed number."""
        return int(struct.unpack("!i", self.take(4))[0])

    def take(self, size: int) -> bytes:
        """Read this many bytes."""
        if size < 0 or self._at + size > len(self._body):
            raise ProtocolError("a message is shorter than it says")
        piece = self._body[self._at : self._at + size]
        self._at += size
        return piece

    def rest(self) -> bytes:
        """Read what is left."""
        return self.take(len(self._body) - self._at)

    def done(self) -> None:
        """Insist that nothing is left."""
        if self._at != len(self._body):
            raise ProtocolError("a message is longer than it says")


def read_startup(body: bytes) -> dict[str, str]:
    """Return the parameters of a start-up message (without its version)."""
    reader = Reader(body)
    found: dict[str, str] = {}
    while (name := reader.text()) != "":
        found[name] = reader.text()
    reader.done()
    return found


def read_parse(body: bytes) -> Parse:
    """Return a Parse message."""
    reader = Reader(body)
    name, sql = reader.text(), reader.text()
    types = tuple(reader.int32() for _ in range(reader.int16()))
    reader.done()
    return Parse(name, sql, types)


def read_bind(body: bytes) -> Bind:
    """Return a Bind message."""
    reader = Reader(body)
    portal, statement = reader.text(), reader.text()
    formats = tuple(reader.int16() for _ in range(reader.int16()))
    values: list[bytes | None] = []
    for _ in range(reader.int16()):
        size = reader.int32()
        values.append(None if size == -1 else reader.take(size))
    result_formats = tuple(reader.int16() for _ in range(reader.int16()))
    reader.done()
    if any(code not in (0, 1) for code in (*formats, *result_formats)):
        raise ProtocolError("a format is neither text nor binary")
    return Bind(portal, statement, formats, tuple(values), result_formats)


def read_target(body: bytes) -> tuple[str, str]:
    """Return what a Describe or Close message names: "S" or "P", and the name."""
    reader = Reader(body)
    kind = reader.take(1).decode("latin-1")
    name = reader.text()
    reader.done()
    if kind not in ("S", "P"):
        raise ProtocolError("neither a statement nor a portal")
    return kind, name


def message(kind: bytes, body: bytes = b"") -> bytes:
    """Return a message to the client."""
    return kind + struct.pack("!i", len(body) + 4) + body


def text(value: str) -> bytes:
    """Return a zero-terminated text; a zero inside would end it early and is dropped."""
    return value.replace("\0", "").encode("utf-8") + b"\0"


def authentication(code: int, body: bytes = b"") -> bytes:
    """Return an authentication request or its end (code 0)."""
    return message(b"R", struct.pack("!i", code) + body)


def parameter_status(name: str, value: str) -> bytes:
    """Tell the client a setting of the session."""
    return message(b"S", text(name) + text(value))


def backend_key(process: int, secret: bytes) -> bytes:
    """Tell the client what it needs to cancel."""
    return message(b"K", struct.pack("!i", process) + secret)


def ready(transaction: bytes = b"I") -> bytes:
    """Tell the client to go on."""
    return message(b"Z", transaction)


def row_description(columns: Sequence[Column], formats: Sequence[int]) -> bytes:
    """Tell the client the columns of a result."""
    parts = [struct.pack("!h", len(columns))]
    for column, code in zip(columns, formats, strict=True):
        parts.append(
            text(column.name) + struct.pack("!ihihih", 0, 0, column.oid, column.size, -1, code)
        )
    return message(b"T", b"".join(parts))


def parameter_description(types: Sequence[int]) -> bytes:
    """Tell the client the parameters of a statement."""
    return message(b"t", struct.pack("!h", len(types)) + struct.pack(f"!{len(types)}i", *types))


def data_row(values: Sequence[bytes | None]) -> bytes:
    """Return one row."""
    cells = (
        b"\xff\xff\xff\xff" if value is None else struct.pack("!i", len(value)) + value
        for value in values
    )
    return message(b"D", struct.pack("!h", len(values)) + b"".join(cells))


def command_complete(tag: str) -> bytes:
    """Tell the client that a statement is done."""
    return message(b"C", text(tag))


def report(
    *,
    severity: str,
    sqlstate: str,
    summary: str,
    detail: str | None = None,
    hint: str | None = None,
    notice: bool = False,
) -> bytes:
    """Return an error or a notice."""
    fields = [("S", severity), ("V", severity), ("C", sqlstate), ("M", summary)]
    fields += [(key, value) for key, value in (("D", detail), ("H", hint)) if value]
    body = b"".join(key.encode() + text(value) for key, value in fields) + b"\0"
    return message(b"N" if notice else b"E", body)
