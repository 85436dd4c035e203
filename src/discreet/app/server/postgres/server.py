"""The listener: accepts connections, bounds their number, and stops in order."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import socket
import ssl
from pathlib import Path

from discreet.app.server.postgres.messages import report
from discreet.app.server.postgres.session import Cancellations, Session
from discreet.app.server.postgres.setting import Setting

__all__ = ["PostgresServer", "server_binding", "tls_context"]


_BACKLOG = 512


class PostgresServer:
    """Serves PostgreSQL's protocol on one address."""

    def __init__(
        self,
        setting: Setting,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        most: int = 500,
        listener: socket.socket | None = None,
    ) -> None:
        self._setting, self._host, self.port, self._most = setting, host, port, most
        self._listener = listener
        self._cancellations = Cancellations()
        self._sessions: dict[asyncio.Task[None], Session] = {}
        self._server: asyncio.Server | None = None

    @property
    def connections(self) -> int:
        """How many clients are connected."""
        return len(self._sessions)

    async def start(self) -> None:
        """Listen; with port 0 the system chooses, and `port` then says which."""
        if self._listener is not None:
            self._server = await asyncio.start_server(
                self._accept, sock=self._listener, backlog=_BACKLOG
            )
        else:
            self._server = await asyncio.start_server(self._accept, self._host, self.port)
        self.port = int(self._server.sockets[0].getsockname()[1])

    async def stop(self, *, patience: float = 5.0) -> None:
        """Take no new clients, let running statements end, then close what is left."""
        if self._server is None:
            return
        self._server.close()
        for session in self._sessions.values():
            session.leave()
        if self._sessions:
            await asyncio.wait(list(self._sessions), timeout=patience)
        left = list(self._sessions)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        strangers = sum(not session.known for session in self._sessions.values())
        # Those who have not said who they are may not keep the others out.
        if len(self._sessions) >= self._most or strangers >= self._most // 2:
            writer.write(report(severity="FATAL", sqlstate="53300", summary="too many clients"))
            with contextlib.suppress(ConnectionError, TimeoutError):
                async with asyncio.timeout(2.0):
                    await writer.drain()
            writer.close()
            return
        session = Session(reader, writer, self._setting, self._cancellations)
        self._sessions[task] = session
        try:
            await session.run()
        finally:
            self._sessions.pop(task, None)


def tls_context(certificate: str | Path, key: str | Path) -> ssl.SSLContext:
    """Return the context of a server with this certificate; TLS 1.2 and later."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate, key)
    return context


def server_binding(certificate: str | Path) -> bytes:
    """Return the hash of the certificate for channel binding (RFC 5929, tls-server-end-point)."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    found = x509.load_pem_x509_certificate(Path(certificate).read_bytes())
    algorithm = found.signature_hash_algorithm
    name = "sha256" if algorithm is None or algorithm.name in ("md5", "sha1") else algorithm.name
    return hashlib.new(name, found.public_bytes(Encoding.DER)).digest()
