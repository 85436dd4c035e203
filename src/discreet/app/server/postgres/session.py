"""One connection: start-up, authentication, then statements until the client leaves."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import os
import ssl
from collections.abc import Callable, Sequence
from typing import Any

import discreet
from discreet.app.server.desk import Reply, Running, User
from discreet.app.server.postgres import messages as m
from discreet.app.server.postgres import types
from discreet.app.server.postgres.sending import (
    as_promised,
    columns_of,
    fields_of,
    send_rows,
    spread,
)
from discreet.app.server.postgres.session_statements import (
    LONGEST,
    Transaction,
    placeholders,
    session_reply,
    session_schema,
    shows_budget,
    split,
)
from discreet.app.server.postgres.setting import Setting
from discreet.app.server.postgres.sqlstates import sqlstate_of
from discreet.app.server.postgres.startup import DeniedError, Startup, read_message
from discreet.errors import DiscreetError, InputError, RefusedError

__all__ = ["Cancellations", "Session"]

log = logging.getLogger("discreet.server.postgres")

_HANDSHAKE_SECONDS = 30.0
#: What one connection may keep: prepared statements and their size, open portals.
_MOST_STATEMENTS = 1000
_MOST_KEPT = 8 << 20
_MOST_PORTALS = 100
_MOST_AT_ONCE = 100


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
        self._kinds: dict[str, list[int]] = {}
        self._transaction = Transaction()
        self._running: Running | None = None
        self._task: asyncio.Task[Any] | None = None
        self._failed = False
        self._idle = True
        self._leaving = False

    @property
    def known(self) -> bool:
        """Whether the client has proved who it is."""
        return self._user is not None

    def interrupt(self) -> None:
        """Cancel the running statement."""
        if self._running is not None:
            self._running.cancel()

    def leave(self) -> None:
        """End the connection: at once if it waits, otherwise after the statement it is at."""
        self._leaving = True
        if self._idle and self._task is not None:
            self._task.cancel()

    async def run(self) -> None:
        """Serve the connection to its end."""
        key = None
        self._task = asyncio.current_task()
        try:
            async with asyncio.timeout(_HANDSHAKE_SECONDS):
                startup = Startup(
                    self._reader, self._writer, self._setting, self._cancellations.cancel
                )
                self._user = await startup.run()
                if self._user is None:
                    return
            key = self._cancellations.add(self)
            self._welcome(key)
            await self._drain()
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
        except DeniedError as error:
            self._error(error.sqlstate, error.summary, severity="FATAL")
        except asyncio.CancelledError:
            if not self._leaving or self._task is None:
                raise
            self._task.uncancel()
            self._error("57P01", "the server is stopping", severity="FATAL")
        except Exception as error:  # its text may quote a record: only its kind is told
            log.error("connection failed", extra={"kind": type(error).__name__})
        finally:
            if key is not None:
                self._cancellations.remove(key)
            await self._hang_up()

    async def _hang_up(self) -> None:
        """Close; a client that does not read what is left for it is cut off."""
        try:
            async with asyncio.timeout(2.0):
                await self._writer.drain()
                self._writer.close()
                await self._writer.wait_closed()
        except (ConnectionError, ssl.SSLError, TimeoutError):
            self._writer.transport.abort()

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
            b"Q": self._simple,
            b"F": self._call,
        }
        while not self._leaving:
            kind, body = await self._next()
            if kind == b"X":
                return
            if kind == b"S":
                self._failed = False
                if self._transaction.state == b"I":
                    self._portals.clear()
                self._writer.write(m.ready(self._transaction.state))
            elif kind in handlers:
                if not self._failed:  # after an error everything is skipped until Sync
                    await handlers[kind](body)
            elif kind not in (b"H", b"d", b"c", b"f"):  # COPY is never begun: its data is nobody's
                raise m.ProtocolError("an unknown message")
            # Also what is not a whole answer must be taken by the client, or it would pile up.
            await self._drain()
        self._error("57P01", "the server is stopping", severity="FATAL")

    async def _next(self) -> tuple[bytes, bytes]:
        self._idle = True
        try:
            async with asyncio.timeout(self._setting.idle_seconds):
                found = await read_message(self._reader)
        finally:
            self._idle = False
        if found is None:
            raise _LeftError
        return found

    async def _drain(self) -> None:
        async with asyncio.timeout(self._setting.unread_seconds):
            await self._writer.drain()

    async def _guarded(self, work: Any) -> bool:
        """Run one step; an error is sent to the client and ends the batch."""
        try:
            await work
        except DiscreetError as error:
            self._error(
                sqlstate_of(error), error.message, hint=error.hint, detail=f"code {error.code}"
            )
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():  # the server is stopping
                raise
            self._error("57014", "canceling statement due to user request")
        except (m.ProtocolError, ConnectionError, TimeoutError):
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
        # As in PostgreSQL, a simple query ends the unnamed statement and portal.
        self._statements.pop("", None)
        self._portals.pop("", None)

        async def all_statements() -> None:
            statements = await self._split(sql)
            if not statements:
                self._writer.write(m.message(b"I"))
            if len(statements) > _MOST_AT_ONCE:
                raise InputError(
                    f"{len(statements)} statements at once are too many",
                    code="too-many-statements",
                    hint=f"send at most {_MOST_AT_ONCE}",
                )
            for statement in statements:
                reply = await self._ask(statement, ())
                formats = (0,) * reply.table.num_columns
                if reply.table.num_columns:
                    self._writer.write(m.row_description(columns_of(reply), formats))
                await send_rows(reply, formats, self._writer.write, self._drain)

        await self._guarded(all_statements())
        self._failed = False
        self._writer.write(m.ready(self._transaction.state))

    async def _parse(self, body: bytes) -> None:
        statement = m.read_parse(body)
        await self._guarded(self._prepare(statement))

    async def _prepare(self, statement: m.Parse) -> None:
        kept = sum(len(s.sql) for n, s in self._statements.items() if n != statement.name)
        if len(self._statements) >= _MOST_STATEMENTS or kept + len(statement.sql) > _MOST_KEPT:
            raise RefusedError(
                "too many prepared statements", code="too-many-statements", hint="close some"
            )
        if statement.name and statement.name in self._statements:
            raise InputError("the prepared statement exists", code="repeated-statement")
        several = await self._split(statement.sql)
        if len(several) > 1:
            raise InputError("one statement at a time can be prepared", code="several-statements")
        statement = dataclasses.replace(statement, sql=several[0] if several else "")
        self._statements[statement.name] = statement
        self._promised.pop(statement.name, None)
        self._kinds.pop(statement.name, None)
        self._writer.write(m.message(b"1"))

    async def _bind(self, body: bytes) -> None:
        await self._guarded(self._open(m.read_bind(body)))

    async def _open(self, bind: m.Bind) -> None:
        statement = self._statement(bind.statement)
        if bind.portal and bind.portal in self._portals:
            raise InputError("the portal exists", code="repeated-statement")
        if len(self._portals) >= _MOST_PORTALS:
            raise RefusedError("too many portals", code="too-many-statements", hint="close some")
        wanted = max(placeholders(statement.sql), len(statement.types))
        if len(bind.values) != wanted:
            raise InputError(
                f"the statement has {wanted} parameters, found {len(bind.values)}",
                code="wrong-parameters",
            )
        formats = spread(bind.formats, len(bind.values))
        kinds = (*statement.types, *([0] * len(bind.values)))[: len(bind.values)]
        if any(formats) and bind.statement in self._kinds:  # as they were told to the client
            kinds = tuple(self._kinds[bind.statement])
        parameters = tuple(map(types.decode, bind.values, kinds, formats))
        promised = self._promised.get(bind.statement)
        self._portals[bind.portal] = _Portal(
            statement.sql, parameters, bind.result_formats, promised
        )
        self._writer.write(m.message(b"2"))

    async def _describe(self, body: bytes) -> None:
        kind, name = m.read_target(body)
        await self._guarded(
            self._describe_statement(name) if kind == "S" else self._describe_portal(name)
        )

    async def _describe_statement(self, name: str) -> None:
        """Tell parameters and columns; nothing is asked, so nothing is spent."""
        statement = self._statement(name)
        wanted = max(placeholders(statement.sql), len(statement.types))
        assert self._user is not None
        own, told = session_schema(statement.sql, self._transaction)
        needed: tuple[str, ...] = ()
        if not own:
            speaker, user, errors = self._setting.speaker, self._user, self._transaction.errors

            def described() -> tuple[Any, tuple[str, ...]]:
                schema = speaker.describe(statement.sql, user, wanted, errors=errors)
                return schema, speaker.parameter_kinds(statement.sql, user, wanted)

            told, needed = await asyncio.get_running_loop().run_in_executor(
                self._setting.pool, described
            )
        guessed = [types.KINDS.get(kind, 25) for kind in needed] + [25] * wanted
        kinds = [
            given or guess
            for given, guess in zip([*statement.types, *([0] * wanted)], guessed, strict=False)
        ][:wanted]
        self._promised[name], self._kinds[name] = told, kinds
        self._writer.write(m.parameter_description(kinds))
        self._writer.write(
            m.message(b"n")
            if told is None
            else m.row_description(fields_of(told), (0,) * len(told))
        )

    async def _describe_portal(self, name: str) -> None:
        """Tell the columns of an answer; clients execute what they describe, so it is asked now."""
        portal = self._portal(name)
        reply = await self._reply(portal)
        if reply.table.num_columns == 0:
            self._writer.write(m.message(b"n"))
            return
        formats = spread(portal.formats, reply.table.num_columns)
        self._writer.write(m.row_description(columns_of(reply), formats))

    async def _execute(self, body: bytes) -> None:
        reader = m.Reader(body)
        name, most = reader.text(), reader.int32()
        reader.done()
        await self._guarded(self._deliver(name, most))

    async def _deliver(self, name: str, most: int) -> None:
        portal = self._portal(name)
        if not portal.sql:
            self._writer.write(m.message(b"I"))
            return
        reply = await self._reply(portal)
        formats = spread(portal.formats, reply.table.num_columns)
        portal.sent = await send_rows(
            reply, formats, self._writer.write, self._drain, start=portal.sent, most=most
        )

    async def _close(self, body: bytes) -> None:
        kind, name = m.read_target(body)
        if kind == "S":
            self._statements.pop(name, None)
            self._promised.pop(name, None)
        else:
            self._portals.pop(name, None)
        self._writer.write(m.message(b"3"))

    async def _call(self, _: bytes) -> None:
        self._error("0A000", "functions are not called here; use SQL")
        self._writer.write(m.ready(self._transaction.state))

    async def _reply(self, portal: _Portal) -> Reply:
        if portal.reply is None:
            reply = await self._ask(portal.sql, portal.parameters)
            if portal.promised is not None:
                reply = dataclasses.replace(reply, table=as_promised(reply.table, portal.promised))
            portal.reply = reply
        return portal.reply

    async def _split(self, sql: str) -> tuple[str, ...]:
        """Take a text apart; a long one where it holds nobody up."""
        if len(sql) > LONGEST:
            raise InputError(
                f"the text has {len(sql):,} characters",
                code="too-complex",
                hint=f"send at most {LONGEST:,}",
            )
        if len(sql) < 4000:
            return split(sql)
        return await asyncio.get_running_loop().run_in_executor(self._setting.pool, split, sql)

    async def _ask(self, sql: str, parameters: Sequence[Any]) -> Reply:
        assert self._user is not None
        if shows_budget(sql):
            return await self._budget()
        own = session_reply(sql, self._transaction)
        if own is not None:
            if own.tag in ("DEALLOCATE", "DISCARD"):
                self._deallocate(sql)
            return own
        if self._transaction.state == b"E":
            raise InputError(
                "the transaction has failed", code="transaction-failed", hint="write ROLLBACK first"
            )
        errors = self._transaction.errors
        at_hand = self._setting.speaker.recall(sql, self._user, parameters, errors=errors)
        if at_hand is not None:
            return at_hand
        setting = self._setting
        limits = [s for s in (setting.statement_seconds, self._transaction.timeout) if s]
        self._running = Running(
            setting.pool, setting.speaker, sql, self._user, parameters, errors=errors
        )
        try:
            return await self._running.reply(min(limits, default=None))
        finally:
            self._running = None

    async def _budget(self) -> Reply:
        """Tell what is left of the user's budgets."""
        assert self._user is not None
        setting = self._setting
        table = await asyncio.get_running_loop().run_in_executor(
            setting.pool, setting.speaker.budget, self._user
        )
        return Reply(table, "session", tag="SHOW")

    # -- small things ----------------------------------------------------------------------------
    def _deallocate(self, sql: str) -> None:
        words = sql.rstrip("; ").split()
        if words[-1].upper() == "ALL":
            self._statements.clear()
            self._promised.clear()
        elif words[0].upper() == "DEALLOCATE":
            self._statements.pop(words[-1].strip('"'), None)
            self._promised.pop(words[-1].strip('"'), None)

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
