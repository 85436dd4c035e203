"""Decisions of the restriction guard over a long history, and the known attacks.

Run ``python benchmarks/queries_restriction.py --rows 1000000 --mixed 1000 --categorical 10000``.
Prints decision latency (CPU and wall) after the history, memory, and shares refused.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time

import numpy as np
import pyarrow as pa

import discreet as dc


def people(rows: int, seed: int) -> dc.Dataset:
    rng = np.random.default_rng(seed)
    table = pa.table(
        {
            "sector": pa.array(np.char.add("s", rng.integers(0, 20, rows).astype(str))),
            "region": pa.array(np.char.add("r", rng.integers(0, 50, rows).astype(str))),
            "sex": pa.array(np.where(rng.random(rows) < 0.5, "f", "m")),
            "age": pa.array(rng.integers(18, 90, rows)),
            "salary": pa.array(np.round(rng.lognormal(10.3, 0.6, rows)).astype(np.int64)),
        }
    )
    roles = dict.fromkeys(("sector", "region", "sex", "age"), "quasi")
    return dc.read(table, roles={**roles, "salary": "confidential"}, name="people")


def condition(rng: np.random.Generator, *, ranges: bool) -> str:
    parts = []
    if rng.random() < 0.6:
        parts.append(f"sector = 's{rng.integers(0, 20)}'")
    if rng.random() < 0.5:
        parts.append(f"region = 'r{rng.integers(0, 50)}'")
    if rng.random() < 0.4:
        parts.append(f"sex = '{'fm'[rng.integers(0, 2)]}'")
    if ranges and rng.random() < 0.7:
        low = int(rng.integers(18, 80))
        parts.append(f"age BETWEEN {low} AND {low + int(rng.integers(1, 40))}")
    return " AND ".join(parts) or "sex = 'f'"


def run(rows: int, history: int, probes: int, *, ranges: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = people(rows, seed)
    started = time.perf_counter()
    gate = dc.Gateway(data, guard=dc.Restriction(k=5))
    keeper = gate._keeper(gate.guard)
    print(f"opened in {time.perf_counter() - started:.1f} s")
    answered = asked = 0
    from discreet.data.sql import parse

    def decide(sql: str) -> tuple[bool, float, float]:
        query = parse(sql, gate.catalog)
        wall, cpu = time.perf_counter(), time.process_time()
        inside = keeper._profiles.inside(query)
        decided = keeper._decide(query, inside)
        if decided is not None:
            keeper._accept(decided)
        return decided is not None, time.perf_counter() - wall, time.process_time() - cpu

    begun = time.perf_counter()
    while answered < history and asked < 3 * history:
        ok, _, _ = decide(f"SELECT SUM(salary) FROM people WHERE {condition(rng, ranges=ranges)}")
        asked += 1
        answered += ok
    auditor = keeper.auditors["salary"]
    print(
        f"history: {asked:,} asked, {answered:,} answered, {auditor.atoms:,} atoms, "
        f"rank {auditor.rank:,}, {auditor.bytes() / 1e6:.0f} MB, "
        f"{time.perf_counter() - begun:.0f} s"
    )
    measured = [
        decide(f"SELECT SUM(salary) FROM people WHERE {condition(rng, ranges=ranges)}")
        for _ in range(probes)
    ]
    for name, place in (("wall", 1), ("cpu", 2)):
        times = sorted(m[place] * 1e3 for m in measured)
        print(
            f"decision {name}: median {statistics.median(times):.1f} ms, "
            f"p99 {times[int(0.99 * len(times))]:.1f} ms"
        )
    refused = 1 - sum(m[0] for m in measured) / len(measured)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(f"honest questions refused: {refused:.1%}; peak memory {peak:,.0f} MB")
    gate.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--mixed", type=int, default=200)
    parser.add_argument("--categorical", type=int, default=500)
    parser.add_argument("--probes", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if given.mixed:
        print(f"mixed equality and ranges, {given.rows:,} rows")
        run(given.rows, given.mixed, given.probes, ranges=True, seed=given.seed)
    if given.categorical:
        print(f"categorical, {given.rows:,} rows")
        run(given.rows, given.categorical, given.probes, ranges=False, seed=given.seed)
