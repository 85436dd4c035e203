"""The embedded population and register: CPU time to make them, against drawing as many uniforms.

Run: python benchmarks/demo_population.py [--rows 1000000]
"""

import argparse
import resource
import time

import numpy as np

from discreet import demo


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    rows = parser.parse_args().rows
    demo.population_arrow(10)
    start = time.process_time()
    np.random.default_rng(1).random((rows, 11))
    raw = time.process_time() - start
    for name in ("population_arrow", "businesses_arrow"):
        start = time.process_time()
        table = getattr(demo, name)(rows)
        spent = time.process_time() - start
        print(f"{name}: {table.num_rows:,} rows in {spent:.2f} CPU s, {spent / raw:.1f}x raw draws")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"memory peak {peak:,.0f} MB")


if __name__ == "__main__":
    main()
