"""Both protocols in one process: start, serve, and stop in order."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from discreet.app.server.desk import Rate, User
from discreet.app.server.gateways import Desk
from discreet.app.server.http import Tokens, build_http
from discreet.app.server.metrics import Metrics
from discreet.app.server.postgres.server import PostgresServer, server_binding, tls_context
from discreet.app.server.postgres.setting import Setting
from discreet.queries.gateway import Gateway

__all__ = ["Addresses", "ServerSettings", "serve"]


@dataclasses.dataclass(frozen=True)
class ServerSettings:
    """Where and how to serve."""

    host: str = "127.0.0.1"
    port: int = 5433
    http_port: int = 8433
    certificate: Path | None = None
    key: Path | None = None
    #: Statements per second and user, and the reserve for bursts.
    rate: float = 50.0
    burst: int = 200
    #: Answers made at a time. Most of them wait, for the ledger's disk, for their turn to be decided
    #: or for the engine; those that are recorded together share a transaction.
    threads: int = dataclasses.field(default_factory=lambda: max(16, os.cpu_count() or 16))
    #: A statement that takes longer is ended; None for no limit.
    statement_seconds: float | None = 60.0
    #: Whether the certificate was made for this run.
    self_signed: bool = False
    #: Shared by several processes, so that one accepts another's tokens.
    token_key: bytes = dataclasses.field(default_factory=lambda: os.urandom(32), repr=False)


@dataclasses.dataclass(frozen=True)
class Addresses:
    """Where the server listens."""

    postgres: int
    http: int
    #: The certificate that was made for this run, which clients may trust.
    certificate: Path | None = None


async def serve(
    gateways: Mapping[str, Gateway],
    users: Mapping[str, User],
    settings: ServerSettings,
    *,
    started: Callable[[Addresses], None],
    stop: asyncio.Event | None = None,
    listeners: tuple[socket.socket, socket.socket] | None = None,
) -> None:
    """Serve until `stop` is set or the process is told to end.

    `listeners` are sockets that a parent opened, for PostgreSQL's protocol and for HTTP; without
    them the settings' ports are opened here.
    """
    import uvicorn

    class Quiet(uvicorn.Server):
        """Leaves signals to us: the wire protocol must stop in order, too."""

        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    for gate in gateways.values():
        gate.prepare()
    metrics = Metrics()
    desk = Desk(gateways, rate=Rate(settings.rate, settings.burst), metrics=metrics)
    pool = ThreadPoolExecutor(settings.threads, thread_name_prefix="discreet")
    tls = binding = None
    if settings.certificate is not None and settings.key is not None:
        tls = tls_context(settings.certificate, settings.key)
        binding = server_binding(settings.certificate)
    # Without a certificate the server may be reached only from this machine.
    local = settings.host in ("127.0.0.1", "::1", "localhost")
    setting = Setting(
        desk, users, pool, tls, binding, require_tls=tls is not None or not local,
        statement_seconds=settings.statement_seconds,
    )  # fmt: skip
    postgres = PostgresServer(
        setting,
        host=settings.host,
        port=settings.port,
        listener=None if listeners is None else listeners[0],
    )
    http = Quiet(
        _http_config(
            build_http(
                desk,
                users,
                pool,
                Tokens(settings.token_key),
                metrics,
                setting.attempts,
                settings.statement_seconds,
            ),
            settings,
        )
    )
    stop = stop or asyncio.Event()
    _on_signals(stop)
    await postgres.start()
    listener = (
        socket.create_server((settings.host, settings.http_port))
        if listeners is None
        else listeners[1]
    )
    serving = asyncio.create_task(http.serve(sockets=[listener]))
    try:
        while not http.started and not serving.done():
            await asyncio.sleep(0.02)
        if not serving.done():
            made = settings.certificate if settings.self_signed else None
            started(Addresses(postgres.port, int(listener.getsockname()[1]), made))
            await asyncio.wait(
                [serving, asyncio.create_task(stop.wait())], return_when=asyncio.FIRST_COMPLETED
            )
    finally:
        await postgres.stop()
        http.should_exit = True
        with contextlib.suppress(asyncio.CancelledError, SystemExit):
            await serving
        pool.shutdown(wait=True)
        desk.close()


def _http_config(app: Any, settings: ServerSettings) -> Any:
    # Any: FastAPI and uvicorn are imported when serving.
    import uvicorn

    return uvicorn.Config(
        app,
        host=settings.host,
        port=settings.http_port,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        ssl_certfile=settings.certificate,
        ssl_keyfile=settings.key,
        h11_max_incomplete_event_size=64 * 1024,
        timeout_graceful_shutdown=5,
        limit_concurrency=500,
    )


def _on_signals(stop: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        # Only the main thread may; elsewhere (tests) the event is set by hand.
        with contextlib.suppress(ValueError, NotImplementedError, RuntimeError):
            loop.add_signal_handler(number, stop.set)


class JsonLines(logging.Formatter):
    """Logs one JSON object per line: what happened, to whom, how long; never a value."""

    _known = frozenset(vars(logging.makeLogRecord({})))

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        extra = {k: v for k, v in vars(record).items() if k not in self._known}
        line = {
            "time": self.formatTime(record),
            "level": record.levelname,
            "event": record.getMessage(),
        }
        return json.dumps(line | extra, default=str)


def log_to_stderr() -> None:
    """Send the server's structured log to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logger = logging.getLogger("discreet")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
