"""Whole servers for tests: in a thread of this process, or as processes of their own."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import argon2
import psycopg
import yaml

from discreet.app.server.certificate import make_certificate
from discreet.app.server.desk import User
from discreet.app.server.postgres.scram import make_verifier
from discreet.app.server.run import ServerSettings, serve
from tests.servers import free_port

PASSWORD = "an analyst's secret"
REPOSITORY = Path(__file__).resolve().parents[3]


@functools.cache
def secrets() -> dict[str, str]:
    """What the server keeps of the password; cheap parameters, for tests."""
    hasher = argon2.PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    return {
        "password": hasher.hash(PASSWORD),
        "scram": str(make_verifier(PASSWORD, iterations=4096)),
    }


def user(name: str, *roles: str) -> User:
    return User(name, roles or ("analyst",), **secrets())


@contextlib.contextmanager
def served_here(gateways, users, folder: Path, *, patience: float = 300, **options):
    """Serve gateways from a thread; yield the addresses."""
    certificate, key = make_certificate(folder)
    settings = ServerSettings(
        port=0, http_port=0, certificate=certificate, key=key,
        **{"rate": 1e9, "burst": 10**9, **options},
    )  # fmt: skip
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()
    ready: list = []
    up = threading.Event()

    def started(addresses):
        ready.append(addresses)
        up.set()

    def run():
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(serve(gateways, users, settings, started=started, stop=stop))
        finally:
            up.set()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert up.wait(patience)
    assert ready, "the server did not start"
    try:
        yield ready[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(30)
        assert not thread.is_alive()
        loop.close()


def write_policy(folder: Path, *, gateway: dict, users=("ana",), data=None, **server) -> Path:
    """Write a policy for the file `people.csv` in the folder."""
    policy = {
        "data": data
        or {
            "source": "people.csv",
            "name": "people",
            "roles": {"sector": "quasi", "region": "quasi", "age": "quasi", "salary": "confidential"},
        },
        "gateways": [{"name": "people", "kind": "gateway", **gateway}],
        "server": {
            "port": free_port(),
            "http_port": free_port(),
            "rate": 1e9,
            "burst": 10**9,
            "users": {name: {"roles": ["analyst"], **secrets()} for name in users},
            **server,
        },
    }  # fmt: skip
    path = folder / "policy.yaml"
    path.write_text(yaml.safe_dump(policy), encoding="utf-8")
    return path


def write_people(folder: Path, rows: int = 400) -> None:
    """Write records in which nothing is special."""
    lines = ["sector,region,age,salary"]
    for i in range(rows):
        sector, region = ("IT", "HC", "Fin")[i % 3], ("TGN", "BCN")[i // 3 % 2]
        lines.append(f"{sector},{region},{20 + i % 45},{20_000 + i * 37 % 90_000}")
    (folder / "people.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


class Served:
    """A `discreet serve` process."""

    def __init__(self, policy: Path, *allow: str) -> None:
        self.policy = policy
        self.allow = [word for given in allow for word in ("--allow", given)]
        self.settings = yaml.safe_load(policy.read_text())["server"]
        self.log = policy.with_suffix(".log")
        self.process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "discreet", "serve", str(self.policy), *self.allow],
                env={**os.environ, "PYTHONPATH": str(REPOSITORY / "src")},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def connect(self, who: str = "ana", **options) -> psycopg.Connection:
        return connect(self.settings["port"], who, **options)

    def wait(self, seconds: float = 300) -> None:
        """Wait until clients are served."""
        end = time.monotonic() + seconds
        while True:
            try:
                self.connect(connect_timeout=5).close()
            except psycopg.OperationalError:
                assert self.process.poll() is None, self.log.read_text()[-3000:]
                assert time.monotonic() < end, self.log.read_text()[-3000:]
                time.sleep(0.05)
            else:
                return

    def kill(self) -> None:
        """End it as a power cut would, with all of its workers."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(30)

    def workers(self) -> list[int]:
        """Return the processes that serve."""
        return children(self.process.pid)

    def kill_worker(self) -> None:
        """End one process that serves; its parent starts another."""
        for worker in self.workers()[:1]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)

    def kill_parent(self, seconds: float = 30) -> None:
        """End the parent alone, and see that its workers do not outlive it."""
        workers = self.workers()
        self.process.kill()
        self.process.wait(30)
        end = time.monotonic() + seconds
        while left := [worker for worker in workers if alive(worker)]:
            assert time.monotonic() < end, f"workers {left} outlive their parent"
            time.sleep(0.01)

    def restart(self) -> None:
        self.process = self._start()

    def stop(self) -> int:
        """Ask it to end; return how it did."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.kill()
            raise


def connect(port: int, who: str = "ana", **options) -> psycopg.Connection:
    settings = {
        "host": "127.0.0.1", "port": port, "user": who, "password": PASSWORD,
        "dbname": "discreet", "sslmode": "require", "autocommit": True,
    }  # fmt: skip
    return psycopg.connect(**(settings | options))


def alive(process: int) -> bool:
    """Whether a process runs; one that ended and was not yet asked about does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def children(parent: int) -> list[int]:
    """Processes of a server that serve, by what they were started as."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            above = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            line = (entry / "cmdline").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if above == parent and "spawn_main" in line and alive(int(entry.name)):
            found.append(int(entry.name))
    return found
