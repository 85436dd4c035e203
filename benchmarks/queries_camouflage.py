"""Camouflage against the raw aggregate on the same rows, in CPU time; and widths.

Run ``python benchmarks/queries_camouflage.py --rows 1000000``. Each statement is answered by the
engine, as it is where records are told apart by most of their columns, and from profiles, as it
is where they are few (here, 2,880).
"""

from __future__ import annotations

import argparse
import resource
import statistics

from queries_perturbation import cpu, table

import discreet as dc
from discreet.data.sql import parse
from discreet.queries.guards import _profiles
from discreet.queries.guards._base import aggregate

STATEMENTS = {
    "filtered SUM": "SELECT SUM(salary) FROM people WHERE age BETWEEN 30 AND 50 AND sex = 'f'",
    "filtered AVG": "SELECT AVG(salary) FROM people WHERE sector = 's3'",
    "GROUP BY AVG": "SELECT sector, AVG(salary) FROM people GROUP BY sector",
    "VARIANCE": "SELECT VARIANCE(salary) FROM people WHERE sex = 'f'",
    "MAX": "SELECT MAX(salary) FROM people WHERE sex = 'f'",
}


def main(rows: int, times: int) -> None:
    people = dc.read(
        table(rows), roles={"salary": "confidential"}, rest="quasi", name="people"
    ).materialize()
    guard = dc.Camouflage(bound=0.3)
    _profiles.QUESTIONS = 10**9  # only where `prepare` asks for them
    with dc.Gateway(people, guard=guard) as gate, dc.Gateway(people, guard=guard) as prepared:
        keeper = gate._keeper(guard)
        prepared.prepare()
        ready = prepared._keeper(guard)
        for name, sql in STATEMENTS.items():
            query = parse(sql, gate.catalog)
            columns = {f"m{n}": aggregate(m) for n, m in enumerate(query.measures)}
            raw = cpu(lambda _, q=query, c=columns: gate.data.fetch(q, c), times)
            ours = cpu(lambda _, q=query: keeper.answer(q, "u"), times)
            short = cpu(lambda _, q=query: ready.answer(q, "u"), times)
            answer = gate.ask(sql)
            ends = [c.to_pylist() for c in answer.table.columns[-2:]]
            width = statistics.fmean((b - a) / abs((a + b) / 2) for a, b in zip(*ends, strict=True))
            print(f"{name}: raw {raw:.2f} ms, engine {ours:.2f} ms ({ours / raw:.2f}×), "
                  f"profiles {short:.2f} ms ({short / raw:.2f}×), relative width {width:.4f}")  # fmt: skip
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(f"peak memory {peak:,.0f} MB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=11)
    given = parser.parse_args()
    main(given.rows, given.times)
