"""From a policy file to a running server; and the demonstration's own policy."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import multiprocessing
import os
import queue
import secrets
import signal
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.app.policy.load import load_policy
from discreet.app.policy.model import Policy, Server
from discreet.app.policy.run import open_source
from discreet.app.server.certificate import make_certificate
from discreet.app.server.desk import User
from discreet.app.server.run import Addresses, ServerSettings, log_to_stderr, serve
from discreet.errors import EngineError, InputError

if TYPE_CHECKING:
    from discreet.queries.gateway import Gateway

__all__ = ["serve_demo", "serve_policy"]

#: Workers that die one after another without one coming up between them.
_MOST_DEATHS = 5


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
    for job in policy.gateways.values():
        if not str(getattr(job, "ledger", "")).startswith(("postgresql://", "postgres://")):
            raise InputError(
                "several processes need one ledger that they share",
                code="ledger-not-shared",
                hint="give `ledger: postgresql://…`, or workers: 1",
                file=path,
            )
    log_to_stderr()
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
        statement_seconds=server.statement_timeout,
        token_key=secrets.token_bytes(32),
        shared=server.workers > 1,
    )


def _worker(path: str, settings: ServerSettings, ready: Any) -> None:
    policy = load_policy(path)
    _run(policy, Path(path).parent, settings, ready.put)


def _several(
    path: str | Path, count: int, settings: ServerSettings, started: Callable[[Addresses], None]
) -> None:
    """Run several processes on the same ports; they share the ledger and the tokens' key.

    One that dies is started again: the ledger holds all there is to know.
    """
    if settings.port == 0 or settings.http_port == 0:
        raise InputError(
            "several processes need fixed ports",
            code="ports-not-fixed",
            hint="give port and http_port",
        )
    # Spawned, not forked: engines and their threads do not survive a fork.
    context = multiprocessing.get_context("spawn")
    ready = context.Queue()
    stopping = threading.Event()
    workers: list[Any] = []  # Any: processes of the context

    def start() -> Any:
        worker = context.Process(target=_worker, args=(str(path), settings, ready))
        worker.start()
        return worker

    def stop(*_: object) -> None:
        stopping.set()
        for worker in workers:
            if worker.pid is not None and worker.is_alive():
                os.kill(worker.pid, signal.SIGTERM)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    workers += [start() for _ in range(count)]
    _watch(workers, start, ready, stopping, started)
    for worker in workers:
        worker.join(30)


def _watch(
    workers: list[Any],
    start: Callable[[], Any],
    ready: Any,
    stopping: threading.Event,
    started: Callable[[Addresses], None],
) -> None:
    """Tell when all are up, and replace those that die. Any: processes and their queue."""
    up = deaths = 0
    while not stopping.is_set():
        with contextlib.suppress(queue.Empty):
            address = ready.get(timeout=0.2)
            up += 1
            deaths = 0
            if up == len(workers):
                started(address)
        for place, worker in enumerate(workers):
            if worker.is_alive() or stopping.is_set():
                continue
            deaths += 1
            if deaths > _MOST_DEATHS:
                for other in workers:
                    if other.is_alive():
                        os.kill(other.pid, signal.SIGTERM)
                raise EngineError(
                    "workers end as soon as they start", code="worker-ended", hint="see the log"
                )
            logging.getLogger("discreet.server").error(
                "worker ended", extra={"code": worker.exitcode, "started_again": True}
            )
            workers[place] = start()


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
