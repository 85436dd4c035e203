"""The beginning of a connection: encryption, then proof of who it is."""

from __future__ import annotations

import asyncio
import struct
from typing import TYPE_CHECKING

from discreet.app.server.postgres import messages as m
from discreet.app.server.postgres.scram import Exchange, ScramError, Verifier

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from discreet.app.server.desk import User
    from discreet.app.server.postgres.setting import Setting

__all__ = ["DeniedError", "Startup", "read_message"]

#: What a failed attempt waits for before it hears of it, in seconds.
_PENALTY = 0.3


class DeniedError(Exception):
    """The connection is turned away: the condition's code and what to tell."""

    def __init__(self, sqlstate: str, summary: str) -> None:
        super().__init__(summary)
        self.sqlstate, self.summary = sqlstate, summary


async def read_message(reader: asyncio.StreamReader) -> tuple[bytes, bytes] | None:
    """Return the next message's kind and body; None if the client has left."""
    head = await reader.read(1)
    if not head:
        return None
    (size,) = struct.unpack("!i", await reader.readexactly(4))
    if not 4 <= size <= m.LARGEST:
        raise m.ProtocolError("a message has an impossible size")
    return head, await reader.readexactly(size - 4)


class Startup:
    """Takes a connection from its first byte to a known user."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        setting: Setting,
        cancel: Callable[[tuple[int, bytes]], None],
    ) -> None:
        self._reader, self._writer = reader, writer
        self._setting, self._cancel = setting, cancel
        self._encrypted = False

    async def run(self) -> User | None:
        """Return who it is; None if the connection only came to cancel."""
        parameters = await self._start()
        return None if parameters is None else await self._authenticate(parameters.get("user", ""))

    async def _start(self) -> dict[str, str] | None:
        asked = 0
        while True:
            (size,) = struct.unpack("!i", await self._reader.readexactly(4))
            if not 8 <= size <= 10_000:
                raise m.ProtocolError("the start-up message has an impossible size")
            body = await self._reader.readexactly(size - 4)
            (code,) = struct.unpack("!i", body[:4])
            if code == m.CANCEL_REQUEST:
                if len(body) == 12:
                    self._cancel((struct.unpack("!i", body[4:8])[0], body[8:]))
                return None
            asked += 1
            if asked > 4:  # one for each kind of encryption and the start itself
                raise m.ProtocolError("too many requests for encryption")
            if code == m.SSL_REQUEST and self._setting.tls is not None and not self._encrypted:
                await self._encrypt(self._setting.tls)
            elif code in (m.SSL_REQUEST, m.GSS_REQUEST):
                self._writer.write(b"N")
                await self._writer.drain()
            elif code >> 16 == 3:
                if self._setting.require_tls and not self._encrypted:
                    raise DeniedError(
                        "28000", "this server speaks only over TLS; use sslmode=require"
                    )
                return m.read_startup(body[4:])
            else:
                raise m.ProtocolError("an unknown version of the protocol")

    async def _encrypt(self, context: ssl.SSLContext) -> None:
        # Bytes sent before the handshake would be taken as if they had come encrypted.
        if self._reader._buffer:  # type: ignore[attr-defined]  # asyncio offers no other look
            raise m.ProtocolError("data before encryption")
        self._writer.write(b"S")
        await self._writer.drain()
        await self._writer.start_tls(context)
        self._encrypted = True

    async def _authenticate(self, name: str) -> User:
        host = str((self._writer.get_extra_info("peername") or ("",))[0])
        attempts = self._setting.attempts
        if not attempts.allowed(host, name):
            raise DeniedError("53400", "too many failed attempts; wait a minute")
        try:
            user = await self._proved(name)
        except ScramError:
            attempts.failed(host, name)
            await asyncio.sleep(_PENALTY)
            raise DeniedError("28P01", "authentication failed") from None
        attempts.succeeded(host, name)
        return user

    async def _proved(self, name: str) -> User:
        user = self._setting.users.get(name)
        verifier = Verifier.parse(user.scram) if user is not None and user.scram else None
        binding = self._setting.binding if self._encrypted else None
        exchange = Exchange(
            verifier,
            user=name,
            secret=self._setting.strangers.secret,
            binding=binding,
            iterations=self._setting.strangers.iterations(name),
        )
        offered = ["SCRAM-SHA-256-PLUS"] * (binding is not None) + ["SCRAM-SHA-256"]
        self._writer.write(m.authentication(10, b"".join(m.text(o) for o in offered) + b"\0"))
        await self._writer.drain()
        reader = m.Reader(await self._expect(b"p"))
        mechanism = reader.text()
        if mechanism not in offered:
            raise m.ProtocolError("a mechanism that was not offered")
        first = reader.take(reader.int32())
        self._writer.write(m.authentication(11, exchange.challenge(first, mechanism)))
        await self._writer.drain()
        # Deriving and comparing keys is quick; the password's cost was paid by the client.
        proof = await self._expect(b"p")
        signature = exchange.finish(proof)
        if user is None:  # cannot be: nobody's proof is right for a stranger
            raise ScramError("wrong password")
        self._writer.write(m.authentication(12, signature))
        return user

    async def _expect(self, kind: bytes) -> bytes:
        found = await read_message(self._reader)
        if found is None:
            raise ConnectionResetError
        if found[0] != kind or len(found[1]) > 10_000:
            raise m.ProtocolError("an unexpected message during authentication")
        return found[1]
