"""From a policy file to a running server; and the demonstration's own policy."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.app.policy.access import permitted_policy
from discreet.app.policy.histories import require_one_gateway
from discreet.app.policy.model import Policy, Server
from discreet.app.policy.run import open_source
from discreet.app.server.certificate import make_certificate
from discreet.app.server.desk import User
from discreet.app.server.run import Addresses, ServerSettings, log_to_stderr, serve
from discreet.app.server.supervision import Listeners, listen, supervise
from discreet.data.atomic import working_folder
from discreet.errors import InputError

if TYPE_CHECKING:
    from discreet.queries.gateway import Gateway

__all__ = ["announce", "serve_demo", "serve_policy"]

log = logging.getLogger("discreet.server")


def serve_policy(
    path: str | Path,
    *,
    started: Callable[[Addresses], None],
    allow: Sequence[str | Path] = (),
    password: str | None = None,
) -> None:
    """Serve the gateways of a policy until told to stop; a parent starts again what dies.

    `allow` and `password` say what the policy may touch besides its folder: see `Access`.
    """
    policy, _ = permitted_policy(path, allow=allow, password=password)
    if not policy.gateways:
        raise InputError(
            "the policy declares no gateway", code="no-gateway", hint="add `gateways:`", file=path
        )
    if not policy.server.users:
        raise InputError(
            "the policy names nobody who may ask",
            code="no-users",
            hint=f"run `discreet user NAME --policy {path}`",
            file=path,
        )
    require_one_gateway(policy, path)
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
    with _settings(policy.server) as settings:
        listeners = listen(
            settings.host, (settings.port, settings.http_port), policy.server.workers
        )
        postgres, http = (int(made.getsockname()[1]) for made in listeners[0])
        at = Addresses(postgres, http, settings.certificate if settings.self_signed else None)
        given = (str(path), settings, tuple(map(str, allow)), password)
        supervise(_worker, given, listeners, started=lambda: started(at))


def _run(
    policy: Policy,
    folder: Path,
    settings: ServerSettings,
    started: Callable[[Addresses], None],
    listeners: Listeners,
) -> None:
    dataset = open_source(policy)
    gateways: dict[str, Gateway] = {}
    for service in policy.gateways.values():
        gate = service.open(dataset, folder)
        gateways[gate.dataset.name] = gate
    announce(gateways)
    users = {
        name: User(name, tuple(entry.roles), entry.password, entry.scram)
        for name, entry in policy.server.users.items()
    }
    asyncio.run(serve(gateways, users, settings, started=started, listeners=listeners))


def announce(gateways: Mapping[str, Gateway]) -> None:
    """Tell the curator, in the log, what each gateway found out about its data when it opened."""
    for name, gate in gateways.items():
        for notice in gate.notices:
            log.warning("%s", notice, extra={"relation": name})


@contextlib.contextmanager
def _settings(server: Server) -> Iterator[ServerSettings]:
    """Yield the settings; a certificate that is made for them is removed at the end."""
    if (server.certificate is None) != (server.key is None):
        raise InputError(
            "a certificate and its key belong together",
            code="certificate-without-key",
            hint="give both, or neither for a self-signed one",
        )
    if server.certificate is not None and server.key is not None:
        certificate, key = Path(server.certificate), Path(server.key)
        for file in (certificate, key):
            if not file.is_file():
                raise InputError("there is no such file", code="missing-file", file=file)
        yield _with_certificate(server, certificate, key)
        return
    with working_folder("discreet-tls") as folder:
        yield _with_certificate(server, *make_certificate(folder, host=server.host))


def _with_certificate(server: Server, certificate: Path, key: Path) -> ServerSettings:
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
    path: str,
    settings: ServerSettings,
    allow: tuple[str, ...],
    password: str | None,
    listeners: Listeners,
    up: Callable[[], None],
) -> None:
    log_to_stderr()
    policy, _ = permitted_policy(path, allow=allow, password=password)
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
    log_to_stderr()
    with working_folder("discreet-demo") as folder, _settings(Server()) as settings:
        gate = Gateway(people, guard=Restriction(k=5), ledger=folder / "ledger.db")
        gateways: Mapping[str, Gateway] = {people.name: gate}
        announce(gateways)
        asyncio.run(
            serve(gateways, {"demo": user}, settings, started=lambda at: started(at, password))
        )
