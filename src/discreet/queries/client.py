"""A client of a served gateway: asks over HTTPS what `Gateway.ask` answers at home."""

from __future__ import annotations

import base64
import http.client
import ipaddress
import json
import ssl
import urllib.parse
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from discreet.errors import EngineError, InputError, RefusedError
from discreet.queries.answer import Answer

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Client"]


class Client:
    """A user's connection to a server that `discreet serve` started.

    Parameters
    ----------
    url
        Where the server's HTTP port is: ``https://gateway.example:8433``. Without TLS only on
        loopback, because the password travels in it.
    user, password
        Who asks.
    certificate
        The server's certificate or that of its authority (PEM), if the machine does not know it.
    timeout
        Seconds to wait for an answer.

    Examples
    --------
    >>> with Client("https://localhost:8433", user="ana", password="…") as client:
    ...     client.ask("SELECT sector, AVG(salary) FROM people GROUP BY sector")  # doctest: +SKIP
    """

    def __init__(
        self,
        url: str,
        *,
        user: str,
        password: str,
        certificate: str | Path | None = None,
        timeout: float = 60.0,
    ) -> None:
        host, port, secure = _place(url)
        self._user, self._password, self._token = user, password, ""
        self._line: http.client.HTTPConnection
        if secure:
            trusted = _trusted(certificate)
            self._line = http.client.HTTPSConnection(host, port, timeout=timeout, context=trusted)
        else:
            self._line = http.client.HTTPConnection(host, port, timeout=timeout)

    def ask(self, sql: str, parameters: Sequence[Any] = ()) -> Answer:
        """Ask; a refusal is an answer of the kind "refused", as with a gateway at home.

        `EXPLAIN SELECT …` tells what an answer would be and cost, and spends nothing.
        """
        status, body = self._call("POST", "/ask", {"sql": sql, "parameters": list(parameters)})
        if status == 200:
            facts = body["facts"]
            table = _table(body)
            return Answer(
                kind=body["kind"],
                frame=table.to_pandas(),
                table=table,
                spent=facts.get("spent", {}),
                left=facts.get("left", {}),
                error_95=facts.get("error_95", {}),
                withheld=facts.get("withheld", 0),
                repeated=facts.get("repeated", False),
                guard=facts.get("guard", ""),
            )
        if status in (403, 409):
            return Answer(
                "refused",
                None,
                reason=body["message"],
                hint=body.get("hint") or "",
                code=body["error"],
            )
        raise _error(status, body)

    def relations(self) -> dict[str, dict[str, str]]:
        """Return what may be asked about: relations, their columns and types."""
        status, body = self._call("GET", "/relations")
        if status != 200:
            raise _error(status, body)
        return dict(body)

    def close(self) -> None:
        """Hang up."""
        self._line.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _call(self, verb: str, path: str, body: Any = None) -> tuple[int, Any]:
        # Any: what JSON holds.
        if not self._token:
            self._log_in()
        status, told = self._send(verb, path, f"Bearer {self._token}", body)
        if status == 401:  # tokens end after an hour
            self._log_in()
            status, told = self._send(verb, path, f"Bearer {self._token}", body)
        return status, told

    def _log_in(self) -> None:
        pair = base64.b64encode(f"{self._user}:{self._password}".encode()).decode()
        status, told = self._send("POST", "/token", f"Basic {pair}")
        if status == 401:
            raise InputError(
                "the server does not accept this name and password",
                code="unauthorized",
                hint="ask the curator for both; `discreet user NAME` makes them",
            )
        if status != 200:
            raise _error(status, told)
        self._token = told["token"]

    def _send(self, verb: str, path: str, proof: str, body: Any = None) -> tuple[int, Any]:
        headers = {"Authorization": proof, "Content-Type": "application/json"}
        text = None if body is None else json.dumps(body)
        try:
            try:
                self._line.request(verb, path, text, headers)
                reply = self._line.getresponse()
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
                # An idle line was closed at the other end. Asking twice costs once: the ledger
                # knows the question.
                self._line.close()
                self._line.request(verb, path, text, headers)
                reply = self._line.getresponse()
            return reply.status, json.loads(reply.read())
        except ssl.SSLCertVerificationError as error:
            self._line.close()
            raise EngineError(
                f"the server's certificate is not trusted: {error.verify_message}",
                code="untrusted-certificate",
                hint="give the authority's certificate: certificate='ca.pem' or --certificate",
            ) from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            self._line.close()
            raise EngineError(
                f"the server at {self._line.host}:{self._line.port} does not answer"
                f" ({type(error).__name__})",
                code="cannot-connect",
                hint="check address and port: `server: http_port` in the policy",
            ) from None


def _trusted(certificate: str | Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=certificate and str(certificate))
    except FileNotFoundError:
        raise InputError("there is no such file", code="missing-file", file=certificate) from None
    except (ssl.SSLError, OSError):
        raise InputError(
            "the file holds no certificate",
            code="malformed-certificate",
            file=certificate,
            hint="give a PEM file that begins with -----BEGIN CERTIFICATE-----",
        ) from None


def _place(url: str) -> tuple[str, int, bool]:
    """Return host, port and whether to encrypt."""
    try:
        parts = urllib.parse.urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if host is None or parts.scheme not in ("http", "https"):
        raise InputError(
            "the server's address cannot be read",
            code="malformed-address",
            hint="write https://host:port",
        )
    secure = parts.scheme == "https"
    if not secure and not _loopback(host):
        raise RefusedError(
            "a password does not go unencrypted over a network",
            code="not-encrypted",
            hint="write https://",
        )
    return host, port or (443 if secure else 80), secure


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _table(body: Any) -> pa.Table:
    import pyarrow as pa

    columns = []
    for number, told in enumerate(body["types"]):
        values = pa.array([row[number] for row in body["rows"]])
        try:
            columns.append(values.cast(pa.type_for_alias(told)))
        except (ValueError, pa.ArrowException):  # decimals and the like stay as JSON had them
            columns.append(values)
    return pa.table(columns, names=body["columns"])


def _error(status: int, body: Any) -> InputError | RefusedError | EngineError:
    kind: type[InputError | RefusedError | EngineError] = InputError
    if status == 429:
        kind = RefusedError
    elif status >= 500:
        kind = EngineError
    return kind(body["message"], code=body["error"], hint=body.get("hint"))
