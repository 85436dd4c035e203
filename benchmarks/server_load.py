"""Load over the wire: repeated questions against a constant, fresh ones against raw DuckDB.

Run as `python benchmarks/server_load.py [--rows 1000000] [--seconds 10] [--connections 64]`. With
`--distinct`, records have one more public column that tells nearly all of them apart, so that no
guard can answer from sums over records that questions do not tell apart. The server runs in a process of its own, the clients in another. Prints rates, ratios and the server's
memory peak.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import multiprocessing
import random
import resource
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

PASSWORD = "benchmark-only"
REPEATED = "SELECT sex, COUNT(*) AS n, AVG(salary) AS mean FROM people GROUP BY sex"


def statements(count: int, seed: int = 1) -> list[str]:
    """Different questions of the kind people ask."""
    chance = random.Random(seed)
    found: dict[str, None] = {}
    while len(found) < count:
        low = chance.randint(16, 70)
        high = low + chance.randint(5, 30)
        key = chance.choice(("sex", "education", "sector"))
        what = chance.choice(("COUNT(*)", "SUM(salary)", "AVG(salary)"))
        where = f"age BETWEEN {low} AND {high}"
        if chance.random() < 0.5:
            where += f" AND sex = '{chance.choice(('female', 'male'))}'"
        found[f"SELECT {key}, {what} AS x FROM people WHERE {where} GROUP BY {key}"] = None
    return list(found)


def server(kind: str, place: str, ready: Any, warmed: Any, stop: Any) -> None:
    """One server process: `constant`, or a gateway under a guard."""
    asyncio.run(_serve(kind, place, ready, warmed, stop))


async def _serve(kind: str, place: str, ready: Any, warmed: Any, stop: Any) -> None:
    import discreet as dc
    from discreet.app.server.certificate import make_certificate
    from discreet.app.server.desk import Rate, User
    from discreet.app.server.gateways import Desk
    from discreet.app.server.metrics import Metrics
    from discreet.app.server.postgres.scram import make_verifier
    from discreet.app.server.postgres.server import PostgresServer, tls_context
    from discreet.app.server.postgres.session import Setting
    from discreet.app.server.run import ServerSettings

    folder = Path(tempfile.mkdtemp(prefix="discreet-load-"))
    certificate, key = make_certificate(folder)
    user = User("ana", ("analyst",), scram=str(make_verifier(PASSWORD, iterations=4096)))
    if kind == "constant":
        speaker: Any = Constant()
    else:
        people = dc.read(
            f"duckdb:///{place}#people",
            name="people",
            roles={"salary": "confidential", **dict.fromkeys(("age", "sex", "education", "sector"), "quasi"),
                   **({"plot": "quasi"} if "distinct" in place else {})},
        )  # fmt: skip
        guards = {
            "restriction": dc.Restriction(k=5),
            "camouflage": dc.Camouflage(bound=0.3),
            "perturbation": dc.Perturbation(epsilon=1e6, per_query=0.5, bounds={"salary": (0, 1_000_000)}, complete=("salary",)),
        }  # fmt: skip
        for mark in Path(place).parent.glob(f"{Path(place).name}*.ledger-mark"):
            mark.unlink()  # the guard before this one had a ledger of its own, and is no more
        gate = dc.Gateway(people, guard=guards[kind], ledger=folder / "ledger.db")
        gate.prepare()  # as `discreet serve` does
        speaker = Desk({"people": gate}, rate=Rate(1e9, 10**9), metrics=Metrics())
    setting = Setting(
        speaker,
        {"ana": user},
        ThreadPoolExecutor(ServerSettings().threads),
        tls_context(certificate, key),
    )
    listening = PostgresServer(setting)
    await listening.start()
    ready.put(listening.port)
    while not warmed.is_set() and not stop.is_set():
        await asyncio.sleep(0.01)
    before = resource.getrusage(resource.RUSAGE_SELF)
    while not stop.is_set():
        await asyncio.sleep(0.1)
    await listening.stop()
    usage = resource.getrusage(resource.RUSAGE_SELF)
    cpu = usage.ru_utime + usage.ru_stime - before.ru_utime - before.ru_stime
    ready.put({"cpu": cpu, "peak_mb": usage.ru_maxrss / 1024})


class Constant:
    """Answers at once, without data."""

    def __init__(self) -> None:
        import pyarrow as pa

        from discreet.app.server.desk import Reply

        table = pa.table({"sex": ["female", "male"], "n": [5, 6], "mean": [1.5, 2.5]})
        self._reply = Reply(table, "exact", ("exact",))

    def recall(self, *_: Any, **__: Any) -> Any:
        """Return the constant."""
        return self._reply

    ask = recall


async def clients(
    port: int, connections: int, seconds: float, texts: Any, warmed: Any, warm: str = ""
) -> dict[str, float]:
    """Ask from many connections for some seconds; return answers, failures, rate, latencies."""
    import psycopg

    address = f"host=127.0.0.1 port={port} user=ana password={PASSWORD} dbname=d sslmode=require"
    opened = [
        await psycopg.AsyncConnection.connect(address, autocommit=True) for _ in range(connections)
    ]
    if warm:  # asked once before, as a repeated question has been
        await (await opened[0].execute(warm)).fetchall()
    warmed.set()
    times: list[float] = []
    refused = failed = 0
    end = time.monotonic() + seconds

    async def one(client: Any) -> None:
        nonlocal refused, failed
        while time.monotonic() < end:
            sql = next(texts, None)
            if sql is None:
                return
            started = time.perf_counter()
            try:
                await (await client.execute(sql)).fetchall()
            except psycopg.errors.InsufficientPrivilege:
                refused += 1
            except psycopg.Error:
                failed += 1
            times.append(time.perf_counter() - started)

    started = time.monotonic()
    await asyncio.gather(*(one(client) for client in opened))
    elapsed = time.monotonic() - started
    for client in opened:
        await client.close()
    times.sort()
    return {
        "answers": len(times), "refused": refused, "failed": failed,
        "rate": round(len(times) / elapsed, 1),
        "median_ms": round(times[len(times) // 2] * 1e3, 2), "p99_ms": round(times[len(times) * 99 // 100] * 1e3, 2),
    }  # fmt: skip


def measure(
    kind: str, place: str, connections: int, seconds: float, texts: Any, warm: str = ""
) -> dict[str, Any]:
    """Start a server, load it, and stop it."""
    context = multiprocessing.get_context("spawn")
    ready, warmed, stop = context.Queue(), context.Event(), context.Event()
    process = context.Process(target=server, args=(kind, place, ready, warmed, stop))
    process.start()
    found = asyncio.run(clients(ready.get(timeout=300), connections, seconds, texts, warmed, warm))
    stop.set()
    found |= {name: round(value, 3) for name, value in ready.get(timeout=60).items()}
    found["cpu_ms_per_answer"] = round(found["cpu"] / max(found["answers"], 1) * 1e3, 3)
    process.join(60)
    return found


def raw(place: str, connections: int, seconds: float, texts: list[str]) -> dict[str, Any]:
    """Measure what DuckDB itself sustains on the same statements from as many threads."""
    import duckdb

    database = duckdb.connect(place, read_only=True)
    given, lock, times = iter(texts), threading.Lock(), []
    end = time.monotonic() + seconds

    def one(_: int) -> None:
        cursor = database.cursor()
        while time.monotonic() < end:
            with lock:
                sql = next(given, None)
            if sql is None:
                return
            started = time.perf_counter()
            cursor.execute(sql).fetchall()
            times.append(time.perf_counter() - started)

    started, cpu = time.monotonic(), time.process_time()
    with ThreadPoolExecutor(connections) as pool:
        list(pool.map(one, range(connections)))
    elapsed = time.monotonic() - started
    cpu = time.process_time() - cpu
    database.close()
    each = round(cpu / len(times) * 1e3, 3)
    return {
        "answers": len(times),
        "rate": round(len(times) / elapsed, 1),
        "cpu_ms_per_answer": each,
    }


def prepare(rows: int, *, distinct: bool = False) -> str:
    """Write the population into a DuckDB file."""
    import duckdb

    from discreet.demo.people import population_arrow

    name = "distinct" if distinct else "people"
    place = f"{tempfile.mkdtemp(prefix='discreet-load-')}/{name}.db"
    people = population_arrow(rows).select(["age", "sex", "education", "sector", "salary"])
    with duckdb.connect(place) as database:
        database.register("given", people)
        plot = ", (hash(rowid) % 50000)::INTEGER AS plot" if distinct else ""
        database.execute("CREATE TABLE read AS SELECT * FROM given")
        database.execute(f"CREATE TABLE people AS SELECT *{plot} FROM read")
        database.execute("DROP TABLE read")
    return place


def repeated_against_constant(place: str, guard: str, load: tuple[int, float], rounds: int) -> None:
    """Print what a repeated question takes beside a constant; in turns, as the machine's load changes."""
    both: dict[str, list[dict[str, Any]]] = {"constant": [], "repeated": []}
    for _ in range(rounds):
        for what, kind, warm in (("constant", "constant", ""), ("repeated", guard, REPEATED)):
            found = measure(kind, place, *load, itertools.repeat(REPEATED), warm)
            print(what, json.dumps(found), flush=True)
            both[what].append(found)
    rates = {what: sum(one["rate"] for one in found) for what, found in both.items()}
    each = {
        what: sum(one["cpu"] for one in found) / sum(one["answers"] for one in found)
        for what, found in both.items()
    }
    print(
        f"  repeated / constant = {rates['repeated'] / rates['constant']:.2f}, "
        f"by CPU time {each['constant'] / each['repeated']:.2f} (required: 0.85)"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--guards", default="perturbation,camouflage,restriction")
    parser.add_argument("--rounds", type=int, default=1, help="turns of constant and repeated")
    parser.add_argument("--distinct", action="store_true")
    options = parser.parse_args()
    place = prepare(options.rows, distinct=options.distinct)
    load = (options.connections, options.seconds)
    first = options.guards.split(",")[0]
    repeated_against_constant(place, first, load, options.rounds)
    texts = statements(4000)
    for guard in options.guards.split(","):
        fresh = measure(guard, place, *load, iter(texts), REPEATED)
        print("fresh", guard, json.dumps(fresh))
        base = raw(place, *load, texts[: max(fresh["answers"], 100)])
        print("raw DuckDB", json.dumps(base))
        by_cpu = base["cpu_ms_per_answer"] / fresh["cpu_ms_per_answer"]
        print(
            f"  fresh / raw = {fresh['rate'] / base['rate']:.2f}, by CPU time {by_cpu:.2f} "
            "(required at 1,000,000 rows: 0.60)",
            flush=True,
        )


if __name__ == "__main__":
    main()
