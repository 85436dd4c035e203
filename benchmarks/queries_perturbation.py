"""Noisy GROUP BY against raw DuckDB on the same rows, in CPU time.

Run ``python benchmarks/queries_perturbation.py --rows 1000000``. Prints the ratio per statement
and the mean absolute error against the ideal mechanism at the same ε.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time
from collections.abc import Callable

import duckdb
import numpy as np
import pyarrow as pa

import discreet as dc
from discreet.queries.guards import _profiles

STATEMENTS = {
    "COUNT": "SELECT COUNT(*) FROM people",
    "GROUP BY COUNT, SUM, AVG": (
        "SELECT sector, COUNT(*), SUM(salary), AVG(salary) FROM people GROUP BY sector"
    ),
    "filtered AVG": "SELECT AVG(salary) FROM people WHERE age BETWEEN 30 AND 50 AND sex = 'f'",
}


def table(rows: int) -> pa.Table:
    rng = np.random.default_rng(1)
    return pa.table(
        {
            "sector": pa.array(np.char.add("s", rng.integers(0, 20, rows).astype(str))),
            "sex": pa.array(np.where(rng.random(rows) < 0.5, "f", "m")),
            "age": pa.array(rng.integers(18, 90, rows)),
            "salary": pa.array(
                np.clip(np.round(rng.lognormal(10.3, 0.6, rows)), 0, 500_000).astype(np.int64)
            ),
        }
    )


def cpu(run: Callable[[int], object], times: int) -> float:
    run(-1)
    taken = []
    for number in range(times):
        started = time.process_time()
        run(number)
        taken.append(time.process_time() - started)
    return statistics.median(taken) * 1e3


def main(rows: int, times: int) -> None:
    data = table(rows)
    raw = duckdb.connect()
    raw.register("arrow_people", data)
    raw.execute("CREATE TABLE people AS SELECT * FROM arrow_people")
    guard = dc.Perturbation(
        epsilon=1e6,
        per_query=1.0,
        bounds={"salary": (0, 500_000)},
        keys={"sector": tuple(f"s{n}" for n in range(20))},
        complete=("salary",),
    )
    people = dc.read(
        data, roles={"salary": "confidential"}, rest="quasi", name="people"
    ).materialize()
    _profiles.QUESTIONS = 10**9  # only where `prepare` asks for them
    with dc.Gateway(people, guard=guard) as gate, dc.Gateway(people, guard=guard) as prepared:
        prepared.prepare()
        for name, sql in STATEMENTS.items():
            base = cpu(lambda _, sql=sql: raw.sql(sql).to_arrow_table(), times)
            # Each user asks once: a repeated question would come from the ledger.
            ours = cpu(lambda n, sql=sql: gate.ask(sql, user=f"u{n}{sql}"), times)
            short = cpu(lambda n, sql=sql: prepared.ask(sql, user=f"u{n}{sql}"), times)
            keeper = gate._keeper(guard)
            from discreet.data.sql import parse

            query = parse(sql, gate.catalog)
            alone = cpu(lambda _, query=query, keeper=keeper: keeper.answer(query, "u"), times)
            print(
                f"{name}: raw {base:.2f} ms, gateway {ours:.2f} ms ({ours / base:.2f}×), "
                f"of which engine and noise {alone:.2f} ms; "
                f"from profiles {short:.2f} ms ({short / base:.2f}×)"
            )
        for name, sql, ideal in (
            ("COUNT", "SELECT COUNT(*) FROM people", 0.851),
            ("SUM", "SELECT SUM(salary) FROM people", 500_000.0),
        ):
            truth = raw.execute(sql).fetchone()[0]
            errors = [
                abs(gate.ask(sql, user=f"e{n}{name}").value() - truth) for n in range(20 * times)
            ]
            mean = statistics.fmean(errors)
            print(f"{name}: mean absolute error {mean:,.3f}, ideal {ideal:,.3f}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(f"peak memory {peak:,.0f} MB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=15)
    given = parser.parse_args()
    main(given.rows, given.times)
