"""One connection: start-up, authentication, then statements until the client leaves."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import os
import ssl
import struct
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any

import discreet
from discreet.app.server.desk import Reply, Speaker, User
from discreet.app.server.postgres import messages as m
from discreet.app.server.postgres import types
from discreet.app.server.postgres.scram import Exchange, ScramError, Verifier
from discreet.app.server.postgres.session_statements import (
    Transaction,
    placeholders,
    session_reply,
    split,
)
from discreet.errors import DiscreetError, EngineError, InfeasibleError, InputError, RefusedError

__all__ = ["Cancellations", "Session", "Setting"]

log = logging.getLogger("discreet.server.postgres")

_SQLSTATES: dict[type[DiscreetError], str] = {
    InputError: "42601",
    RefusedError: "42501",
    InfeasibleError: "22023",
    EngineError: "58000",
}
_BY_CODE = {
    "unknown-column": "42703",
    "unknown-relation": "42P01",
    "rate-limited": "53400",
    "budget-exhausted": "53400",
}
_HANDSHAKE_SECONDS = 30.0


@dataclasses.dataclass(frozen=True)
class Setting:
    """What every connection shares."""

    speaker: Speaker
    users: Mapping[str, User]
    pool: Executor
    tls: ssl.SSLContext | None = None
    #: Hash of the server's certificate, for channel binding.
    binding: bytes | None = None
    require_tls: bool = True
    #: Makes the salt of unknown users; new with each process.
    secret: bytes = dataclasses.field(default_factory=lambda: os.urandom(32))
    idle_seconds: float = 3600.0


class Cancellations:
    """Which running statement a cancel request means."""

    def __init__(self) -> None:
        self._sessions: dict[tuple[int, bytes], Session] = {}
        self._next = 0

    def add(self, session: Session) -> tuple[int, bytes]:
        """Register a session and return its key."""
        self._next = self._next % 0x7FFFFFFF + 1
        key = self._next, os.urandom(4)
        self._sessions[key] = session
        return key

    def remove(self, key: tuple[int, bytes]) -> None:
        """Forget a session."""
        self._sessions.pop(key, None)

    def cancel(self, key: tuple[int, bytes]) -> None:
        """End what the session is doing; an unknown key is ignored, as the protocol says."""
        if key in self._sessions:
            self._sessions[key].interrupt()


class _LeftError(Exception):
    """The client closed the connection."""


@dataclasses.dataclass
class _Portal:
    sql: str
    parameters: tuple[Any, ...]
    formats: tuple[int, ...]
    #: The columns that a Describe of the statement promised. Any: an Arrow schema, or None.
    promised: Any = None
    reply: Reply | None = None
    sent: int = 0


class Session:
    """The protocol's state machine for one connection."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        setting: Setting,
        cancellations: Cancellations,
    ) -> None:
        self._reader, self._writer = reader, writer
        self._setting, self._cancellations = setting, cancellations
        self._user: User | None = None
        self._statements: dict[str, m.Parse] = {}
        self._portals: dict[str, _Portal] = {}
        self._promised: dict[str, Any] = {}
        self._transaction = Transaction()
        self._running: asyncio.Future[Reply] | None = None
        self._failed = False
        self._encrypted = False

    def interrupt(self) -> None:
        """Cancel the running statement."""
        if self._running is not None:
            self._running.cancel()

    async def run(self) -> None:
        """Serve the connection to its end."""
        key = None
        try:
            async with asyncio.timeout(_HANDSHAKE_SECONDS):
                parameters = await self._start()
                if parameters is None:
                    return
                await self._authenticate(parameters.get("user", ""))
            key = self._cancellations.add(self)
            self._welcome(key)
            await self._writer.drain()
            await self._serve()
        except (
            _LeftError,
            ConnectionError,
            asyncio.IncompleteReadError,
            TimeoutError,
            ssl.SSLError,
        ):
            pass
        except m.ProtocolError as error:
            self._error("08P01", str(error), severity="FATAL")
        except ScramError:
            self._error("28P01", "authentication failed", severity="FATAL")
        finally:
            if key is not None:
                self._cancellations.remove(key)
            with contextlib.suppress(ConnectionError, ssl.SSLError, TimeoutError):
                await self._writer.drain()
                self._writer.close()
                await self._writer.wait_closed()

    # -- start-up --------------------------------------------------------------------------------
    async def _start(self) -> dict[str, str] | None:
        while True:
            (size,) = struct.unpack("!i", await self._reader.readexactly(4))
            if not 8 <= size <= 10_000:
                raise m.ProtocolError("the start-up message has an impossible size")
            body = await self._reader.readexactly(size - 4)
            (code,) = struct.unpack("!i", body[:4])
            if code == m.CANCEL_REQUEST:
                if len(body) == 12:
                    self._cancellations.cancel((struct.unpack("!i", body[4:8])[0], body[8:]))
                return None
            if code == m.SSL_REQUEST and self._setting.tls is not None and not self._encrypted:
                await self._encrypt(self._setting.tls)
            elif code in (m.SSL_REQUEST, m.GSS_REQUEST):
                self._writer.write(b"N")
                await self._writer.drain()
            elif code >> 16 == 3:
                if self._setting.require_tls and not self._encrypted:
                    self._error(
                        "28000",
                        "this server speaks only over TLS; use sslmode=require",
                        severity="FATAL",
                    )
                    return None
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

    async def _authenticate(self, name: str) -> None:
        user = self._setting.users.get(name)
        verifier = Verifier.parse(user.scram) if user is not None and user.scram else None
        binding = self._setting.binding if self._encrypted else None
        exchange = Exchange(verifier, user=name, secret=self._setting.secret, binding=binding)
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
        self._writer.write(m.authentication(12, exchange.finish(proof)))
        assert user is not None
        self._user = user

    async def _expect(self, kind: bytes) -> bytes:
        found, body = await self._message()
        if found != kind:
            raise m.ProtocolError("an unexpected message during authentication")
        return body

    def _welcome(self, key: tuple[int, bytes]) -> None:
        self._writer.write(m.authentication(0))
        settings = {
            "server_version": f"15.0 (discreet {discreet.__version__})",
            "server_encoding": "UTF8",
            "client_encoding": "UTF8",
            "DateStyle": "ISO, MDY",
            "TimeZone": "UTC",
            "integer_datetimes": "on",
            "standard_conforming_strings": "on",
            "is_superuser": "off",
        }
        for name, value in settings.items():
            self._writer.write(m.parameter_status(name, value))
        self._writer.write(m.backend_key(*key) + m.ready())

    # -- statements ------------------------------------------------------------------------------
    async def _serve(self) -> None:
        handlers: dict[bytes, Callable[[bytes], Any]] = {
            b"P": self._parse,
            b"B": self._bind,
            b"D": self._describe,
            b"E": self._execute,
            b"C": self._close,
        }
        while True:
            async with asyncio.timeout(self._setting.idle_seconds):
                kind, body = await self._message()
            if kind == b"X":
                return
            if kind == b"S":
                self._failed = False
                self._portals.pop("", None)
                self._writer.write(m.ready(self._transaction.state))
                await self._writer.drain()
            elif kind == b"H":
                await self._writer.drain()
            elif kind == b"Q":
                self._failed = False
                await self._simple(body)
            elif kind in handlers:
                if not self._failed:  # after an error everything is skipped until Sync
                    await self._guarded(handlers[kind](body))
            elif kind in (b"d", b"c", b"f"):
                continue  # COPY is never begun, so its data is nobody's
            else:
                raise m.ProtocolError("an unknown message")

    async def _guarded(self, work: Any) -> bool:
        """Run one step; an error is sent to the client and ends the batch."""
        try:
            await work
        except DiscreetError as error:
            state = _BY_CODE.get(error.code)
            if state is None:
                state = next(
                    (s for cls, s in _SQLSTATES.items() if isinstance(error, cls)), "XX000"
                )
            self._error(state, error.message, hint=error.hint, detail=f"code {error.code}")
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():  # the server is stopping
                raise
            self._error("57014", "canceling statement due to user request")
        except m.ProtocolError:
            raise
        except ConnectionError:
            raise
        except Exception as error:  # its text may quote a record: only its kind is told
            log.error("internal error", extra={"kind": type(error).__name__})
            self._error("XX000", "internal error")
        else:
            return True
        self._failed = True
        self._transaction.fail()
        return False

    async def _simple(self, body: bytes) -> None:
        reader = m.Reader(body)
        sql = reader.text()
        reader.done()

        async def all_statements() -> None:
            statements = split(sql)
            if not statements:
                self._writer.write(m.message(b"I"))
            for statement in statements:
                reply = await self._ask(statement, ())
                formats = (0,) * reply.table.num_columns
                if reply.kind != "session" or reply.table.num_columns:
                    self._writer.write(m.row_description(_columns(reply), formats))
                self._send(reply, formats, 0)

        await self._guarded(all_statements())
        self._failed = False
        self._writer.write(m.ready(self._transaction.state))
        await self._writer.drain()

    async def _parse(self, body: bytes) -> None:
        statement = m.read_parse(body)
        if len(self._statements) > 1000:
            raise RefusedError(
                "too many prepared statements", code="too-many-statements", hint="close some"
            )
        if len(split(statement.sql)) > 1:
            raise InputError("one statement at a time can be prepared", code="several-statements")
        self._statements[statement.name] = statement
        self._promised.pop(statement.name, None)
        self._writer.write(m.message(b"1"))

    async def _bind(self, body: bytes) -> None:
        bind = m.read_bind(body)
        statement = self._statement(bind.statement)
        formats = _spread(bind.formats, len(bind.values))
        kinds = (*statement.types, *([0] * len(bind.values)))[: len(bind.values)]
        parameters = tuple(map(types.decode, bind.values, kinds, formats))
        promised = self._promised.get(bind.statement)
        self._portals[bind.portal] = _Portal(
            statement.sql, parameters, bind.result_formats, promised
        )
        self._writer.write(m.message(b"2"))

    async def _describe(self, body: bytes) -> None:
        kind, name = m.read_target(body)
        if kind == "S":
            statement = self._statement(name)
            wanted = placeholders(statement.sql)
            kinds = [*statement.types, *([25] * wanted)][:wanted]
            self._writer.write(m.parameter_description([k or 25 for k in kinds]))
            if wanted:
                # The columns depend on nothing but the statement; the values are not known yet.
                assert self._user is not None
                told = self._setting.speaker.describe(statement.sql, self._user, (None,) * wanted)
                self._promised[name] = told
                self._writer.write(
                    m.message(b"n")
                    if told is None
                    else m.row_description(_fields(told), (0,) * len(told))
                )
                return
            reply = await self._ask(statement.sql, ())
            formats: tuple[int, ...] = (0,) * reply.table.num_columns
        else:
            portal = self._portal(name)
            reply = await self._reply(portal)
            formats = _spread(portal.formats, reply.table.num_columns)
        if reply.table.num_columns == 0:
            self._writer.write(m.message(b"n"))
        else:
            self._writer.write(m.row_description(_columns(reply), formats))

    async def _execute(self, body: bytes) -> None:
        reader = m.Reader(body)
        portal, most = self._portal(reader.text()), reader.int32()
        reader.done()
        if not portal.sql.strip().strip(";"):
            self._writer.write(m.message(b"I"))
            return
        reply = await self._reply(portal)
        formats = _spread(portal.formats, reply.table.num_columns)
        portal.sent = self._send(reply, formats, portal.sent, most)
        await self._writer.drain()

    async def _close(self, body: bytes) -> None:
        kind, name = m.read_target(body)
        if kind == "S":
            self._statements.pop(name, None)
        else:
            self._portals.pop(name, None)
        self._writer.write(m.message(b"3"))

    async def _reply(self, portal: _Portal) -> Reply:
        if portal.reply is None:
            reply = await self._ask(portal.sql, portal.parameters)
            if portal.promised is not None:
                reply = dataclasses.replace(reply, table=_as_promised(reply.table, portal.promised))
            portal.reply = reply
        return portal.reply

    async def _ask(self, sql: str, parameters: Sequence[Any]) -> Reply:
        assert self._user is not None
        own = session_reply(sql, self._transaction, self._user)
        if own is not None:
            return own
        if self._transaction.state == b"E":
            raise RefusedError(
                "the transaction has failed", code="transaction-failed", hint="write ROLLBACK first"
            )
        loop = asyncio.get_running_loop()
        work = loop.run_in_executor(
            self._setting.pool, self._setting.speaker.ask, sql, self._user, tuple(parameters)
        )
        self._running = work
        try:
            return await work
        finally:
            self._running = None

    def _send(self, reply: Reply, formats: Sequence[int], start: int, most: int = 0) -> int:
        """Send rows from `start` on, at most `most` if given; return how many are out."""
        columns = _columns(reply)
        size = int(reply.table.num_rows)
        stop = size if most <= 0 else min(start + most, size)
        for row in zip(
            *(c.slice(start, stop - start).to_pylist() for c in reply.table.columns), strict=True
        ):
            cells = [
                types.encode(v, c.oid, f) for v, c, f in zip(row, columns, formats, strict=True)
            ]
            self._writer.write(m.data_row(cells))
        if stop < size:
            self._writer.write(m.message(b"s"))
            return stop
        for notice in reply.notices:
            self._writer.write(
                m.report(severity="NOTICE", sqlstate="00000", summary=notice, notice=True)
            )
        rows = f" {size}" if reply.tag == "SELECT" else ""
        self._writer.write(m.command_complete(reply.tag + rows))
        return stop

    # -- small things ----------------------------------------------------------------------------
    async def _message(self) -> tuple[bytes, bytes]:
        head = await self._reader.read(1)
        if not head:
            raise _LeftError
        (size,) = struct.unpack("!i", await self._reader.readexactly(4))
        if not 4 <= size <= m.LARGEST:
            raise m.ProtocolError("a message has an impossible size")
        return head, await self._reader.readexactly(size - 4)

    def _statement(self, name: str) -> m.Parse:
        if name not in self._statements:
            raise InputError("there is no such prepared statement", code="unknown-statement")
        return self._statements[name]

    def _portal(self, name: str) -> _Portal:
        if name not in self._portals:
            raise InputError("there is no such portal", code="unknown-portal")
        return self._portals[name]

    def _error(
        self,
        sqlstate: str,
        summary: str,
        *,
        severity: str = "ERROR",
        detail: str | None = None,
        hint: str | None = None,
    ) -> None:
        self._writer.write(
            m.report(
                severity=severity, sqlstate=sqlstate, summary=summary, detail=detail, hint=hint
            )
        )


def _columns(reply: Reply) -> list[m.Column]:
    return _fields(reply.table.schema)


def _fields(schema: Any) -> list[m.Column]:
    # Any: an Arrow schema.
    return [m.Column(field.name, *types.oid_of(field.type)) for field in schema]


def _as_promised(table: Any, promised: Any) -> Any:
    """Return the rows with the columns the client was told of. Any: Arrow."""
    if table.schema.names != promised.names:
        raise EngineError("the answer has other columns than were told", code="other-columns")
    return table.cast(promised, safe=False)


def _spread(formats: tuple[int, ...], count: int) -> tuple[int, ...]:
    """One format goes for all, none means text."""
    if len(formats) == count:
        return formats
    if len(formats) > 1:
        raise m.ProtocolError("formats and values differ in number")
    return (formats[0] if formats else 0,) * count
