"""Measure whether the time of a refusal tells something of confidential values.

Run as `python benchmarks/refusal_timing.py [--rows 20000] [--rounds 30]`. Two databases have the
same persons and differ only in every salary. The same history is answered on both, then the same
refused questions are put to both, in turn and in random order. Prints the medians of CPU time, the
Kolmogorov-Smirnov distance between the two distributions with its p-value, and, as a control, the
same between two halves of one database's times.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from typing import Any

HISTORY = [
    "SELECT SUM(salary) FROM people",
    "SELECT sex, SUM(salary) FROM people GROUP BY sex",
    "SELECT education, AVG(salary) FROM people GROUP BY education",
    "SELECT COUNT(*) FROM people WHERE age BETWEEN 30 AND 60",
]


def refused_questions(count: int) -> list[str]:
    """Return questions about very few persons, and some about confidential conditions."""
    found = []
    for number in range(count):
        age, sex = 16 + number % 60, ("female", "male")[number % 2]
        occupation = f"occupation = 'none-{number}'"
        found.append(
            f"SELECT SUM(salary) FROM people WHERE age = {age} AND sex = '{sex}' AND {occupation}"
        )
        found.append(f"SELECT COUNT(*) FROM people WHERE salary > {1000 * number}")
    return found


def gateways(rows: int) -> list[Any]:
    """Return the same persons with two different sets of salaries, under the same guard."""
    import numpy as np
    import pyarrow as pa

    import discreet as dc
    from discreet.demo.people import population_arrow

    people = population_arrow(rows).select(["sex", "education", "occupation", "age", "salary"])
    place = people.column_names.index("salary")
    other = people.set_column(
        place, "salary", pa.array(np.random.default_rng(7).lognormal(12, 2, rows).astype("int64"))
    )
    roles = {
        "salary": "confidential",
        **dict.fromkeys(("sex", "education", "occupation", "age"), "quasi"),
    }
    made = []
    for table in (people, other):
        gate = dc.Gateway(dc.read(table, name="people", roles=roles), guard=dc.Restriction(k=5))
        for sql in HISTORY:
            gate.ask(sql, user="history")
        made.append(gate)
    return made


def main() -> None:
    """Measure and print."""
    from scipy.stats import ks_2samp

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    pair, chance = gateways(options.rows), random.Random(1)
    questions = refused_questions(10)
    times: list[list[float]] = [[], []]
    decisions: list[list[str]] = [[], []]
    for turn in range(options.rounds + 1):
        for number, sql in enumerate(questions):
            order = [0, 1]
            chance.shuffle(order)
            for side in order:
                started = time.thread_time()
                answer = pair[side].ask(sql, user=f"attacker{number}")
                spent = time.thread_time() - started
                if turn:  # the first round only warms up
                    times[side].append(spent)
                    decisions[side].append(f"{answer.kind} {answer.code}")
    assert decisions[0] == decisions[1], "refusals differ with confidential values"
    between = ks_2samp(times[0], times[1])
    halves: list[list[float]] = [[], []]
    for place, spent in enumerate(times[0]):
        halves[place // len(questions) % 2].append(spent)
    control = ks_2samp(*halves)
    medians = [sorted(t)[len(t) // 2] * 1e3 for t in times]
    print(
        json.dumps(
            {
                "rows": options.rows, "refusals": len(times[0]), "same_decisions": True,
                "median_ms": [round(m, 3) for m in medians], "ratio": round(medians[0] / medians[1], 3),
                "ks": round(float(between.statistic), 3), "p": round(float(between.pvalue), 3),
                "control_ks": round(float(control.statistic), 3), "control_p": round(float(control.pvalue), 3),
                "refused": sum(d.startswith("refused") for d in decisions[0]) / len(decisions[0]),
            }
        )
    )  # fmt: skip


if __name__ == "__main__":
    main()
