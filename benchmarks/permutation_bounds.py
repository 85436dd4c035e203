"""How long a query with bounds takes, as rewritten SQL and in memory, beside the raw aggregate.

    python benchmarks/permutation_bounds.py [--records 1000000] [-e 1000]

Every query is run in turn as the raw SQL on the original table, as the rewritten SQL on the release
(both tables of the same DuckDB) and in memory; ratios are of the least CPU time, and of the least
time on the clock.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable

import sqlglot
from permutation_publish import population

import discreet as dc

QUERIES = (
    "SELECT AVG(pay) AS a FROM people WHERE age BETWEEN 30 AND 39",
    "SELECT SUM(pay) AS a, COUNT(*) AS n FROM people WHERE region < 10",
    "SELECT MIN(pay) AS a, MAX(pay) AS b FROM people WHERE sex = 'f'",
    "SELECT AVG(pay) AS a FROM people WHERE age > 60 AND (sex = 'm' OR region IN (1, 2, 3))",
    "SELECT AVG(pay) AS a FROM people",
    "SELECT sex, AVG(pay) AS a FROM people GROUP BY sex",
    "SELECT region, SUM(pay) AS a FROM people WHERE age < 50 GROUP BY region",
)


def least(call: Callable[[], object], repeat: int) -> tuple[float, float]:
    cpu = clock = float("inf")
    for _ in range(repeat):
        wall, start = time.perf_counter(), time.process_time()
        call()
        cpu = min(cpu, time.process_time() - start)
        clock = min(clock, time.perf_counter() - wall)
    return cpu, clock


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--records", type=int, default=1_000_000)
    options.add_argument("-k", type=int, default=5)
    options.add_argument("-e", type=float, default=1000.0)
    options.add_argument("--repeat", type=int, default=7)
    given = options.parse_args()
    table = population(given.records)
    roles = {"age": "quasi", "sex": "quasi", "region": "quasi", "pay": "confidential"}
    people = dc.read(table, roles=roles, name="people")
    safe = dc.permute(people, sensitive="pay", k=given.k, e=given.e, attack=False)
    original = people.engine.materialize(people.relation)  # a table of the engine, as the release
    print(f"{given.records:,} records, {safe.facts.groups:,} groups; milliseconds CPU (clock)")
    print(f"{'raw':>14} {'rewritten':>14} {'ratio':>13} {'memory':>14} {'ratio':>13}  query")
    for query in QUERIES:
        tree = sqlglot.parse_one(query, read="duckdb")
        raw = least(lambda t=tree: people.engine.aggregate(t, {"people": original}), given.repeat)
        safe.ask(query, path="engine")
        engine = least(lambda q=query: safe.ask(q, path="engine"), given.repeat)
        safe.ask(query, path="memory")
        memory = least(lambda q=query: safe.ask(q, path="memory"), given.repeat)
        print(
            f"{shown(raw)} {shown(engine)} {ratio(engine, raw)} {shown(memory)} {ratio(memory, raw)}"
            f"  {query}"
        )
    print(f"memory peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GB")


def shown(times: tuple[float, float]) -> str:
    return f"{times[0] * 1000:6.1f} ({times[1] * 1000:5.0f})"


def ratio(times: tuple[float, float], raw: tuple[float, float]) -> str:
    return f"{times[0] / raw[0]:5.2f} ({times[1] / raw[1]:5.2f})"


if __name__ == "__main__":
    main()
