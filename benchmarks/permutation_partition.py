"""How long partitioning takes: seconds per optimiser, sorting apart.

    python benchmarks/permutation_partition.py [--records 1000000] [--repeat 3]

The peer is the plain quadratic dynamic programme, on few records and scaled by n².
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

from discreet.microdata.permutation.partitions import _kernels


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--records", type=int, default=1_000_000)
    options.add_argument("--repeat", type=int, default=3)
    options.add_argument("-k", type=int, default=5)
    options.add_argument("-e", type=float, default=1000.0)
    given = options.parse_args()
    rng = np.random.default_rng(1)
    values = rng.lognormal(10.5, 0.7, given.records)
    cpu = time.process_time()
    u, m = np.unique(values, return_counts=True)
    sorting = time.process_time() - cpu
    m = m.astype(np.int64)
    k, e = given.k, given.e
    methods = {
        "min-sum": lambda u, m: _kernels.starts_of(_kernels.min_sum(u, m, k, e, True), m),
        "min-max": lambda u, m: _kernels.starts_of(_kernels.min_max(u, m, k, e), m),
        "weighted": lambda u, m: _kernels.weighted(u, m, k, e),
    }
    small = np.unique(values[:4000])
    cpu = time.process_time()
    plain = quadratic(small, k, e)
    peer = (time.process_time() - cpu) * (len(u) / len(small)) ** 2
    print(f"{len(u):,} distinct values, k={k}, e={e:g}; sorting took {sorting:.2f} CPU s")
    print(f"plain quadratic programme, scaled from {len(small):,}: {peer:,.0f} CPU s")
    for name, method in methods.items():
        method(small, np.ones(len(small), dtype=np.int64))  # compile
        best = np.inf
        for _ in range(given.repeat):
            cpu = time.process_time()
            starts = method(u, m)
            best = min(best, time.process_time() - cpu)
        print(
            f"{name:10} {best:7.3f} CPU s  {len(starts):>9,} groups  {peer / best:>12,.0f}× faster"
        )
    assert plain > 0
    print(f"memory peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GB")


def quadratic(u: np.ndarray, k: int, e: float) -> float:
    """Least Σ size·range by trying every start for every end."""
    best = np.full(len(u) + 1, np.inf)
    best[0] = 0.0
    for j in range(k, len(u) + 1):
        starts = np.arange(0, j - k + 1)
        span = u[j - 1] - u[starts]
        cost = best[starts] + (j - starts) * span
        cost[span < e] = np.inf
        best[j] = cost.min()
    return float(best[-1])


if __name__ == "__main__":
    main()
