"""From a policy file to a running server; and the demonstration's own policy."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import secrets
import signal
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
from discreet.errors import InputError

if TYPE_CHECKING:
    from discreet.queries.gateway import Gateway

__all__ = ["serve_demo", "serve_policy"]


def serve_policy(path: str | Path, *, started: Callable[[Addresses], None]) -> None:
    """Serve the gateways of a policy until told to stop."""
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
    settings = _settings(policy.server, folder)
    if policy.server.workers == 1:
        _run(policy, folder, settings, started)
        return
    _several(path, policy.server.workers, settings, started)


def _run(
    policy: Policy, folder: Path, settings: ServerSettings, started: Callable[[Addresses], None]
) -> None:
    log_to_stderr()
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
    asyncio.run(serve(gateways, users, settings, started=started))


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
        rate=server.rate,
        burst=server.burst,
        token_key=secrets.token_bytes(32),
        shared=server.workers > 1,
    )


def _worker(path: str, settings: ServerSettings, ready: Any) -> None:
    policy = load_policy(path)
    _run(policy, Path(path).parent, settings, ready.put)


def _several(
    path: str | Path, count: int, settings: ServerSettings, started: Callable[[Addresses], None]
) -> None:
    """Run several processes on the same ports; they share the ledger and the tokens' key."""
    if settings.port == 0 or settings.http_port == 0:
        raise InputError(
            "several processes need fixed ports",
            code="ports-not-fixed",
            hint="give port and http_port",
        )
    # Spawned, not forked: engines and their threads do not survive a fork.
    context = multiprocessing.get_context("spawn")
    ready = context.Queue()
    workers = [
        context.Process(target=_worker, args=(str(path), settings, ready)) for _ in range(count)
    ]
    for worker in workers:
        worker.start()
    stopping = []

    def stop(*_: object) -> None:
        stopping.append(True)
        for worker in workers:
            if worker.pid is not None and worker.is_alive():
                os.kill(worker.pid, signal.SIGTERM)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    address = ready.get()
    for _ in range(count - 1):
        ready.get()
    started(address)
    for worker in workers:
        worker.join()
    if not stopping and any(worker.exitcode for worker in workers):
        raise InputError("a worker ended by itself", code="worker-ended", hint="see its log above")


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
