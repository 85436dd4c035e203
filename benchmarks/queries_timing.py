"""Does the time of a refusal depend on confidential values? It should not, beyond noise.

The same refused questions are put to two databases that differ only in confidential values, in
turns; the script prints both medians and the p-value of a rank test on the differences.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np
import pyarrow as pa
from scipy import stats

import discreet as dc


def gateway(rows: int, salary: np.ndarray, guard: object) -> dc.Gateway:
    rng = np.random.default_rng(1)
    table = pa.table(
        {
            "sector": pa.array(np.char.add("s", rng.integers(0, 20, rows).astype(str))),
            "c": pa.array(np.arange(rows)),
            "salary": pa.array(salary),
        }
    )
    roles = {"sector": "quasi", "c": "quasi", "salary": "confidential"}
    return dc.Gateway(dc.read(table, roles=roles, name="people"), guard=guard)


def main(rows: int, times: int) -> None:
    rng = np.random.default_rng(2)
    first, second = np.zeros(rows, np.int64), rng.integers(0, 10**9, rows)
    for guard in (dc.Restriction(k=5), dc.Restriction(k=5, mode="partition")):
        with gateway(rows, first, guard) as one, gateway(rows, second, guard) as two:
            taken: list[list[float]] = [[], []]
            for number in range(times):
                sql = f"SELECT SUM(salary) FROM people WHERE c <> {number}"
                pair = [(0, one), (1, two)]
                for side, gate in pair if number % 2 else pair[::-1]:
                    started = time.process_time()
                    assert gate.ask(sql).refused
                    taken[side].append(time.process_time() - started)
            p = stats.wilcoxon(taken[0], taken[1]).pvalue
            medians = [statistics.median(t) * 1e3 for t in taken]
            print(
                f"{guard.mode}: median {medians[0]:.3f} ms and {medians[1]:.3f} ms, "
                f"rank test p = {p:.2f} over {times} refusals"
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--times", type=int, default=200)
    given = parser.parse_args()
    main(given.rows, given.times)
