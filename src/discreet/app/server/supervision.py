"""A small parent over the processes that serve: it holds the ports and replaces what dies.

The parent touches no record and no ledger. It opens the listening sockets and hands them to its
workers, so that clients who connect while a worker starts again wait instead of being turned
away. A worker whose parent is gone ends at once, which frees the ports for the next start.
"""

from __future__ import annotations

import errno
import logging
import multiprocessing
import multiprocessing.connection
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from discreet.errors import DiscreetError, EngineError, InputError

__all__ = ["Listeners", "listen", "supervise"]

log = logging.getLogger("discreet.server")

#: Sockets of one worker: PostgreSQL's protocol, and HTTP.
Listeners = tuple[socket.socket, socket.socket]

#: A port may still be held by workers of a parent that was killed, for so many seconds.
_PATIENCE = 10.0
#: Pause before a worker that died before it was up is started again; doubled each time.
_PAUSE, _LONGEST_PAUSE = 0.1, 30.0
_BACKLOG = 512


def listen(host: str, ports: tuple[int, int], workers: int) -> list[Listeners]:
    """Return the listening sockets of each worker; port 0 lets the system choose.

    Several workers have sockets of their own on the same port, among which the system divides
    new connections.
    """
    columns = [_opened(host, port, workers) for port in ports]
    return list(zip(*columns, strict=True))


def _opened(host: str, port: int, workers: int) -> list[socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Alone first: sharing a port must not let a second server slip in beside the first.
    first = _alone(family, host, port)
    if workers == 1:
        return [first]
    port = int(first.getsockname()[1])
    first.close()
    found = []
    for _ in range(workers):
        made = socket.create_server((host, port), family=family, backlog=_BACKLOG, reuse_port=True)
        found.append(made)
    return found


def _alone(family: socket.AddressFamily, host: str, port: int) -> socket.socket:
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            return socket.create_server((host, port), family=family, backlog=_BACKLOG)
        except OSError as error:
            if error.errno == errno.EADDRINUSE and time.monotonic() < end:
                time.sleep(0.1)
                continue
            raise InputError(
                f"port {port} of {host} cannot be listened on: {error.strerror or error}",
                code="port-in-use" if error.errno == errno.EADDRINUSE else "port-refused",
                hint="stop what listens there, or give another port under server:",
            ) from error


class _Worker:
    """One process that serves, and what it says of itself."""

    def __init__(
        self, context: Any, work: Callable[..., None], given: tuple[Any, ...], listeners: Listeners
    ) -> None:
        # Any: the context of multiprocessing, whose classes differ by platform.
        self.voice, theirs = context.Pipe(duplex=False)
        self.process = context.Process(target=_serve, args=(work, given, listeners, theirs))
        # Interrupts reach the whole terminal; the parent alone passes them on.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            self.process.start()
        finally:
            signal.signal(signal.SIGINT, before)
        theirs.close()
        self.up = False

    def heard(self) -> Any:
        """Return what the worker said, if anything: None once it is up, or why it could not be."""
        said = None
        try:
            while self.voice.poll():
                said = self.voice.recv()
                self.up = self.up or said is None
        except (EOFError, OSError):
            pass  # it is gone; its exit code says the rest
        return said

    def end(self) -> None:
        if self.process.pid is not None and self.process.is_alive():
            os.kill(self.process.pid, signal.SIGTERM)


def supervise(
    work: Callable[..., None],
    given: tuple[Any, ...],
    listeners: Sequence[Listeners],
    *,
    started: Callable[[], None],
) -> None:
    """Run `work(*given, listeners, up)` in one process per pair of sockets until told to stop.

    A worker that dies is started again: the ledger holds all there is to know. What keeps the
    first start from succeeding is raised here instead.
    """
    # Spawned, not forked: engines and their threads do not survive a fork.
    context = multiprocessing.get_context("spawn")
    stopping = threading.Event()
    woken, wake = context.Pipe(duplex=False)

    def stop(*_: object) -> None:
        stopping.set()
        wake.send(None)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    workers = [_Worker(context, work, given, pair) for pair in listeners]
    try:
        _first_start(workers, woken, stopping)
        if not stopping.is_set():
            started()
        _watch(workers, woken, stopping, lambda at: _Worker(context, work, given, listeners[at]))
    finally:
        for worker in workers:
            worker.end()
        for worker in workers:
            worker.process.join(30)
            if worker.process.is_alive():
                worker.process.kill()


def _first_start(workers: Sequence[_Worker], woken: Any, stopping: threading.Event) -> None:
    while not stopping.is_set() and not all(worker.up for worker in workers):
        multiprocessing.connection.wait(
            [woken, *(w.process.sentinel for w in workers), *(w.voice for w in workers if not w.up)]
        )
        for worker in workers:
            said = worker.heard()
            if isinstance(said, DiscreetError):
                raise said
            if not worker.up and not worker.process.is_alive() and not stopping.is_set():
                raise EngineError(
                    f"a worker ended before it served (exit code {worker.process.exitcode})",
                    code="worker-ended",
                    hint="see the log above",
                )


def _watch(
    workers: list[_Worker],
    woken: Any,
    stopping: threading.Event,
    again: Callable[[int], _Worker],
) -> None:
    """Replace workers that die, with growing pauses for those that do not come up."""
    pause = [_PAUSE] * len(workers)
    due: dict[int, float] = {}
    while not stopping.is_set():
        alive = [w for place, w in enumerate(workers) if place not in due]
        soonest = min(due.values(), default=None)
        multiprocessing.connection.wait(
            [woken, *(w.process.sentinel for w in alive)],
            None if soonest is None else max(soonest - time.monotonic(), 0.0),
        )
        for place, worker in enumerate(workers):
            if stopping.is_set():
                return
            if place in due:
                if time.monotonic() >= due[place]:
                    del due[place]
                    workers[place] = again(place)
                continue
            if worker.process.is_alive():
                continue
            worker.heard()
            log.error(
                "worker ended", extra={"code": worker.process.exitcode, "started_again": True}
            )
            pause[place] = _PAUSE if worker.up else min(2 * pause[place], _LONGEST_PAUSE)
            due[place] = time.monotonic() + (0.0 if worker.up else pause[place])


def _serve(
    work: Callable[..., None], given: tuple[Any, ...], listeners: Listeners, voice: Any
) -> None:
    """Run in a worker: serve, tell when up, and end with the parent."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    ended, end = multiprocessing.Pipe(duplex=False)

    def follow() -> None:
        if ended not in multiprocessing.connection.wait([parent.sentinel, ended]):
            os._exit(1)  # what was answered is in the ledger; nothing else is kept here

    follower = threading.Thread(target=follow, name="parent", daemon=True)
    follower.start()
    try:
        work(*given, listeners, lambda: voice.send(None))
    except DiscreetError as error:
        log.error(error.message, extra={"code": error.code})
        voice.send(error)
        raise SystemExit(error.exit_code) from None
    finally:
        # A thread that still runs when Python ends keeps DuckDB's objects alive, and DuckDB's
        # binding then prints them as leaked.
        end.send(None)
        follower.join()
