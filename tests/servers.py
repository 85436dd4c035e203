"""Starting and stopping the servers that engine tests talk to: the real ones, on loopback."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest


def unavailable(reason: str) -> None:
    """Skip where a server cannot be had; in CI that is a failure."""
    if os.environ.get("CI", "").lower() in ("1", "true", "yes"):
        pytest.fail(f"{reason} (must not be missing in CI)")
    pytest.skip(reason)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait(port: int, process: subprocess.Popen[bytes], log: Path, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        if process.poll() is not None:
            break
        time.sleep(0.05)
    tail = log.read_text(errors="replace")[-2000:] if log.exists() else ""
    unavailable(f"the server did not start:\n{tail}")


# -- Java ------------------------------------------------------------------------------------------
def jdbc_driver() -> Path:
    """Return PostgreSQL's driver for Java, where Debian or Maven puts it."""
    places = [Path("/usr/share/java/postgresql.jar")]
    kept = Path.home() / ".m2" / "repository" / "org" / "postgresql" / "postgresql"
    places += sorted(kept.glob("*/postgresql-*.jar"), reverse=True)
    found = [place for place in places if place.exists()]
    if shutil.which("javac") is None or not found:
        unavailable("no Java driver: apt-get install default-jdk-headless libpostgresql-jdbc-java")
    return found[0]


# -- PostgreSQL ------------------------------------------------------------------------------------
def _postgres_programs() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), reverse=True)
    program = str(found[0]) if found else shutil.which("initdb")
    if program is None:
        unavailable("no PostgreSQL server here; run: sudo apt-get install --yes postgresql")
    return Path(str(program)).parent


def _account() -> tuple[int, int] | None:
    """Return whom the server runs as: it refuses to run as root."""
    if os.getuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            return entry.pw_uid, entry.pw_gid
    unavailable("PostgreSQL does not run as root, and there is no account 'postgres' or 'nobody'")
    return None


class PostgresServer:
    """A PostgreSQL server on a loopback port of its own that can be stopped and started again."""

    def __init__(self, folder: Path) -> None:
        if importlib.util.find_spec("psycopg") is None:
            unavailable("psycopg is not installed; run: pip install 'discreet[postgres]'")
        import tempfile

        self._programs, account = _postgres_programs(), _account()
        # A folder of the server's own, with a short path: that of a socket is limited to 107 bytes.
        self.home = Path(tempfile.mkdtemp(prefix="discreet-pg-"))
        if account is not None:
            os.chown(self.home, *account)
        self._who = (
            {} if account is None else {"user": account[0], "group": account[1], "extra_groups": []}
        )
        self._log, self._port = folder / "postgres.log", free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"postgresql://postgres@127.0.0.1:{self._port}/postgres"
        made = subprocess.run(
            [
                *(self._programs / "initdb", "-D", self.home / "data", "-U", "postgres"),
                *("-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"),
            ],
            capture_output=True,
            cwd=self.home,
            timeout=120,
            **self._who,
        )
        if made.returncode != 0:
            unavailable(f"initdb failed: {made.stderr.decode()[-2000:]}")

    def start(self) -> None:
        """Start the server and wait until it takes sessions."""
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": self._port,
            "unix_socket_directories": self.home,
            "fsync": "off",
            "shared_buffers": "64MB",
            "max_connections": 20,
        }
        flags = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", self.home / "data", *flags],
                stdout=output,
                stderr=output,
                cwd=self.home,
                **self._who,
            )
        _wait(self._port, self._process, self._log, 60)
        _wait_for_postgres(self.url, 60)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop the server; SIGINT ends its sessions, SIGQUIT also leaves the disk as it is."""
        if self._process is not None:
            _stop([self._process], how)
            self._process = None

    def close(self) -> None:
        """Stop the server and remove its folder."""
        self.stop()
        shutil.rmtree(self.home, ignore_errors=True)


@contextlib.contextmanager
def postgres_server(folder: Path) -> Iterator[str]:
    """Run a PostgreSQL server on a random loopback port; yield its URL."""
    server = PostgresServer(folder)
    try:
        server.start()
        yield server.url
    finally:
        server.close()


def kill_sessions(url: str) -> int:
    """End every other session of a database, as an administrator or a crash would; count them."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as server:
        found = server.execute(
            "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity "  # and wait for its end
            "WHERE pid <> pg_backend_pid() AND datname = current_database()"
        ).fetchall()
    return len(found)


def _wait_for_postgres(address: str, seconds: float) -> None:
    """Wait until sessions are taken: the port is open while the server still starts up."""
    import psycopg

    end = time.monotonic() + seconds
    while True:
        try:
            psycopg.connect(address).close()
            return
        except psycopg.OperationalError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


# -- Spark -----------------------------------------------------------------------------------------
# A machine that lives for a minute: no second compiler, no collector's threads.
_SMALL = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-Xshare:auto"]

# What tests ask of Spark: few small tasks, no code generated for a handful of rows.
SPARK_OPTIONS = {
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.driver.memory": "512m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": " ".join(_SMALL),
    "spark.executor.extraJavaOptions": " ".join(_SMALL),
    "spark.default.parallelism": "2",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.shuffle.compress": "false",
    "spark.broadcast.compress": "false",
    "spark.locality.wait": "0",
}

# What Spark asks of Java's modules; its own scripts pass the same.
_OPENED = [
    f"--add-opens=java.base/{package}=ALL-UNNAMED"
    for package in (
        "java.lang",
        "java.lang.invoke",
        "java.lang.reflect",
        "java.io",
        "java.net",
        "java.nio",
        "java.util",
        "java.util.concurrent",
        "java.util.concurrent.atomic",
        "sun.nio.ch",
        "sun.nio.cs",
        "sun.security.action",
        "sun.util.calendar",
    )
]


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if program is None or not Path(program).exists():
        unavailable("no Java here; run: sudo apt-get install --yes default-jre-headless")
    return str(program)


def _scala_version(home: Path) -> str:
    library = next((home / "jars").glob("scala-library-*.jar"))
    return ".".join(library.stem.removeprefix("scala-library-").split(".")[:2])


@contextlib.contextmanager
def spark_cluster(folder: Path, *, memory: str = "640m") -> Iterator[str]:
    """Run a standalone Spark master and two workers on loopback; yield the master's URL.

    `memory` is what each worker may give to executors.
    """
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        unavailable("pyspark is not installed; run: pip install 'discreet[spark]'")
    java, home = _java(), Path(str(found.origin)).parent
    port = free_port()
    environment = os.environ | {
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_MASTER_HOST": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        # Spark's shell scripts say this; without it workers look for a source tree.
        "SPARK_SCALA_VERSION": _scala_version(home),
    }

    def launch(name: str, kind: str, *arguments: str) -> subprocess.Popen[bytes]:
        with (folder / f"{name}.log").open("wb") as output:
            return subprocess.Popen(
                [
                    java,
                    "-Xmx128m",
                    *_SMALL,
                    *_OPENED,
                    "-cp",
                    f"{home / 'jars'}/*",
                    f"org.apache.spark.deploy.{kind}.{kind.capitalize()}",
                    *arguments,
                ],
                stdout=output,
                stderr=output,
                env=environment,
                cwd=folder,
            )

    processes: list[subprocess.Popen[bytes]] = []
    url = f"spark://127.0.0.1:{port}"
    try:
        processes.append(
            launch(
                "master",
                "master",
                "--host",
                "127.0.0.1",
                "--port",
                str(port),
                "--webui-port",
                str(free_port()),
            )
        )
        _wait(port, processes[0], folder / "master.log", 60)
        for place in (1, 2):
            worker = launch(
                f"worker-{place}",
                "worker",
                "--host",
                "127.0.0.1",
                "--webui-port",
                str(free_port()),
                "--cores",
                "1",
                "--memory",
                memory,
                "--work-dir",
                str(folder / f"work-{place}"),
                url,
            )
            processes.append(worker)
        _registered(folder / "master.log", processes, 2, 60)
        yield url
    finally:
        _stop(processes, signal.SIGTERM)


def _registered(
    log: Path, processes: Sequence[subprocess.Popen[bytes]], workers: int, seconds: float
) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if log.read_text(errors="replace").count("Registering worker") >= workers:
            return
        if any(process.poll() is not None for process in processes):
            break
        time.sleep(0.05)
    unavailable(f"the Spark workers did not register:\n{log.read_text(errors='replace')[-2000:]}")


def _stop(processes: Sequence[subprocess.Popen[bytes]], how: signal.Signals) -> None:
    for process in reversed(processes):
        if process.poll() is None:
            process.send_signal(how)
    for process in processes:
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(20)
