"""From a policy file to a running server; and the demonstration's own policy."""

from __future__ import annotations

import asyncio
import secrets
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.app.policy.load import load_policy
from discreet.app.policy.model import Policy, Server
from discreet.app.policy.run import open_source
from discreet.app.server.certificate import make_certificate
from discreet.app.server.desk import User
from discreet.app.server.run import Addresses, ServerSettings, log_to_stderr, serve
from discreet.app.server.supervision import Listeners, listen, supervise
from discreet.errors import InputError

if TYPE_CHECKING:
    from discreet.queries.gateway import Gateway

__all__ = ["serve_demo", "serve_policy"]


def serve_policy(path: str | Path, *, started: Callable[[Addresses], None]) -> None:
    """Serve the gateways of a policy until told to stop; a parent starts again what dies."""
    policy = load_policy(path)
    folder = Path(path).parent
    if not policy.gateways:
        raise InputError(
            "the policy declares no gateway", code="no-gateway", hint="add `gateways:`", file=path
        )
    if not policy.server.users:
        raise InputError(
            "the policy names nobody who may ask",
            code="no-users",
            hint="run `discreet user NAME` and put its output under server: users:",
            file=path,
        )
    for job in policy.gateways.values():
        if policy.server.workers == 1:
            break
        if not str(getattr(job, "ledger", "")).startswith(("postgresql://", "postgres://")):
            raise InputError(
                "several processes need one ledger that they share",
                code="ledger-not-shared",
                hint="give `ledger: postgresql://…`, or workers: 1",
                file=path,
            )
    log_to_stderr()
    settings = _settings(policy.server, folder)
    listeners = listen(settings.host, (settings.port, settings.http_port), policy.server.workers)
    postgres, http = (int(made.getsockname()[1]) for made in listeners[0])
    at = Addresses(postgres, http, settings.certificate if settings.self_signed else None)
    supervise(_worker, (str(path), settings), listeners, started=lambda: started(at))


def _run(
    policy: Policy,
    folder: Path,
    settings: ServerSettings,
    started: Callable[[Addresses], None],
    listeners: Listeners,
) -> None:
    dataset = open_source(policy, folder)
    gateways: dict[str, Gateway] = {}
    for job in policy.gateways.values():
        # Any: jobs of the section "gateways" open a gateway instead of running a release.
        opener: Any = job
        gate = opener.open(dataset, folder)
        gateways[gate.dataset.name] = gate
    users = {
        name: User(name, tuple(entry.roles), entry.password, entry.scram)
        for name, entry in policy.server.users.items()
    }
    asyncio.run(serve(gateways, users, settings, started=started, listeners=listeners))


def _settings(server: Server, folder: Path) -> ServerSettings:
    if (server.certificate is None) != (server.key is None):
        raise InputError(
            "a certificate and its key belong together",
            code="certificate-without-key",
            hint="give both, or neither for a self-signed one",
        )
    if server.certificate is not None and server.key is not None:
        certificate, key = folder / server.certificate, folder / server.key
        for file in (certificate, key):
            if not file.is_file():
                raise InputError("there is no such file", code="missing-file", file=file)
    else:
        certificate, key = make_certificate(
            tempfile.mkdtemp(prefix="discreet-tls-"), host=server.host
        )
    return ServerSettings(
        host=server.host,
        port=server.port,
        http_port=server.http_port,
        certificate=certificate,
        key=key,
        self_signed=server.certificate is None,
        rate=server.rate,
        burst=server.burst,
        statement_seconds=server.statement_timeout,
        token_key=secrets.token_bytes(32),
    )


def _worker(
    path: str, settings: ServerSettings, listeners: Listeners, up: Callable[[], None]
) -> None:
    log_to_stderr()
    policy = load_policy(path)
    _run(policy, Path(path).parent, settings, lambda _: up(), listeners)


def serve_demo(rows: int, *, started: Callable[[Addresses, str], None]) -> None:
    """Serve the embedded population to one user with a password made for this run."""
    import argon2

    from discreet.app.server.postgres.scram import make_verifier
    from discreet.demo.datasets import population
    from discreet.queries.gateway import Gateway
    from discreet.queries.guards.restriction import Restriction

    password = secrets.token_urlsafe(9)
    user = User(
        "demo", ("analyst",), argon2.PasswordHasher().hash(password), str(make_verifier(password))
    )
    people = population(rows)
    folder = tempfile.mkdtemp(prefix="discreet-demo-")
    gate = Gateway(people, guard=Restriction(k=5), ledger=Path(folder) / "ledger.db")
    gateways: Mapping[str, Gateway] = {people.name: gate}
    settings = _settings(Server(), Path(folder))
    log_to_stderr()
    asyncio.run(serve(gateways, {"demo": user}, settings, started=lambda at: started(at, password)))
