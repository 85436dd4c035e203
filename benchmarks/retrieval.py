"""Private retrieval against reading memory: CPU seconds of one thread, best of five, interleaved.

Run `python benchmarks/retrieval.py [--rows 1048576] [--only kernels|threads|hint|keyword|load]`.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from discreet.protocols.retrieval.asking import Retrieval
from discreet.protocols.retrieval.hints import public_of
from discreet.protocols.retrieval.kernels.xor import total
from discreet.protocols.retrieval.lattice import DIMENSION
from discreet.protocols.retrieval.schemes._base import Public, Shape
from discreet.protocols.retrieval.schemes.chor import Chor
from discreet.protocols.retrieval.schemes.dpf import DPF
from discreet.protocols.retrieval.schemes.simple_pir import SimplePIR
from discreet.protocols.transport import Link, Message, connect
from discreet.randomness import Randomness

WIDTH = 1024
_LOOKUPS = 40


def cpu(work) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def kernels(rows: int) -> None:
    """Print the ratio of each answer to a linear read of the same array."""
    rng = Randomness.secure()
    # A copy: numpy asks for large pages, as a server that keeps its table in memory would.
    block = np.array(np.frombuffer(rng.bytes(rows * WIDTH), np.uint8)).reshape(rows, WIDTH)
    words = block.reshape(-1).view(np.uint64)
    shape = Shape(columns=rows, width=WIDTH)
    side = max(round((rows / WIDTH) ** 0.5), 1)
    square = Shape(columns=rows // side, width=WIDTH, rows=side)
    public = Public(
        bytes(16),
        np.zeros((square.rows * WIDTH, DIMENSION), np.uint32),
        np.zeros(square.columns, np.uint32),
    )
    chor = Chor().ask(shape, [rows // 3], rng=rng).questions[0]
    many = [Chor().ask(shape, [n], rng=rng).questions[0] for n in range(16)]
    dpf = DPF().ask(shape, [rows // 3], rng=rng).questions[0]
    lwe = SimplePIR().ask(square, [rows // 3], rng=rng, public=public).questions[0]
    matrix = block[: square.slots].reshape(-1, square.columns)
    works = {
        "linear read": lambda: total(words),
        "chor": lambda: Chor().answer(shape, block, [chor]),
        "dpf": lambda: DPF().answer(shape, block, [dpf]),
        "chor, batch of 16, per query": lambda: Chor().answer(shape, block, many),
        "simple-pir": lambda: SimplePIR().answer(square, matrix, [lwe]),
    }
    best = {name: cpu(work) * 0 + 1e9 for name, work in works.items()}  # the first run compiles
    for _ in range(5):
        for name, work in works.items():
            best[name] = min(best[name], cpu(work))
    best["chor, batch of 16, per query"] /= 16
    linear = best.pop("linear read")
    print(
        f"{rows:,} rows of {WIDTH} bytes; linear read {1000 * linear:.1f} ms, "
        f"{rows * WIDTH / linear / 1e9:.1f} GB per CPU s"
    )
    for name, seconds in best.items():
        print(f"{name} / linear read = {seconds / linear:.2f}   ({1000 * seconds:.1f} ms)")
    print(f"dpf question {len(dpf)} bytes, chor {len(chor):,}, simple-pir {len(lwe):,}")


def threads(rows: int) -> None:
    """Print how many more answers two threads give than one, by the clock."""
    from concurrent.futures import ThreadPoolExecutor

    rng = Randomness.secure()
    block = np.array(np.frombuffer(rng.bytes(rows * WIDTH), np.uint8)).reshape(rows, WIDTH)
    shape = Shape(columns=rows, width=WIDTH)
    question = Chor().ask(shape, [rows // 3], rng=rng).questions[0]

    def wall(workers: int) -> float:
        with ThreadPoolExecutor(workers) as pool:
            started = time.perf_counter()
            list(pool.map(lambda _: Chor().answer(shape, block, [question]), range(16)))
            return time.perf_counter() - started

    wall(1)
    one, two = (min(found) for found in zip(*((wall(1), wall(2)) for _ in range(5)), strict=True))
    print(
        f"chor, two threads / one = {one / two:.2f}   ({rows * WIDTH / 1e9:.2f} GB, by the clock)"
    )


def hint(rows: int) -> None:
    """Print what the hint of a table costs."""
    side = max(round((rows / WIDTH) ** 0.5), 1)
    columns = rows // side
    matrix = np.frombuffer(Randomness.secure().bytes(side * WIDTH * columns), np.int8)
    seconds = cpu(lambda: public_of(matrix.reshape(side * WIDTH, columns), bytes(16)))
    print(f"hint of {side * WIDTH:,} × {columns:,} = {seconds:.1f} CPU s, {peak():.2f} GB at most")


def keyword(rows: int) -> None:
    """Print what a look-up by key costs through two server processes over TLS."""
    import pandas as pd

    from discreet.app.policy.access import permitted_policy
    from discreet.app.policy.run import open_source
    from discreet.protocols.retrieval.signing import Publisher
    from discreet.protocols.retrieval.table import RetrievalTable

    folder = Path(tempfile.mkdtemp())
    people = pd.DataFrame({"id": np.arange(rows) * 7, "name": [f"person {n}" for n in range(rows)]})
    people.to_parquet(folder / "people.parquet")
    ports = _ports()
    _policy(folder, ports)
    policy, _ = permitted_policy(folder / "policy.yaml")
    service = policy.retrieval["people"]
    signed = Publisher(bytes(32))
    signing = rows * min(cpu(lambda: signed.sign(bytes(100))) for _ in range(200))
    spent = cpu(lambda: service.build(open_source(policy), folder, name="people"))
    print(f"built in {spent:.1f} CPU s, of which about {signing:.1f} s signing; {peak():.2f} GB")
    servers = _servers(folder, script="retrieval_server.py")
    try:
        _await(ports)
        table = RetrievalTable.open(service.place(folder, "people"))
        part = table.statement.part("main")
        _read_apart(np.array(table.block(part, "filter", "xor")).view(np.uint64))
        for scheme in ("chor", "dpf"):
            with service.asking(folder, name="people", scheme=scheme) as retrieval:
                _look_up(retrieval, rows)
                with _at_once([one.pid for one in servers]):
                    _look_up(retrieval, rows)
        many = min(1000, rows // 2, part.delta)
        changed = people.head(many).assign(name="changed")
        key = folder / "publisher.key"
        with service.asking(folder, name="people") as retrieval:
            assert retrieval.get(7)["name"] == "person 1"
            before = [_spent(one.pid) for one in servers]
            spent, looked, started = (
                cpu(lambda: table.update(changed, publisher=key, publishable=True)),
                0,
                time.time(),
            )
            while retrieval.get(7)["name"] != "changed":
                looked += 1
                time.sleep(0.1)
            served = [_spent(one.pid) - held for one, held in zip(servers, before, strict=True)]
            print(
                f"update of {many:,} rows in {spent:.2f} CPU s; seen {time.time() - started:.1f} s "
                f"later, after {looked} look-ups of the old version through the switch, none failed; "
                f"server {max(served):.2f} CPU s meanwhile"
            )
            for n in range(0, many, 50):
                assert retrieval.get(7 * n)["name"] == "changed"
    finally:
        for one in servers:
            one.terminate()
            one.wait()
        shutil.rmtree(folder)


def _read_apart(held: np.ndarray) -> None:
    """Print what the client takes to read the filter, without pauses and with nobody else at work."""
    total(held)
    apart = min(cpu(lambda: total(held)) for _ in range(5))
    print(f"a read of the filter by the client alone, best of five: {1000 * apart:.1f} ms")


@contextlib.contextmanager
def _at_once(pids: list[int]) -> Iterator[None]:
    """Give each server a processor of its own, so that they run at once as on an idle machine.

    That needs real-time priority, which root has; without it nothing changes.
    """
    everywhere = os.sched_getaffinity(0)
    try:
        for number, pid in enumerate(pids):
            _schedule(pid, os.SCHED_FIFO, 5, {number})
        print("both servers at once, at real-time priority:")
    except PermissionError as error:
        print(f"not at real-time priority: {error}")
    try:
        yield
    finally:
        for pid in pids:
            _schedule(pid, os.SCHED_OTHER, 0, everywhere)


def _schedule(pid: int, policy: int, priority: int, processors: set[int]) -> None:
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(ProcessLookupError):  # it ended meanwhile
            os.sched_setscheduler(int(thread.name), policy, os.sched_param(priority))
            os.sched_setaffinity(int(thread.name), processors)


def _look_up(retrieval: Retrieval, rows: int) -> None:
    """Print what look-ups cost both servers, each followed by a read of the filter by both at once."""
    retrieval.get(7)  # connects, compiles
    links = [
        connect(address, pin=retrieval._pins[n]) for n, address in enumerate(retrieval.servers)
    ]
    told = _read_filters(links)
    up, down = retrieval.sent, retrieval.received
    client, walls, spent, read = [], [], [], []
    for n in range(_LOOKUPS):
        started, at = time.perf_counter(), time.process_time()
        assert retrieval.get(7 * (n * 997 % rows)) is not None
        client.append(time.process_time() - at)
        walls.append(time.perf_counter() - started)
        before, told = told, _read_filters(links)
        pairs = list(zip(before, told, strict=True))
        spent.append([now["before"] - last["after"] for last, now in pairs])
        read.append([now["after"] - now["before"] for _, now in pairs])
        served = max(now["wall"] - last["wall"] for last, now in pairs)
        walls[-1] /= served
    for link in links:
        link.close()
    each = 2 * _LOOKUPS
    print(
        f"keyword, {retrieval.scheme.name}: client {1000 * min(client):.1f} ms, "
        f"end to end / server by the clock = {np.median(walls):.2f}, "
        f"up {(retrieval.sent - up) // each:,} B and "
        f"down {(retrieval.received - down) // each:,} B per server"
    )
    for server, (asked, linear) in enumerate(zip(np.array(spent).T, np.array(read).T, strict=True)):
        fives = [asked[n : n + 5].min() / linear[n : n + 5].min() for n in range(0, _LOOKUPS, 5)]
        print(
            f"  server {server + 1}: best {1000 * asked.min():.1f} ms, read {1000 * linear.min():.1f} ms; "
            f"median {1000 * np.median(asked):.1f} ms, read {1000 * np.median(linear):.1f} ms; "
            f"server / linear read of the filter = {np.median(asked) / np.median(linear):.2f} by medians; "
            f"best of five, {len(fives)} times: {min(fives):.2f} to {max(fives):.2f}"
        )


def _read_filters(links: list[Link]) -> list[Mapping[str, float]]:
    """Let all servers read their filter at once, after the pause that clients make."""
    time.sleep(0.004)
    for link in links:
        link.send(Message("read"))
    return [link.receive("read").fields for link in links]


def load(rows: int) -> None:
    """Print what 16 clients get of two server processes, against the kernel alone."""
    import threading

    import pandas as pd

    from discreet.app.policy.access import permitted_policy
    from discreet.app.policy.run import open_source
    from discreet.protocols.retrieval.table import RetrievalTable

    rows = min(rows, 1 << 18)
    seconds = float(os.environ.get("DISCREET_LOAD_SECONDS", "300"))
    with tempfile.TemporaryDirectory() as place:
        folder, ports = Path(place), _ports()
        people = pd.DataFrame(
            {"id": np.arange(rows) * 7, "name": [f"person {n}" for n in range(rows)]}
        )
        people.to_parquet(folder / "people.parquet")
        _policy(folder, ports, ", rate: 100000")
        policy, _ = permitted_policy(folder / "policy.yaml")
        service = policy.retrieval["people"]
        service.build(open_source(policy), folder, name="people")
        servers = _servers(folder)
        failed, done = [], [0] * 16
        try:
            _await(ports)
            with service.asking(folder, name="people") as retrieval:
                retrieval.get(7)
                before = [_spent(one.pid) for one in servers]
                until = time.monotonic() + seconds

                def work(number: int) -> None:
                    drawn = np.random.default_rng(number)
                    with service.asking(folder, name="people") as own:
                        while time.monotonic() < until:
                            n = int(drawn.integers(rows))
                            try:
                                right = own.get(7 * n)["name"] == f"person {n}"
                            except Exception as error:  # every failure counts, whatever it is
                                right = False
                                failed.append(repr(error))
                            done[number] += right

                threads = [threading.Thread(target=work, args=(n,)) for n in range(16)]
                for one in threads:
                    one.start()
                for one in threads:
                    one.join()
                told = retrieval._request(0, "metrics", {}, limit=0).fields
                spent = [_spent(one.pid) - held for one, held in zip(servers, before, strict=True)]
        finally:
            for one in servers:
                one.terminate()
                one.wait()
        table = RetrievalTable.open(service.place(folder, "people"))
        part = table.statement.part("main")
        shape = part.shapes("xor")["filter"]
        held = np.array(table.block(part, "filter", "xor"))
        together = max(round(told["questions"] / told["passes"]), 1)
        rng = Randomness.secure()
        slots = [n * shape.segment for n in range(3)]
        asked = [DPF().ask(shape, slots, rng=rng).questions[0] for _ in range(together)]
        DPF().answer(shape, held, asked)
        kernel = min(cpu(lambda: DPF().answer(shape, held, asked)) for _ in range(5)) / together
        each = sum(spent) / 2 / sum(done)
        print(
            f"load: {sum(done):,} look-ups of 16 clients in {seconds:.0f} s, {len(failed)} failed; "
            f"{told['questions'] / told['passes']:.1f} questions in a pass; server "
            f"{1000 * each:.2f} CPU ms for each, kernel alone {1000 * kernel:.2f}: "
            f"throughput / kernel alone = {kernel / each:.2f}"
        )
        print(*failed[:3], sep="\n")


def _policy(folder: Path, ports: list[int], more: str = "") -> None:
    (folder / "policy.yaml").write_text(
        f"""
data: {{source: people.parquet, roles: {{id: other, name: other}}}}
retrieval:
  - {{name: people, kind: retrieval-table, key: id, columns: [name], width: {WIDTH}{more},
      servers: {{a: "127.0.0.1:{ports[0]}", b: "127.0.0.1:{ports[1]}"}}}}
""",
        encoding="utf-8",
    )


def _servers(folder: Path, script: str | None = None) -> list[subprocess.Popen]:
    policy = str(folder / "policy.yaml")
    command = [sys.executable, "-m", "discreet", "retrieve", "serve", policy, "--server"]
    if script is not None:
        command = [sys.executable, str(Path(__file__).with_name(script)), policy]
    return [subprocess.Popen([*command, name], stderr=subprocess.DEVNULL) for name in "ab"]


def _spent(pid: int) -> float:
    """Return the CPU seconds of a process so far."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _ports() -> list[int]:
    import socket

    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def _await(ports: list[int]) -> None:
    import socket

    for port in ports:
        for _ in range(600):
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                time.sleep(0.1)


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1 << 20)
    parts = {one.__name__: one for one in (kernels, threads, hint, keyword, load)}
    parser.add_argument("--only", choices=parts)
    given = parser.parse_args()
    for name, work in parts.items():
        if given.only in (None, name):
            work(given.rows)


if __name__ == "__main__":
    main()
